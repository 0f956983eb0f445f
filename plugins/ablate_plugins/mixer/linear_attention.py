"""Attention without a softmax, whose cost grows with the length and not with its square."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from ablate.slots import Given, ImpossibleError, Mixer, Site, Traits

CHUNK = 64
"""Tokens whose products with each other are taken at once; what came before them is in the running sums."""

SMALLEST = 1e-6
"""The least that weights are divided by: where all of a row's underflow, its output is zero and not NaN."""


class _LinearAttention(nn.Module):
    site: Site

    def __init__(self, at: Site, options: LinearAttention) -> None:
        super().__init__()
        self.heads = options.heads
        self.causal = at.causal
        self.q, self.k, self.v, self.o = (nn.Linear(at.width, at.width, bias=options.bias) for _ in range(4))

    def forward(self, x: Tensor, given: Given) -> Tensor:
        # Contiguous, or torch.compile would take strides for granted that padding does not give.
        q, k, v = (
            project(x).unflatten(-1, (self.heads, -1)).transpose(1, 2).contiguous()
            for project in (self.q, self.k, self.v)
        )
        exact = torch.promote_types(q.dtype, torch.float32)
        q, k, v = _features(q.to(exact)), _features(k.to(exact)), v.to(exact)
        # A last value of 1 sums the weights themselves, which is what the sum of the values is divided by.
        v = F.pad(v, (0, 1), value=1.0)
        if given.valid is not None:
            padded = ~given.valid[:, None, :, None]
            k, v = k.masked_fill(padded, 0), v.masked_fill(padded, 0)
        if self.causal:
            read = given.cache.states.get(self.site.path) if given.cache is not None else None
            mixed, sums = _up_to_each(q, k, v, None if read is None else read[0])
            if given.cache is not None:
                given.cache.states[self.site.path] = (sums,)
        else:
            mixed = q @ (k.transpose(-2, -1) @ v)
        mixed = mixed[..., :-1] / mixed[..., -1:].clamp_min(SMALLEST)
        out: Tensor = self.o(mixed.transpose(1, 2).flatten(2).to(x.dtype))
        return out


def _features(x: Tensor) -> Tensor:
    """elu(x) + 1, but for its rounding: small ones are not lost beside the 1."""
    return torch.where(x > 0, x + 1, x.clamp_max(0).exp())


def _up_to_each(q: Tensor, k: Tensor, v: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
    """Each query's sum of (q·k) v over the keys up to its own, (B, H, T, V), and the sum of all k vᵀ, (B, H, K, V).

    ``before`` is the sum of what was read before.
    """
    tokens = q.shape[2]
    size = min(CHUNK, tokens)
    q, k, v = (F.pad(part, (0, 0, 0, -tokens % size)).unflatten(2, (-1, size)) for part in (q, k, v))
    sums = (k.transpose(-2, -1) @ v).cumsum(2, dtype=torch.promote_types(v.dtype, torch.float32))
    # Shifted and not subtracted, which would lose what is small beside the sum.
    earlier = F.pad(sums[:, :, :-1], (0, 0, 0, 0, 1, 0))
    after = sums[:, :, -1]
    if before is not None:
        earlier, after = earlier + before.unsqueeze(2), after + before
    out = (q @ k.transpose(-2, -1)).tril() @ v + q @ earlier
    return out.flatten(2, 3)[:, :, :tokens], after


class LinearAttention(Mixer):
    """Multi-head attention with elu(q)+1 and elu(k)+1 in place of the softmax, in time linear in the length.

    Keys and values meet in a sum of fixed size, so a causal one decodes like a recurrent network. No
    position acts on its queries and keys.
    Source: Katharopoulos et al. 2020, Transformers are RNNs, §3.2 to 3.4.
    """

    kind: Literal["linear_attention"] = "linear_attention"
    heads: int = Field(4, ge=1)
    """Number of heads; divides the width."""
    bias: bool = True
    """Whether the four projections have a bias."""

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D).

        Raises:
            ImpossibleError: the site reads another sequence, or the heads do not divide the width.
        """
        if at.cross:
            raise ImpossibleError(f"`{self.kind}` cannot read another sequence")
        if at.width % self.heads:
            raise ImpossibleError(f"{self.heads} heads do not divide a width of {at.width}")
        return _LinearAttention(at, self)

    def traits(self) -> Traits:
        """It goes on from its sums."""
        return Traits(cached=True)
