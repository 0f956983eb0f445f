"""What the trials of a study are called, and what is told of them to whoever looks on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Label:
    """What a trial is called, in words; the same keys are in a sealed record."""

    trial: str
    arm_name: str
    seed: int
    levels: Mapping[str, Any]

    @classmethod
    def of(cls, record: Record) -> Label:
        """The label that a record or a trial's configuration carries."""
        return cls(record["trial"], record["arm_name"], record["seed"], record["levels"])

    def attributes(self, attempt: int) -> dict[str, Any]:
        """User attributes: levels may be any JSON value, which Optuna's parameters may not."""
        return {
            "trial": self.trial,
            "arm": self.arm_name,
            "seed": self.seed,
            "levels": dict(self.levels),
            "attempt": attempt,
        }


@dataclass(frozen=True)
class FailedAttempt:
    """An attempt that sealed its own end, and why."""

    label: Label
    attempt: int
    error: str
    last: bool
    """Whether the trial has no later attempt, and so waits for a retry."""
    end: str = "failed"
    """``failed`` or ``timed_out``."""
