"""Studies of two or more tasks, whose arms differ by what is asked for on each."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ablate.analysis.results import Results
from tests.study_maker import make_study

METRIC = "val/accuracy"


def task_study(
    folder: Path,
    tasks: Mapping[str, Mapping[str, Any]],
    *,
    factors: Mapping[str, list[Any]] | None = None,
    accuracy: Any,
    **options: Any,
) -> Results:
    """A study with a factor ``task``; ``tasks`` has what each task's arms have of their own, ``facts`` and ``units``.

    ``accuracy`` gives the objective from (levels, seed).
    """
    axes = {**(factors or {"scale": ["on", "off"]}), "task": list(tasks)}
    own: dict[str, dict[str, Any]] = {}
    for cell in itertools.product(*axes.values()):
        mine = tasks[cell[-1]]
        name = ", ".join(f"{factor}={level}" for factor, level in zip(axes, cell, strict=True)) if own else "baseline"
        own[name] = {"data": {"hash": cell[-1], "facts": dict(mine.get("facts", {}))}}
        own[name] |= {"units": mine["units"]} if "units" in mine else {}
    options = {"design": "full", "metric": METRIC, "goal": "max", "seeds": 3, **options}
    return Results(
        make_study(folder, factors=axes, own=own, outcomes=lambda name, levels, seed: accuracy(levels, seed), **options)
    )


RANGED = {"facts": {"chance_accuracy": 0.2, "ceiling_accuracy": 1.0}}
"""A task whose accuracy lies between 0.2 and 1."""
