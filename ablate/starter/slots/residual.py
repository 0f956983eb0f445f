"""A residual of my own: how a sublayer's update joins the stream."""

from __future__ import annotations

from typing import Literal

import torch
from ablate.slots import Residual, Site
from pydantic import Field
from torch import Tensor, nn


class _Gained(nn.Module):
    """A vector keeps the value that it is made with; only matrices are drawn."""

    def __init__(self, width: int, start: float) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.full((width,), start))

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        return self.gain * x + update


class MyComponent(Residual):
    """Add the update to a stream that has a learned gain for each feature.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    start: float = Field(1.0, gt=0)
    """The gain at the start."""

    def build(self, at: Site) -> nn.Module:
        """(x, update), both (B, T, D) -> (B, T, D)."""
        return _Gained(at.width, self.start)
