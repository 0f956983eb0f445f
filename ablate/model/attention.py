"""Scaled or unscaled dot-product attention over queries and keys that are ready to be multiplied."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from ablate.model.dropout import dropout
from ablate.slots import Site


class Attend(nn.Module):
    """softmax(q·kᵀ)·v for each head; any scale or rotation has been applied to q and k before.

    The fused kernel is used with ``scale=1.0``; it takes no generator, so attention dropout takes the explicit path.
    Source: Vaswani et al. 2017, §3.2.
    """

    def __init__(self, at: Site, *, causal: bool, p: float) -> None:
        super().__init__()
        self.causal = causal
        self.explicit = p > 0
        self.dropout = dropout(p, at.child("dropout"))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Three tensors (B, H, T, K) -> (B, H, T, K)."""
        if not self.explicit:
            return scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=1.0)
        weights = attention_weights(q @ k.transpose(-2, -1), causal=self.causal)
        out: Tensor = self.dropout(weights) @ v
        return out


def attention_weights(logits: Tensor, *, causal: bool) -> Tensor:
    """Logits (..., T, T) -> weights (..., T, T) whose rows sum to 1 over the valid keys."""
    if causal:
        later = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).triu(1)
        logits = logits.masked_fill(later, float("-inf"))
    return logits.softmax(-1)
