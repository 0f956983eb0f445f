"""A position of my own: how a model is told where a token stands."""

from __future__ import annotations

from typing import Literal

import torch
from ablate.slots import Position, Site
from pydantic import Field
from torch import Tensor, nn


class _Ramp(nn.Module):
    def __init__(self, width: int, context: int, strength: float) -> None:
        super().__init__()
        self.direction = nn.Parameter(torch.full((width,), strength))
        self.context = context

    def forward(self, x: Tensor, start: int) -> Tensor:
        place = torch.arange(x.shape[1], device=x.device) + start
        return x + (place / self.context).to(x.dtype)[:, None] * self.direction


class MyComponent(Position):
    """Add a learned vector to the embeddings, the more the later the token.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    strength: float = Field(1.0, ge=0)
    """The vector's values at the start, which the last token has."""

    def build(self, at: Site) -> nn.Module:
        """(x, start) -> x, (B, T, D); `start` is the position of the first token."""
        return _Ramp(at.width, at.context, self.strength)
