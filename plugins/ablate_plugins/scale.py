"""Scales: what queries and keys are multiplied by before their product."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from ablate.slots import Scale, Site


class _Scaled(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return q * self.factor, k


class _Unscaled(nn.Module):
    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return q, k


class InverseSqrtScale(Scale):
    """Divide the logits by √d_k, which keeps their variance at 1 for unit queries and keys.

    Source: Vaswani et al. 2017, §3.2.1.
    """

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"

    def build(self, at: Site) -> nn.Module:
        """(q, k), both (B, H, T, K) -> the same shapes."""
        return _Scaled(at.width**-0.5)


class NoScale(Scale):
    """Leave the logits as they are; their variance is d_k, so the softmax saturates.

    Source: Vaswani et al. 2017, §3.2.1, footnote 4.
    """

    kind: Literal["none"] = "none"

    def build(self, at: Site) -> nn.Module:
        """(q, k), both (B, H, T, K) -> the same shapes."""
        return _Unscaled()
