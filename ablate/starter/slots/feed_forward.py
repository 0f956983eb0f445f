"""A feed-forward network of my own: what transforms each token alone."""

from __future__ import annotations

from typing import Literal

from ablate.slots import FeedForward, Site, mark
from pydantic import Field
from torch import Tensor, nn


class _Leaky(nn.Module):
    """Probes find the matrices by their names, and the activation by its mark."""

    def __init__(self, at: Site, inner: int, slope: float) -> None:
        super().__init__()
        self.w1 = nn.Linear(at.width, inner)
        self.activation = mark(nn.LeakyReLU(slope), at.child("hidden", width=inner))
        self.w2 = nn.Linear(inner, at.width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.w2(self.activation(self.w1(x)))
        return out


class MyComponent(FeedForward):
    """Two linear maps with a leaky rectifier between them.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    ratio: float = Field(4.0, gt=0)
    """Inner width as a multiple of the stream's."""
    slope: float = Field(0.1, ge=0, lt=1)
    """What is left of a value below zero."""

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D)."""
        return _Leaky(at, max(1, round(self.ratio * at.width)), self.slope)
