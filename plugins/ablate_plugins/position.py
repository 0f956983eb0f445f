"""Positions: how a model is told where a token stands."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ablate.slots import ImpossibleError, Position, Site


class _Unrotated(nn.Module):
    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return q, k


def _angles(context: int, width: int, base: float) -> Tensor:
    """pos / base^(2i/width), computed in float64: (T, width/2)."""
    if width % 2:
        raise ImpossibleError(f"a width of {width} is odd, and sines and cosines come in pairs")
    rates = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.arange(context, dtype=torch.float64)[:, None] * rates


class _Sinusoidal(nn.Module):
    table: Tensor

    def __init__(self, context: int, width: int, base: float) -> None:
        super().__init__()
        angles = _angles(context, width, base)
        table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


class _Learned(nn.Module):
    def __init__(self, context: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(context, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


class _Rotary(nn.Module):
    sin: Tensor
    cos: Tensor

    def __init__(self, context: int, width: int, base: float) -> None:
        super().__init__()
        angles = _angles(context, width, base)
        self.register_buffer("sin", angles.sin().float(), persistent=False)
        self.register_buffer("cos", angles.cos().float(), persistent=False)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return self._turn(q), self._turn(k)

    def _turn(self, x: Tensor) -> Tensor:
        sin, cos = self.sin[: x.shape[-2]], self.cos[: x.shape[-2]]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2).type_as(x)


class NoPosition(Position):
    """Tell the model nothing; a causal model can still learn positions from its mask.

    Source: Haviv et al. 2022, Transformer Language Models without Positional Encodings.
    """

    kind: Literal["none"] = "none"

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D), unchanged."""
        return nn.Identity()

    def rotation(self, at: Site) -> nn.Module:
        """(q, k) -> (q, k), unchanged."""
        return _Unrotated()


class SinusoidalPosition(Position):
    """Add fixed sines and cosines of the position to the embeddings.

    Source: Vaswani et al. 2017, §3.5.
    """

    kind: Literal["sinusoidal"] = "sinusoidal"
    base: float = Field(10000.0, gt=1)
    """The longest wavelength is 2π times this."""

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D)."""
        return _Sinusoidal(at.context, at.width, self.base)

    def rotation(self, at: Site) -> nn.Module:
        """(q, k) -> (q, k), unchanged."""
        return _Unrotated()


class LearnedPosition(Position):
    """Add a learned vector for each position to the embeddings.

    Source: Gehring et al. 2017, Convolutional Sequence to Sequence Learning.
    """

    kind: Literal["learned"] = "learned"

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D)."""
        return _Learned(at.context, at.width)

    def rotation(self, at: Site) -> nn.Module:
        """(q, k) -> (q, k), unchanged."""
        return _Unrotated()


class RotaryPosition(Position):
    """Rotate queries and keys by their position, so that their product depends on the distance alone.

    Source: Su et al. 2021, RoFormer.
    """

    kind: Literal["rotary"] = "rotary"
    base: float = Field(10000.0, gt=1)
    """The longest wavelength is 2π times this."""

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D), unchanged: rotation acts inside attention."""
        return nn.Identity()

    def rotation(self, at: Site) -> nn.Module:
        """(q, k), both (B, H, T, K) -> the same shapes; norms are kept."""
        return _Rotary(at.context, at.width, self.base)
