"""Dot-product attention over queries and keys that are ready to be multiplied."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from ablate.model.dropout import dropout
from ablate.slots import Site


class Attend(nn.Module):
    """softmax(q·kᵀ)·v for each head; any scale or rotation has been applied to q and k before.

    The fused kernel is used with ``scale=1.0``; it takes no generator and caps no logits, so attention dropout and a
    soft cap take the explicit path. Sources: Vaswani et al. 2017, §3.2; Bello et al. 2017 for the cap, tanh(x/c)·c.
    """

    def __init__(self, at: Site, *, causal: bool, p: float, soft_cap: float | None = None) -> None:
        super().__init__()
        self.causal = causal
        self.soft_cap = soft_cap
        self.explicit = p > 0 or soft_cap is not None
        self.dropout = dropout(p, at.child("dropout"))

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None = None, bias: Tensor | None = None
    ) -> Tensor:
        """Each head's mixture of values: (B, H, T, E).

        Args:
            q: (B, H, T, K).
            k: (B, H, S, K).
            v: (B, H, S, E).
            visible: which keys each query sees, broadcast to (B, H, T, S); None for what ``causal`` says alone.
            bias: (H, T, S), added to the logits.
        """
        if self.explicit:
            weights = attention_weights(self.logits(q, k, bias), self.seen(q, k, visible))
            out: Tensor = self.dropout(weights) @ v
            return out
        if visible is None and bias is None:
            return scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=1.0)
        mask = self.seen(q, k, visible)
        if bias is not None:
            mask = bias.to(q.dtype) if mask is None else bias.to(q.dtype).masked_fill(~mask, float("-inf"))
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)

    def logits(self, q: Tensor, k: Tensor, bias: Tensor | None = None) -> Tensor:
        """What the softmax is taken of, over all keys: (B, H, T, S)."""
        found = q @ k.transpose(-2, -1)
        if self.soft_cap is not None:
            found = self.soft_cap * torch.tanh(found / self.soft_cap)
        return found if bias is None else found + bias

    def seen(self, q: Tensor, k: Tensor, visible: Tensor | None) -> Tensor | None:
        """Which keys each query sees, or None for all of them."""
        if visible is None and self.causal:
            return before(q.shape[-2], k.shape[-2], q.device)
        return visible


def before(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """Look-ahead mask (T, S) for the last T of S tokens: True where a key is not later than the query."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def visible_keys(queries: int, keys: int, *, causal: bool, valid: Tensor | None, device: torch.device) -> Tensor | None:
    """Which keys the last T of S tokens see, broadcast to (B, H, T, S); None where the plain causal mask says it all.

    A query that would see nothing at all, as of a sequence without tokens, sees everything: its output is never used,
    and no NaN comes of it.
    """
    if valid is None:
        return None if queries == keys or not causal else before(queries, keys, device)
    seen = valid[:, None, None, :]
    if causal:
        seen = seen & before(queries, keys, device)
    return seen | ~seen.any(-1, keepdim=True)


def attention_weights(logits: Tensor, seen: Tensor | None) -> Tensor:
    """Logits (..., T, S) -> weights (..., T, S) whose rows sum to 1 over the keys that are seen."""
    if seen is not None:
        logits = logits.masked_fill(~seen, float("-inf"))
    return logits.softmax(-1)
