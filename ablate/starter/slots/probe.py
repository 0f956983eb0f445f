"""A probe of my own: what is measured on some of the training steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from ablate.slots import Probe, Reading, Seen
from pydantic import Field
from torch import Tensor


class MyComponent(Probe):
    """How large the values of each matrix are: √mean(w²), after the update.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    axes: int = Field(2, ge=0)
    """Parameters with fewer axes are left out: a vector has one, a matrix two."""
    units: ClassVar[Mapping[str, str]] = {"my_component": ""}

    def measure(self, seen: Seen) -> Mapping[Reading, Tensor]:
        """A reading a parameter; what waits for the device, as `.item()`, is not for probes."""
        return {
            Reading("my_component", each.layer, each.role, each.name): seen.after[each.name]
            .float()
            .square()
            .mean()
            .sqrt()
            for each in seen.parameters
            if len(each.shape) >= self.axes
        }
