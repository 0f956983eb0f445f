"""Calibrating: some steps of each distinct shape are trained, as the sweep would, to tell what a plan costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ablate.planning.price import Measured, shape_of
from ablate.records.layout import StudyFolder, read_json
from ablate.slots import Executor, Pool
from ablate.sweep.driver import sweep

STEPS = 20
UNLIMITED = dict.fromkeys(("gpu_hours", "wall", "trial_timeout", "disk"))
"""No limit of the budget: what is measured is not to be cut short."""


def calibrate(plan: Mapping[str, Any], executor: Executor | Pool) -> dict[str, Measured]:
    """Train 20 steps of one arm of each distinct shape, several at once as in a sweep, and keep nothing.

    Gives what a step took and the worker's peak memory, by shape; a shape whose trial failed is not there.

    Raises:
        Interrupted: a signal came.
    """
    arms = {shape_of(arm): arm for arm in reversed(plan["arms"])}
    small = {
        **plan,
        "arms": [{**arm, "steps": STEPS} for arm in arms.values()],
        "trials": [{"id": shape, "arm": arm["id"], "seed": plan["seeds"][0]} for shape, arm in arms.items()],
        "excluded": [],
        "tuning": None,
        "repeats": [],
        "budget": {**plan["budget"], **UNLIMITED, "steps": STEPS, "evaluations": 1, "keep_checkpoints": False},
        "probes": {"every": STEPS, "use": []},
        "loggers": [],  # what is measured here is no trial of the user's
    }
    with TemporaryDirectory(prefix="ablate-calibrate-") as folder:
        study = StudyFolder(Path(folder))
        sweep(study, small, executor)
        found = {shape: study.trial(shape).result for shape in arms}
        records = {shape: read_json(path) for shape, path in found.items() if path.exists()}
    return {
        shape: Measured(
            (record["seconds"] - record["evaluation_seconds"]) / record["steps"],
            record["peak_memory"],
            record["evaluation_seconds"],
        )
        for shape, record in records.items()
        if record["steps"]
    }
