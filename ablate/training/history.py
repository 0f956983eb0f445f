"""What a trial has measured so far, and the rule that says when it has diverged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ablate.experiment.settings import Diverged
from ablate.slots import Reading


@dataclass(frozen=True)
class Divergence:
    """Where a trial broke a rule: the rule's name, and the step at which it was broken."""

    rule: str
    step: int


@dataclass
class History:
    """Everything measured; it travels in the checkpoint, so that a resumed trial ends with the whole of it."""

    losses: list[float] = field(default_factory=list)
    """Training loss before each update."""
    norms: list[float] = field(default_factory=list)
    """Global gradient norm of each step, before clipping."""
    rates: list[float] = field(default_factory=list)
    """Learning rate of each step."""
    evaluations: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    """Task metrics, by the number of updates done."""
    readings: list[tuple[int, Reading, float]] = field(default_factory=list)
    """What the probes read, by step."""
    seconds: float = 0.0
    """Time spent in training, over all attempts."""
    evaluating: float = 0.0
    """Seconds of them that were spent on the evaluation set."""
    continued_from: Mapping[str, Any] | None = None
    """The trial of fewer steps that the first attempt went on from: its ``trial``, its ``steps`` and its ``seconds`` of
    training, which are among those above."""

    @property
    def inherited_seconds(self) -> float:
        """Time that the trial which this one goes on from had spent in training."""
        return float(self.continued_from["seconds"]) if self.continued_from else 0.0

    def state(self) -> dict[str, Any]:
        """Plain values, which a checkpoint can hold."""
        return {
            "losses": self.losses,
            "norms": self.norms,
            "rates": self.rates,
            "evaluations": [[step, metrics] for step, metrics in self.evaluations],
            "readings": [[step, list(reading), value] for step, reading, value in self.readings],
            "seconds": self.seconds,
            "evaluating": self.evaluating,
            "continued_from": None if self.continued_from is None else dict(self.continued_from),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> History:
        """The history that ``state`` came from."""
        return cls(
            losses=list(state["losses"]),
            norms=list(state["norms"]),
            rates=list(state["rates"]),
            evaluations=[(step, dict(metrics)) for step, metrics in state["evaluations"]],
            readings=[(step, Reading(*reading), value) for step, reading, value in state["readings"]],
            seconds=state["seconds"],
            evaluating=state["evaluating"],
            continued_from=state.get("continued_from"),
        )

    def cut(self, step: int) -> None:
        """Forget what came after ``step``."""
        del self.losses[step + 1 :], self.norms[step + 1 :], self.rates[step + 1 :]
        self.evaluations = [(done, metrics) for done, metrics in self.evaluations if done <= step]
        self.readings = [(at, reading, value) for at, reading, value in self.readings if at <= step]


@dataclass
class DivergenceRule:
    """Looks at the losses in their order and says where the rule was broken first."""

    options: Diverged
    _checked: int = 0
    _above: int = 0

    @property
    def suspects(self) -> bool:
        """Whether the last loss was over the limit, though not yet often enough in a row."""
        return self.options.loss_above_initial is not None and self._above > 0

    def check(self, losses: list[float]) -> Divergence | None:
        """Look at the losses that came since the last call."""
        for step in range(self._checked, len(losses)):
            self._checked = step + 1
            loss = losses[step]
            if not math.isfinite(loss):
                if self.options.nonfinite:
                    return Divergence("nonfinite", step)
                self._above += 1
            elif self.options.loss_above_initial is not None and loss > losses[0] + self.options.loss_above_initial:
                self._above += 1
            else:
                self._above = 0
            if self.options.loss_above_initial is not None and self._above >= self.options.patience:
                return Divergence("loss_above_initial", step)
        return None
