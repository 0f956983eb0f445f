"""A schedule of my own: the learning rate's course."""

from __future__ import annotations

from typing import Literal

from ablate.slots import Schedule
from pydantic import Field


class MyComponent(Schedule):
    """From the peak down towards zero, by a power of what is left of the steps.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    power: float = Field(2.0, gt=0)
    """The power; 1 is a straight line."""

    def factor(self, step: int, steps: int) -> float:
        """What the peak rate is multiplied by at `step` (from 0) of `steps`."""
        left = max(0.0, 1 - step / steps)
        return float(left**self.power)
