"""Positions: how a model is told where a token stands."""

from __future__ import annotations

import math
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import embedding

from ablate.slots import ImpossibleError, Position, Site, Traits


class _Unchanged(nn.Module):
    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        return x


def _angles(context: int, width: int, base: float) -> Tensor:
    """pos / base^(2i/width), computed in float64: (T, width/2)."""
    if width % 2:
        raise ImpossibleError(f"a width of {width} is odd, and sines and cosines come in pairs")
    rates = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.arange(context, dtype=torch.float64)[:, None] * rates


def _rows(table: Tensor, start: int, tokens: int) -> Tensor:
    """The rows of so many tokens, of which the first stands at ``start``."""
    if start + tokens > table.shape[0]:
        raise ValueError(f"a text of {start + tokens} tokens is longer than the context of {table.shape[0]}")
    return table[start : start + tokens]


class _Sinusoidal(nn.Module):
    table: Tensor

    def __init__(self, context: int, width: int, base: float) -> None:
        super().__init__()
        angles = _angles(context, width, base)
        table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        return x + _rows(self.table, start, x.shape[-2])


class _Learned(nn.Module):
    def __init__(self, context: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(context, width))

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        return x + _rows(self.table, start, x.shape[-2])


class _Rotary(nn.Module):
    sin: Tensor
    cos: Tensor

    def __init__(self, context: int, width: int, base: float) -> None:
        super().__init__()
        angles = _angles(context, width, base)
        self.register_buffer("sin", angles.sin().float(), persistent=False)
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.width = width

    def forward(self, q: Tensor, k: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        return self._turn(q, start), self._turn(k, start)

    def _turn(self, x: Tensor, start: int) -> Tensor:
        sin, cos = (_rows(table, start, x.shape[-2]) for table in (self.sin, self.cos))
        turned, rest = x[..., : self.width], x[..., self.width :]
        even, odd = turned[..., 0::2], turned[..., 1::2]
        turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2).type_as(x)
        return torch.cat([turned, rest], -1) if rest.shape[-1] else turned


class _Alibi(nn.Module):
    slopes: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.register_buffer("slopes", torch.tensor(_slopes(heads)), persistent=False)

    def forward(self, start: int, queries: int, keys: int) -> Tensor:
        return -self.slopes[:, None, None] * _offsets(start, queries, keys, self.slopes.device).abs()


class _RelativeBias(nn.Module):
    bucket: Tensor

    def __init__(self, heads: int, options: RelativeBiasPosition, causal: bool) -> None:
        super().__init__()
        each_way = options.buckets if causal else options.buckets // 2
        buckets = [_bucket(distance, each_way, options.max_distance) for distance in range(options.max_distance + 1)]
        self.register_buffer("bucket", torch.tensor(buckets), persistent=False)
        self.later = 0 if causal else each_way
        # A linear map of the bucket, were it written as a one-hot vector: so an initialiser sees the fan-in. In a
        # module of its own, since the role `position` is that of tables whose rows are as large as embeddings.
        self.by_bucket = nn.Linear(options.buckets, heads, bias=False)

    def forward(self, start: int, queries: int, keys: int) -> Tensor:
        offsets = _offsets(start, queries, keys, self.bucket.device)
        bucket = self.bucket[offsets.abs().clamp(max=self.bucket.shape[0] - 1)] + self.later * (offsets > 0)
        return embedding(bucket, self.by_bucket.weight.t()).permute(2, 0, 1)  # its backward pass adds in a fixed order


def _offsets(start: int, queries: int, keys: int, device: torch.device) -> Tensor:
    """How much later each key is than each query: (T, S), keys counted from the first token."""
    return torch.arange(keys, device=device) - torch.arange(start, start + queries, device=device)[:, None]


def _slopes(heads: int) -> list[float]:
    """A geometric series from 2^(-8/n) to 2^-8; where n is no power of two, that of the one below, and of twice that
    every other slope until there are enough.
    """
    power = 2 ** int(math.log2(heads))
    between = [2 ** (-4 * i / power) for i in range(1, 2 * power, 2)]
    return [2 ** (-8 * i / power) for i in range(1, power + 1)] + between[: heads - power]


def _bucket(distance: int, buckets: int, longest: int) -> int:
    """The bucket of a distance: half of them hold one each, the rest grow with its logarithm, the last is open."""
    alone = buckets // 2
    if distance < alone:
        return distance
    grown = math.log(distance / alone) / math.log(longest / alone) * (buckets - alone)
    return min(alone + int(grown + 1e-9), buckets - 1)  # a logarithm may fall just short of the whole number that it is


class NoPosition(Position):
    """Tell the model nothing; a causal model can still learn positions from its mask.

    Source: Haviv et al. 2022, Transformer Language Models without Positional Encodings.
    """

    kind: Literal["none"] = "none"

    def build(self, at: Site) -> nn.Module:
        """(x, start) -> (B, T, D), unchanged."""
        return _Unchanged()


class SinusoidalPosition(Position):
    """Add fixed sines and cosines of the position to the embeddings.

    Source: Vaswani et al. 2017, §3.5.
    """

    kind: Literal["sinusoidal"] = "sinusoidal"
    base: float = Field(10000.0, gt=1)
    """The longest wavelength is 2π times this."""

    def build(self, at: Site) -> nn.Module:
        """(x, start) -> (B, T, D); raises ValueError beyond the context."""
        return _Sinusoidal(at.context, at.width, self.base)


class LearnedPosition(Position):
    """Add a learned vector for each position to the embeddings.

    Source: Gehring et al. 2017, Convolutional Sequence to Sequence Learning.
    """

    kind: Literal["learned"] = "learned"

    def build(self, at: Site) -> nn.Module:
        """(x, start) -> (B, T, D); raises ValueError beyond the context."""
        return _Learned(at.context, at.width)


class RotaryPosition(Position):
    """Rotate queries and keys by their position, so that their product depends on the distance alone.

    Source: Su et al. 2021, RoFormer; Black et al. 2022, GPT-NeoX-20B, for a share of the width.
    """

    kind: Literal["rotary"] = "rotary"
    base: float = Field(10000.0, gt=1)
    """The longest wavelength is 2π times this."""
    share: float = Field(1.0, gt=0, le=1)
    """Share of a head's width that is rotated, its first values; rounded to pairs where it is less than 1."""

    def traits(self) -> Traits:
        """Acts on queries and keys."""
        return Traits(needs_attention=True)

    def build(self, at: Site) -> nn.Module:
        """(x, start) -> (B, T, D), unchanged: rotation acts inside attention."""
        return _Unchanged()

    def rotation(self, at: Site) -> nn.Module:
        """(q, k, start), both (B, H, T, K) -> the same shapes; norms are kept. Raises ValueError beyond the context."""
        width = at.width if self.share == 1 else 2 * max(1, round(self.share * at.width / 2))
        if width > at.width:
            raise ImpossibleError(f"a head's width of {at.width} has no pair to rotate")
        return _Rotary(at.context, width, self.base)


class AlibiPosition(Position):
    """Subtract from each logit the distance of query and key, times a fixed slope for each head.

    Slopes are 2^(-8i/n), i from 1 to n heads. In an encoder it counts in both directions.
    Source: Press et al. 2022, Train Short, Test Long.
    """

    kind: Literal["alibi"] = "alibi"

    def traits(self) -> Traits:
        """Acts on the logits."""
        return Traits(needs_attention=True)

    def build(self, at: Site) -> nn.Module:
        """(x, start) -> (B, T, D), unchanged: the bias acts inside attention."""
        return _Unchanged()

    def bias(self, at: Site) -> nn.Module:
        """(start, T, S) -> (H, T, S), zero where query and key are one token and below it elsewhere."""
        return _Alibi(at.heads)


class RelativeBiasPosition(Position):
    """Add to each logit a learned number for each head and bucket of distances, which widen as they grow.

    Each attention layer has numbers of its own; the source shares one set among all. Away from causal sites, half of
    the buckets are for keys after the query.
    Source: Raffel et al. 2020, Exploring the Limits of Transfer Learning (T5), §2.1.
    """

    kind: Literal["relative_bias"] = "relative_bias"
    buckets: int = Field(32, ge=4, multiple_of=2)
    """Number of buckets."""
    max_distance: int = Field(128, ge=2)
    """Distance from which all share the last bucket; more than half of `buckets`."""

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if self.max_distance <= self.buckets // 2:
            raise ValueError(
                f"`max_distance` must be more than half of `buckets`, {self.buckets // 2}, not {self.max_distance}"
            )
        return self

    def traits(self) -> Traits:
        """Acts on the logits, by what is learned: the fused kernel has no gradient for it."""
        return Traits(needs_attention=True, fused=False)

    def build(self, at: Site) -> nn.Module:
        """(x, start) -> (B, T, D), unchanged: the bias acts inside attention."""
        return _Unchanged()

    def bias(self, at: Site) -> nn.Module:
        """(start, T, S) -> (H, T, S)."""
        return _RelativeBias(at.heads, self, at.causal)
