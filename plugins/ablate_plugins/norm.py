"""Norms: what normalises the last axis."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import nn

from ablate.slots import Norm, Site


class LayerNorm(Norm):
    """Centre and scale each token to zero mean and unit variance, with a learned gain and bias.

    Biased variance, ``eps`` inside the root. Source: Ba et al. 2016, Layer Normalization.
    """

    kind: Literal["layer"] = "layer"
    eps: float = Field(1e-5, gt=0)
    """Added to the variance."""

    def build(self, at: Site) -> nn.Module:
        """(..., D) -> (..., D)."""
        return nn.LayerNorm(at.width, eps=self.eps)


class RMSNorm(Norm):
    """Scale each token to unit root mean square, with a learned gain and no centring.

    Source: Zhang and Sennrich 2019, Root Mean Square Layer Normalization.
    """

    kind: Literal["rms"] = "rms"
    eps: float = Field(1e-6, gt=0)
    """Added to the mean square."""

    def build(self, at: Site) -> nn.Module:
        """(..., D) -> (..., D)."""
        return nn.RMSNorm(at.width, eps=self.eps)


class NoNorm(Norm):
    """Leave the stream as it is.

    Source: Zhang et al. 2019, Fixup Initialization, for residual networks without normalisation.
    """

    kind: Literal["none"] = "none"

    def build(self, at: Site) -> nn.Module:
        """(..., D) -> (..., D), unchanged."""
        return nn.Identity()
