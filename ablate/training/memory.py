"""Peak memory of a trial, in a process that runs many."""

from __future__ import annotations

import re
from pathlib import Path

import torch

_CLEAR = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


class PeakMemory:
    """Measures from its making on: the device's memory on CUDA, the process's on Linux, nothing elsewhere."""

    def __init__(self, device: str) -> None:
        self._cuda = device == "cuda"
        self._process = False
        if self._cuda:
            torch.cuda.reset_peak_memory_stats()
            return
        try:
            _CLEAR.write_text("5")  # resets VmHWM of this process, see proc(5)
        except OSError:  # no Linux, or a container that forbids it: unknown is better than another trial's peak
            return
        self._process = True

    def read(self) -> int | None:
        """The largest since then, in bytes; None where it cannot be measured."""
        if self._cuda:
            return torch.cuda.max_memory_allocated()
        return self._of_process()

    def taken(self) -> int | None:
        """What nobody else could have since then, in bytes: on CUDA that is what torch keeps for later tensors too."""
        return torch.cuda.max_memory_reserved() if self._cuda else self._of_process()

    def _of_process(self) -> int | None:
        if not self._process:
            return None
        found = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())
        return int(found[1]) * 1024 if found else None
