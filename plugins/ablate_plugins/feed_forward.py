"""Feed-forward networks: what transforms each token alone."""

from __future__ import annotations

from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from ablate.slots import FeedForward, Site, mark


class SquaredReLU(nn.Module):
    """max(0, x)², of any shape."""

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        return nn.functional.relu(x).square()


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "squared_relu": SquaredReLU,
}


def inner_width(at: Site, ratio: float, width: int | None) -> int:
    """The inner width that is asked for: ``width`` itself, or the stream's times ``ratio``, rounded and at least 1."""
    return width or max(1, round(ratio * at.width))


class _Mlp(nn.Module):
    def __init__(self, at: Site, inner: int, activation: type[nn.Module]) -> None:
        super().__init__()
        self.w1 = nn.Linear(at.width, inner)
        self.activation = mark(activation(), at.child("hidden", width=inner))
        self.w2 = nn.Linear(inner, at.width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.w2(self.activation(self.w1(x)))
        return out


class _Gated(nn.Module):
    def __init__(self, at: Site, inner: int, activation: type[nn.Module], bias: bool) -> None:
        super().__init__()
        self.w1 = nn.Linear(at.width, inner, bias=bias)
        self.activation = mark(activation(), at.child("hidden", width=inner))
        self.w3 = nn.Linear(at.width, inner, bias=bias)
        self.w2 = nn.Linear(inner, at.width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.w2(self.activation(self.w1(x)) * self.w3(x))
        return out


class _Zeros(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)


class Mlp(FeedForward):
    """Two linear maps with an activation between them: w2(activation(w1(x))).

    Source: Vaswani et al. 2017, §3.3; So et al. 2021, Primer, for the squared ReLU.
    """

    kind: Literal["mlp"] = "mlp"
    ratio: float = Field(4.0, gt=0)
    """Inner width as a multiple of the stream's; rounded to a whole number."""
    width: int | None = Field(None, ge=1)
    """Inner width itself, in place of ``ratio``."""
    activation: Literal["relu", "gelu", "silu", "squared_relu"] = "gelu"
    """What stands between the two maps."""

    @model_validator(mode="after")
    def _one_width(self) -> Self:
        if self.width is not None and self.ratio != type(self).model_fields["ratio"].default:
            raise ValueError("give `ratio` or `width`, not both")
        return self

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D)."""
        return _Mlp(at, inner_width(at, self.ratio, self.width), ACTIVATIONS[self.activation])


class Gated(FeedForward):
    """An activated linear map times a second one, then a third: w2(activation(w1(x)) * w3(x)).

    With relu it is ReGLU, with gelu GEGLU, with silu SwiGLU. It has three matrices where an mlp has two, so at the same
    inner width it is half as large again; `two_thirds` makes up for that.
    Source: Shazeer 2020, GLU Variants Improve Transformer.
    """

    kind: Literal["gated"] = "gated"
    ratio: float = Field(4.0, gt=0)
    """Inner width as a multiple of the stream's; rounded to a whole number."""
    width: int | None = Field(None, ge=1)
    """Inner width itself, in place of ``ratio``."""
    activation: Literal["relu", "gelu", "silu"] = "silu"
    """What the gate goes through: relu is ReGLU, gelu GEGLU, silu SwiGLU."""
    two_thirds: bool = False
    """Whether the inner width is two thirds of what ``ratio`` says, so that the matrices are as large as an mlp's."""
    bias: bool = False
    """Whether the three maps have a bias."""

    @model_validator(mode="after")
    def _one_width(self) -> Self:
        if self.width is not None and self.ratio != type(self).model_fields["ratio"].default:
            raise ValueError("give `ratio` or `width`, not both")
        if self.width is not None and self.two_thirds:
            raise ValueError("give `two_thirds` with `ratio`: a `width` is taken as it is")
        return self

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D)."""
        ratio = self.ratio * 2 / 3 if self.two_thirds else self.ratio
        return _Gated(at, inner_width(at, ratio, self.width), ACTIVATIONS[self.activation], self.bias)


class NoFeedForward(FeedForward):
    """Leave the feed-forward sublayer out.

    Source: Dong et al. 2021, Attention is not all you need, for attention without it.
    """

    kind: Literal["none"] = "none"

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> zeros (B, T, D), for a place that cannot leave it out."""
        return _Zeros()
