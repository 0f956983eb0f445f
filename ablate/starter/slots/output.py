"""An output of my own: how the stream becomes logits."""

from __future__ import annotations

from typing import Literal

from ablate.slots import Output, Site
from pydantic import Field
from torch import Tensor, nn


class _Narrow(nn.Module):
    def __init__(self, width: int, rank: int, vocabulary: int) -> None:
        super().__init__()
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, vocabulary, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.up(self.down(x))
        return out


class MyComponent(Output):
    """A product of two narrow matrices turns the stream into logits.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    rank: int = Field(16, ge=1)
    """Width between the two."""

    def build(self, at: Site, embedding: nn.Embedding) -> nn.Module:
        """(B, T, D) -> (B, T, V); `embedding` is the input's (V, D) table."""
        return _Narrow(at.width, self.rank, at.vocabulary)
