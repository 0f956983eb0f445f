"""A mixer of my own: what moves information between tokens."""

from __future__ import annotations

from typing import Literal

import torch
from ablate.slots import Given, ImpossibleError, Mixer, Site
from pydantic import Field
from torch import Tensor, nn


class _Average(nn.Module):
    def __init__(self, width: int, reach: float, causal: bool) -> None:
        super().__init__()
        self.v = nn.Linear(width, width)
        self.o = nn.Linear(width, width)
        self.reach = reach
        self.causal = causal

    def forward(self, x: Tensor, given: Given) -> Tensor:
        place = torch.arange(x.shape[1], device=x.device)
        ahead = place - place[:, None]  # (T, T): how far the key is after the query
        logits = -(ahead.abs() / self.reach).to(x.dtype)
        if self.causal:
            logits = logits.masked_fill(ahead > 0, float("-inf"))
        if given.valid is not None:  # padding takes no part; it is at the end
            logits = logits.masked_fill(~given.valid[:, None], float("-inf"))
        out: Tensor = self.o(logits.softmax(-1) @ self.v(x))
        return out


class MyComponent(Mixer):
    """Average the values of all tokens that may be seen, the nearer the more.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    reach: float = Field(4.0, gt=0)
    """The distance, in tokens, at which a weight has fallen to 1/e."""

    def build(self, at: Site) -> nn.Module:
        """(x, given) -> x, (B, T, D) -> (B, T, D)."""
        if at.cross:
            raise ImpossibleError("`my_component` reads its own sequence alone")
        return _Average(at.width, self.reach, at.causal)
