"""Attention, as a mixer."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from ablate.model.attention import Attend, visible_keys
from ablate.slots import Given, ImpossibleError, Mixer, Scale, Site, Traits, mark, place
from ablate_plugins.scale import InverseSqrtScale


class _Attention(nn.Module):
    site: Site

    def __init__(self, at: Site, options: Attention, causal: bool) -> None:
        super().__init__()
        heads, pairs = options.heads, options.kv_heads or options.heads
        width = at.width // heads
        inside = replace(at, heads=heads, width=options.key_width or width, causal=causal)
        self.key_width, self.value_width = inside.width, width
        self.groups, self.cross, self.causal = heads // pairs, at.cross, causal

        def linear(into: int, out: int) -> nn.Linear:
            return nn.Linear(into, out, bias=options.bias)

        self.q = linear(at.width, heads * self.key_width)
        self.k = linear(at.width, pairs * self.key_width)
        self.v = linear(at.width, pairs * self.value_width)
        self.o = linear(heads * self.value_width, at.width)
        position = None if at.cross else at.position
        self.scale = place(options.scale, inside.child("scale"))
        turned, shifted = inside.child("rotation"), inside.child("position", "bias")
        self.rotation = _marked(position.rotation(turned) if position else None, turned)
        self.bias = _marked(position.bias(shifted) if position else None, shifted)
        attend = Attend(inside.child("attend"), causal=causal, p=options.dropout, soft_cap=options.soft_cap)
        self.attend = mark(attend, inside.child("attend"))

    def forward(self, x: Tensor, given: Given) -> Tensor:
        q = self._heads(self.q(x), self.key_width)
        k, v = self._memory(given) if self.cross else self._own(x)
        start = given.start
        if self.rotation is not None:
            q, k = self.rotation(q, k, start)
        valid = given.memory_valid if self.cross else given.valid
        q, scaled = self.scale(q, k, start, valid)
        if given.cache is not None and not self.cross:
            scaled, v = _extended(given, self.site.path, scaled, v)
        keys = scaled.shape[-2]
        visible = visible_keys(q.shape[-2], keys, causal=self.causal, valid=valid, device=q.device)
        bias = None if self.bias is None else self.bias(start, q.shape[-2], keys)
        if self.groups > 1:
            scaled, v = (each.repeat_interleave(self.groups, 1) for each in (scaled, v))
        mixed: Tensor = self.attend(q, scaled, v, visible, bias)
        out: Tensor = self.o(mixed.transpose(1, 2).flatten(2))
        return out

    def _own(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self._heads(self.k(x), self.key_width), self._heads(self.v(x), self.value_width)

    def _memory(self, given: Given) -> tuple[Tensor, Tensor]:
        """Keys and values of the other sequence, which are the same at every step of decoding."""
        if given.memory is None:
            raise ValueError("cross-attention was given no memory to read")
        if given.cache is None:
            return self._own(given.memory)
        if self.site.path not in given.cache.states:
            given.cache.states[self.site.path] = self._own(given.memory)
        k, v = given.cache.states[self.site.path]
        return k, v

    def _heads(self, x: Tensor, width: int) -> Tensor:
        heads: Tensor = x.unflatten(-1, (-1, width))
        return heads.transpose(1, 2)


def _marked(module: nn.Module | None, at: Site) -> nn.Module | None:
    return None if module is None else mark(module, at)


def _extended(given: Given, path: str, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The keys and values of all tokens up to here, and left so in the cache."""
    if given.cache is None:
        return k, v
    if (past := given.cache.states.get(path)) is not None:
        k, v = torch.cat([past[0], k], -2), torch.cat([past[1], v], -2)
    given.cache.states[path] = (k, v)
    return k, v


class Attention(Mixer):
    """Multi-head attention: each head attends with its own projections of d/h values.

    Sources: Vaswani et al. 2017, §3.2.2; Ainslie et al. 2023, GQA, for groups of heads that share keys and values (one
    group is Shazeer's multi-query attention, 2019); Gemma Team 2024 for the soft cap.
    """

    kind: Literal["attention"] = "attention"
    heads: int = Field(4, ge=1)
    """Number of heads; divides the width."""
    scale: Scale = InverseSqrtScale()
    """What the logits are scaled by."""
    bias: bool = True
    """Whether the four projections have a bias."""
    causal: bool | None = None
    """Whether a token sees only itself and what came before it; null for what the model says."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the attention weights that is dropped."""
    kv_heads: int | None = Field(None, ge=1)
    """Number of key and value heads, each shared by as many query heads; null for one a head."""
    key_width: int | None = Field(None, ge=1)
    """Width of each head's queries and keys, d_k; null for that of its values, width / heads."""
    soft_cap: float | None = Field(None, ge=1e-3, le=1e9)
    """Largest size of a logit, c in c·tanh(logit / c); takes the explicit path. Null for no cap."""

    @model_validator(mode="after")
    def _whole_groups(self) -> Self:
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise ValueError(f"{self.kv_heads} `kv_heads` do not divide {self.heads} heads")
        return self

    def effective(self) -> Self:
        """The same attention; as many key heads as heads is what it has anyway."""
        return self.model_copy(update={"kv_heads": None}) if self.kv_heads == self.heads else self

    def traits(self) -> Traits:
        """Causal unless told otherwise, or nothing is kept; the fused kernel takes no dropout and no cap.

        Dropout draws its masks beside the graph, from a generator of its own, which neither compile nor vmap follows.
        """
        causal, plain = self.causal is not False, not self.dropout
        fused = plain and self.soft_cap is None
        return Traits(causal=causal, attends=True, crosses=True, cached=causal, fused=fused, vmap=plain, compiles=plain)

    def build(self, at: Site) -> nn.Module:
        """(x, given) -> (B, T, D)."""
        if at.width % self.heads:
            raise ImpossibleError(f"{self.heads} heads do not divide a width of {at.width}")
        causal = at.causal if self.causal is None else self.causal
        return _Attention(at, self, causal and not at.cross)
