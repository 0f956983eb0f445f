"""Mixers: what moves information between tokens."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from ablate.model.attention import Attend
from ablate.slots import ImpossibleError, Mixer, Scale, Site, mark, place
from ablate_plugins.position import NoPosition
from ablate_plugins.scale import InverseSqrtScale


class _Attention(nn.Module):
    def __init__(self, at: Site, options: Attention) -> None:
        super().__init__()
        self.heads = options.heads
        head = at.width // options.heads
        position = at.position or NoPosition()
        self.q, self.k, self.v, self.o = (nn.Linear(at.width, at.width, bias=options.bias) for _ in range(4))
        self.scale = place(options.scale, at.child("scale", width=head))
        self.rotation = mark(position.rotation(at.child("rotation", width=head)), at.child("rotation"))
        attend = at.child("attend", width=head)
        self.attend = mark(Attend(attend, causal=options.causal, p=options.dropout), attend)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (project(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for project in (self.q, self.k, self.v))
        q, k = self.scale(*self.rotation(q, k))
        out: Tensor = self.o(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return out


class Attention(Mixer):
    """Multi-head self-attention: each head attends with its own projections of d/h values.

    Source: Vaswani et al. 2017, §3.2.2.
    """

    kind: Literal["attention"] = "attention"
    heads: int = Field(4, ge=1)
    """Number of heads; divides the width."""
    scale: Scale = InverseSqrtScale()
    """What the logits are scaled by."""
    bias: bool = True
    """Whether the four projections have a bias."""
    causal: bool = True
    """Whether a token sees only itself and what came before it."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the attention weights that is dropped."""

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D)."""
        if at.width % self.heads:
            raise ImpossibleError(f"{self.heads} heads do not divide a width of {at.width}")
        return _Attention(at, self)
