"""Residuals: how a sublayer's update joins the stream."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ablate.slots import Residual, Site


class _Add(nn.Module):
    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        return x + update


class _UpdateAlone(nn.Module):
    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        return update


class _Weighted(nn.Module):
    def __init__(self, skip: float, branch: float) -> None:
        super().__init__()
        self.skip = skip
        self.branch = branch

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        return x * self.skip + update * self.branch


class _Gated(nn.Module):
    def __init__(self, gate: Tensor) -> None:
        super().__init__()
        self.gate = nn.Parameter(gate)

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        return x + self.gate * update


class _Highway(nn.Module):
    def __init__(self, width: int, start: float) -> None:
        super().__init__()
        self.start = start  # beside the bias, since a bias is zero when training starts
        self.gate = nn.Linear(width, width)

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        opened = torch.sigmoid(self.gate(x) + self.start)
        return opened * update + (1 - opened) * x


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


class WeightedResidual(Residual):
    """Add the update to the stream with fixed weights: skip * x + branch * f(x).

    With both weights at 1 it is `add`. Source: He et al. 2016, Identity Mappings, §3.1, for the skip's weight; Szegedy
    et al. 2017, Inception-v4, §3.3, for the branch's.
    """

    kind: Literal["weighted"] = "weighted"
    skip: float = Field(1.0, ge=0)
    """What the stream is multiplied by."""
    branch: float = Field(1.0, gt=0)
    """What the update is multiplied by."""

    def build(self, at: Site) -> nn.Module:
        """(x, update), both (B, T, D) -> (B, T, D)."""
        return _Weighted(self.skip, self.branch)


class DeepNormResidual(Residual):
    """Add the update to a stream that is scaled up by the depth: alpha * x + f(x).

    alpha multiplies the skip, not the branch. One stack of N blocks: (2N)^¼; an encoder of N blocks with a decoder of
    M: 0.81 (N⁴M)^(1/16) in the encoder, (3M)^¼ in the decoder. Meant with `placement: post` and `initializer:
    deepnorm`, which scales the branch's matrices down. Source: Wang et al. 2022, DeepNet.
    """

    kind: Literal["deepnorm"] = "deepnorm"

    def build(self, at: Site) -> nn.Module:
        """(x, update), both (B, T, D) -> (B, T, D)."""
        return _Weighted(_alpha(at), 1.0)


class ReZeroResidual(Residual):
    """Add the update times one learned number that starts at 0: x + alpha * f(x).

    At the start a block without norms is the identity; so no norm follows the last block. Each sublayer has an alpha of
    its own. Source: Bachlechner et al. 2021, ReZero Is All You Need.
    """

    kind: Literal["rezero"] = "rezero"
    final_norm = False

    def build(self, at: Site) -> nn.Module:
        """(x, update), both (B, T, D) -> (B, T, D)."""
        return _Gated(torch.zeros(()))


class LayerScaleResidual(Residual):
    """Add the update times a learned gain for each feature that starts small: x + gain * f(x).

    Source: Touvron et al. 2021, Going Deeper with Image Transformers (CaiT), §2.
    """

    kind: Literal["layer_scale"] = "layer_scale"
    start: float = Field(1e-4, ge=0)
    """What every gain is at the start; the paper has 0.1 to depth 18, 1e-5 to 24, 1e-6 beyond."""

    def build(self, at: Site) -> nn.Module:
        """(x, update), both (B, T, D) -> (B, T, D)."""
        return _Gated(torch.full((at.width,), self.start))


class HighwayResidual(Residual):
    """Let a learned gate choose between the update and the stream: t * f(x) + (1 - t) * x.

    t = sigmoid(W x + b) for each feature, read from the stream, which brings D² + D parameters to each sublayer.
    Source: Srivastava et al. 2015, Highway Networks.
    """

    kind: Literal["highway"] = "highway"
    start: float = Field(-2.0, ge=-20, le=20)
    """What b is at the start; below 0 the gate starts nearly closed, and the stream passes."""

    def build(self, at: Site) -> nn.Module:
        """(x, update), both (B, T, D) -> (B, T, D)."""
        return _Highway(at.width, self.start)


def _alpha(at: Site) -> float:
    """DeepNorm's weight of the skip."""
    if at.other_depth is None:
        return float((2 * at.depth) ** 0.25)
    if at.stack == "encoder":
        return float(0.81 * (at.depth**4 * at.other_depth) ** (1 / 16))
    return float((3 * at.depth) ** 0.25)
