"""How much work a trial is beside the others, so that what is left can be told where arms differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ablate.records.layout import TrialFolder
from ablate.records.steps import furthest_step

STEP_SECONDS = 0.004
"""What a step costs beside its matrix products."""
SPEED = {"cpu": 3e10}
"""Floating-point operations in a second, roughly, by device."""
FASTER = 1e13
"""The same on any other device."""


def work_of(plan: Mapping[str, Any], arm: Mapping[str, Any]) -> float:
    """The work of one trial of an arm: seconds as a rough guess has them, good for comparing arms and nothing else."""
    speed = SPEED.get(plan["device"], FASTER)
    step_seconds: float = STEP_SECONDS + arm.get("flops", 0.0) / speed
    return steps_of(plan, arm) * step_seconds


def steps_of(plan: Mapping[str, Any], arm: Mapping[str, Any]) -> int:
    """How many steps a trial of an arm has."""
    return int(arm.get("steps", plan["budget"]["steps"]))


def fraction_done(folder: TrialFolder, steps: int) -> float:
    """How much of a trial its furthest checkpoint holds, from 0 to 1."""
    step = furthest_step(folder) if folder.path.exists() else None
    return min(1.0, (step or 0) / steps)
