"""Peak memory of a trial, in a process that runs many."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

_CLEAR = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


def reset_peak_memory(device: str) -> None:
    """Start to measure anew."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    elif sys.platform == "linux":
        _CLEAR.write_text("5")  # resets VmHWM of this process, see proc(5)


def peak_memory(device: str) -> int | None:
    """Largest memory since the reset, in bytes: the device's on CUDA, the process's elsewhere; None if unknown."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    if sys.platform == "linux":
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
