"""A scale of my own: what queries and keys are multiplied by before their product."""

from __future__ import annotations

from typing import Literal

from ablate.slots import Scale, Site
from pydantic import Field
from torch import Tensor, nn


class _Power(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, q: Tensor, k: Tensor, start: int, valid: Tensor | None) -> tuple[Tensor, Tensor]:
        return q * self.factor, k


class MyComponent(Scale):
    """Divide the logits by a power of the head's width.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    power: float = Field(0.75, ge=0, le=1)
    """The power; 0.5 is the usual scale, and 0 is none."""

    def build(self, at: Site) -> nn.Module:
        """(q, k, start, valid) -> (q, k), each (B, H, T, K); `at.width` is K."""
        return _Power(float(at.width) ** -self.power)
