"""A norm of my own: one class, which `plugins: [./my_norm.py]` brings into an experiment."""

from __future__ import annotations

from typing import Literal

import torch
from ablate.slots import Norm, Site
from pydantic import Field
from torch import Tensor, nn


class _Max(nn.Module):
    """The computation, in plain torch; what is a parameter here is initialised, counted and trained like any other."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        return self.weight * x / (x.abs().amax(-1, keepdim=True) + self.eps)


class MaxNorm(Norm):
    """Scale each token so that its largest absolute value is 1, with a learned gain.

    Source: your own.
    """

    kind: Literal["max"] = "max"  # the name in YAML: `norm: max`
    eps: float = Field(1e-5, gt=0)  # an option: `norm: {kind: max, eps: 1e-3}`
    """Added to the largest absolute value."""

    def build(self, at: Site) -> nn.Module:
        """(..., D) -> (..., D); `at` says where the norm stands: width, depth, layer, context."""
        return _Max(at.width, self.eps)
