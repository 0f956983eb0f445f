"""Ablate answers one question well: does this architectural choice help, and why?

Everything that a notebook needs is here: :func:`load` an experiment, :func:`plan` it, :func:`run` it, look at its
:func:`results`, write its :func:`report` and :func:`compare` it with another. Nothing heavy is imported before one
of them is called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ablate.api import Experiment, compare, load, load_model, network, plan, report, results, run

__all__ = ["Experiment", "compare", "load", "load_model", "network", "plan", "report", "results", "run"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("ablate.api"), name)
    raise AttributeError(f"module 'ablate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
