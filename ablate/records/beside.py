"""The trials of a plan that no arm is judged by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def beside(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A plan's trials beside those that are reported: of tuning, at the baseline's values, and repeats."""
    tuning = plan.get("tuning") or {}
    return [*(tuning.get("runs") or ()), *(tuning.get("at_baseline") or ()), *(plan.get("repeats") or ())]
