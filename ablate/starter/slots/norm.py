"""A norm of my own: one class, whose options are its fields."""

from __future__ import annotations

from typing import Literal

import torch
from ablate.slots import Norm, Site
from pydantic import Field
from torch import Tensor, nn


class _Scaled(nn.Module):
    """The computation, in plain torch; parameters are trained and counted like any."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x / (x.abs().mean(-1, keepdim=True) + self.eps)


class MyComponent(Norm):
    """Scale each token to a mean absolute value of 1, with a learned gain.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    eps: float = Field(1e-5, gt=0)
    """Added to the mean absolute value."""

    def build(self, at: Site) -> nn.Module:
        """(..., D) -> (..., D)."""
        return _Scaled(at.width, self.eps)
