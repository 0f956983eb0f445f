"""What the trials of a study are called, and what is told of them to whoever looks on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ablate.records.spelling import in_words

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Label:
    """What a trial is called, in words; the same keys are in a sealed record."""

    trial: str
    arm_name: str
    seed: int
    levels: Mapping[str, Any]
    tuned: Mapping[str, Any] = field(default_factory=dict)
    """Its tuned values, by dotted path."""
    repeat: int = 0
    """Which time it is that this trial runs, from 0."""

    @classmethod
    def of(cls, record: Record) -> Label:
        """The label that a record or a trial's configuration carries."""
        tuned, repeat = record.get("tuned") or {}, record.get("repeat", 0)
        return cls(record["trial"], record["arm_name"], record["seed"], record["levels"], tuned, repeat)

    @property
    def shown(self) -> str:
        """The arm's name, with the tuned values, and whether it is a repeat."""
        name = f"{self.arm_name} [{in_words(self.tuned)}]" if self.tuned else self.arm_name
        return f"{name} once more" if self.repeat else name

    def attributes(self, attempt: int) -> dict[str, Any]:
        """User attributes: levels may be any JSON value, which as Optuna's parameters are text."""
        return {
            "trial": self.trial,
            "arm": self.arm_name,
            "seed": self.seed,
            "levels": dict(self.levels),
            **({"tuned": dict(self.tuned)} if self.tuned else {}),
            **({"repeat": self.repeat} if self.repeat else {}),
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
    """``failed``, ``timed_out`` or ``pruned``."""
    cause: str | None = None
    """Why it failed, where that is of a known kind: ``oom``, memory was too short, or ``lost``, its worker died."""

    @property
    def fate(self) -> str:
        """What a retry asks for: ``failed``, ``oom`` or ``timed_out``."""
        return "oom" if self.cause == "oom" else self.end
