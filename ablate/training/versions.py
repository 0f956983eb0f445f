"""The versions that a record names."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version

DISTRIBUTIONS = ("ablate-arch", "torch", "pytorch-lightning", "optuna", "numpy", "pydantic")


@cache
def versions() -> dict[str, str]:
    """Of Python and of what a trial's numbers may depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in DISTRIBUTIONS}
