"""Residuals: how a sublayer's update joins the stream."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from ablate.slots import Residual, Site


class _Add(nn.Module):
    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        return x + update


class _UpdateAlone(nn.Module):
    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        return update


class AddResidual(Residual):
    """Add the update to the stream: x + f(x).

    Source: He et al. 2016, Deep Residual Learning.
    """

    kind: Literal["add"] = "add"

    def build(self, at: Site) -> nn.Module:
        """(x, update), both (B, T, D) -> (B, T, D)."""
        return _Add()


class NoResidual(Residual):
    """The update alone, with no skip connection: f(x).

    Source: Dong et al. 2021, Attention Is Not All You Need: without skips, tokens collapse to rank one with depth.
    """

    kind: Literal["none"] = "none"

    def build(self, at: Site) -> nn.Module:
        """(x, update), both (B, T, D) -> (B, T, D)."""
        return _UpdateAlone()
