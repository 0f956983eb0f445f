"""The driver, its Optuna study, the workers: whatever dies, nothing is lost and nothing runs twice."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ablate.sweep.driver import sweep

__all__ = ["sweep"]


def __getattr__(name: str) -> object:
    # Late, since workers and whoever shows events come through here too, and the driver imports Optuna.
    if name == "sweep":
        return vars(import_module("ablate.sweep.driver"))[name]
    raise AttributeError(f"module 'ablate.sweep' has no attribute {name!r}")
