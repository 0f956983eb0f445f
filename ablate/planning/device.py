"""Which device trials run on, and the arithmetic that it has."""

from __future__ import annotations

import torch


def pick_device() -> str:
    """``cuda`` where there is a GPU, ``mps`` on Apple silicon, ``cpu`` elsewhere."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def resolve_precision(precision: str, device: str) -> str:
    """What ``auto`` means on a device: bfloat16 mixed with float32 on a GPU that has it, else float32."""
    if precision != "auto":
        return precision
    return "bf16-mixed" if device == "cuda" and torch.cuda.is_bf16_supported() else "32-true"
