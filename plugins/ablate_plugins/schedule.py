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


class LinearSchedule(Schedule):
    """A linear warm-up, then a straight line from the peak down to a floor.

    Source: Devlin et al. 2019, BERT, §A.2, whose floor is 0.
    """

    kind: Literal["linear"] = "linear"
    warmup: int | float = Field(0.1, ge=0)
    """Steps of linear warm-up, or a share of all steps if it is written with a decimal point."""
    floor: float = Field(0.1, ge=0, le=1)
    """What is left of the peak at the last step; at 0 that step changes nothing."""

    def factor(self, step: int, steps: int) -> float:
        """What the peak rate is multiplied by."""
        warmed, length = _warmed(step, steps, self.warmup)
        if step < length:
            return warmed
        return 1 - (1 - self.floor) * min(1.0, (step - length) / max(1, steps - 1 - length))


class InverseSqrtSchedule(Schedule):
    """A linear warm-up, then the peak divided by the root of the time since the start, in warm-ups.

    The factor is 1 at the last step of the warm-up and 1/2 at four times as many steps. The paper's own rate is this
    with a peak of (width · warm-up)^-1/2. Source: Vaswani et al. 2017, §5.3.
    """

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    warmup: int | float = Field(0.1, ge=0)
    """Steps of linear warm-up, or a share of all steps if it is written with a decimal point; without any, the
    rate falls from the first step on."""

    def factor(self, step: int, steps: int) -> float:
        """What the peak rate is multiplied by."""
        warmed, length = _warmed(step, steps, self.warmup)
        return min(warmed, math.sqrt(max(1, length) / (step + 1)))


class WsdSchedule(Schedule):
    """A linear warm-up, the peak for most of the time, then a straight line down to a floor in the last steps.

    A warm-up that runs into the decay stops where the two lines cross. Source: Hu et al. 2024, MiniCPM, §4
    (warmup-stable-decay), whose decay is exponential; Hägele et al. 2024, Scaling Laws and Compute-Optimal Training
    Beyond Fixed Training Durations, for the straight one.
    """

    kind: Literal["wsd"] = "wsd"
    warmup: int | float = Field(0.1, ge=0)
    """Steps of linear warm-up, or a share of all steps if it is written with a decimal point."""
    decay: float = Field(0.1, ge=0, le=1)
    """Share of all steps in which the rate falls, at the end."""
    floor: float = Field(0.1, ge=0, le=1)
    """What is left of the peak at the last step; at 0 that step changes nothing."""

    def factor(self, step: int, steps: int) -> float:
        """What the peak rate is multiplied by."""
        falling = round(self.decay * steps)
        fallen = max(0, step + 1 - (steps - falling)) / max(1, falling)
        return min(_warmed(step, steps, self.warmup)[0], 1 - (1 - self.floor) * min(1.0, fallen))
