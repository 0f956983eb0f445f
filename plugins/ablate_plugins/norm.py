"""Norms: what normalises the stream, token by token but for batch norm."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ablate.slots import Norm, Site, Traits


class _Batch(nn.BatchNorm1d):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = super().forward(x.reshape(-1, self.num_features)).reshape(x.shape)
        return out


class _Scale(nn.Module):
    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.tensor(width**0.5))

    def forward(self, x: Tensor) -> Tensor:
        length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x * (self.gain / length.clamp(min=self.eps))


class _DynamicTanh(nn.Module):
    def __init__(self, width: int, start: float) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(start))
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * torch.tanh(self.alpha * x) + self.bias


class _Rms(nn.RMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        gain = self.weight.to(x.dtype)  # torch takes a slower path, and warns, where the two differ under autocast
        return nn.functional.rms_norm(x, self.normalized_shape, gain, self.eps)


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
        return _Rms(at.width, eps=self.eps)


class BatchNorm(Norm):
    """Centre and scale each feature over the batch and its positions, with a learned gain and bias.

    In training the statistics are those of the batch, biased variance, ``eps`` inside the root. So a token sees the
    other sequences and the padding, and in a causal model it sees what comes after it: training leaks the future, and
    its loss is no likelihood. In evaluation they are running averages of training's (there the variance is unbiased),
    a token is treated alone, and nothing leaks. Training needs two tokens in a batch.

    Source: Ioffe and Szegedy 2015, Batch Normalization; Shen et al. 2020, PowerNorm, for Transformers.
    """

    kind: Literal["batch"] = "batch"
    momentum: float = Field(0.1, gt=0, le=1)
    """Share of the newest batch in the running averages."""
    eps: float = Field(1e-5, gt=0)
    """Added to the variance."""

    def build(self, at: Site) -> nn.Module:
        """(..., D) -> (..., D); all axes but the last are one in the statistics."""
        return _Batch(at.width, eps=self.eps, momentum=self.momentum)

    def traits(self) -> Traits:
        """In training a token sees every other of its batch, later ones too."""
        return Traits(causal=False, position_wise=False, batch_dependent=True)


class ScaleNorm(Norm):
    """Scale each token to one learned length, √D at the start.

    x * g / max(‖x‖, eps): an RMS norm whose gain is one number. Source: Nguyen and Salazar 2019, Transformers without
    Tears, §2.2.
    """

    kind: Literal["scale"] = "scale"
    eps: float = Field(1e-5, gt=0)
    """The smallest length that is divided by."""

    def build(self, at: Site) -> nn.Module:
        """(..., D) -> (..., D)."""
        return _Scale(at.width, self.eps)


class DynamicTanh(Norm):
    """Squash each value by a tanh of learned steepness, with a learned gain and bias, and no statistics.

    DyT: gamma * tanh(alpha * x) + beta, where alpha is one number. Source: Zhu et al. 2025, Transformers without
    Normalization.
    """

    kind: Literal["dynamic_tanh"] = "dynamic_tanh"
    start: float = Field(0.5, gt=0)
    """What alpha is at the start."""

    def build(self, at: Site) -> nn.Module:
        """(..., D) -> (..., D)."""
        return _DynamicTanh(at.width, self.start)


class NoNorm(Norm):
    """Leave the stream as it is.

    Source: Zhang et al. 2019, Fixup Initialization, for residual networks without normalisation.
    """

    kind: Literal["none"] = "none"

    def build(self, at: Site) -> nn.Module:
        """(..., D) -> (..., D), unchanged."""
        return nn.Identity()
