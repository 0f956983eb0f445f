"""Schedules: the learning rate's course."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from ablate.slots import Schedule


def _warmed(step: int, steps: int, warmup: int | float) -> tuple[float, int]:
    """The warm-up's factor at ``step``, and how many steps it takes; a float is a share of all steps."""
    length = warmup if isinstance(warmup, int) else round(warmup * steps)
    return (min(1.0, (step + 1) / length) if length else 1.0), length


class ConstantSchedule(Schedule):
    """The peak rate throughout, after an optional linear warm-up.

    Source: Goyal et al. 2017, Accurate, Large Minibatch SGD, §2.2, for the warm-up.
    """

    kind: Literal["constant"] = "constant"
    warmup: int | float = Field(0, ge=0)
    """Steps of linear warm-up, or a share of all steps if it is written with a decimal point."""

    def factor(self, step: int, steps: int) -> float:
        """What the peak rate is multiplied by."""
        return _warmed(step, steps, self.warmup)[0]


class CosineSchedule(Schedule):
    """A linear warm-up, then half a cosine from the peak down to a floor.

    Source: Loshchilov and Hutter 2017, SGDR, §3, without restarts.
    """

    kind: Literal["cosine"] = "cosine"
    warmup: int | float = Field(0.1, ge=0)
    """Steps of linear warm-up, or a share of all steps if it is written with a decimal point."""
    floor: float = Field(0.1, ge=0, le=1)
    """What is left of the peak at the end."""

    def factor(self, step: int, steps: int) -> float:
        """What the peak rate is multiplied by."""
        warmed, length = _warmed(step, steps, self.warmup)
        if step < length:
            return warmed
        progress = (step - length) / max(1, steps - 1 - length)
        return self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
