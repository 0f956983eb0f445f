"""Feed-forward networks: what transforms each token alone."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from ablate.slots import FeedForward, Site, mark

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}


class _Mlp(nn.Module):
    def __init__(self, at: Site, inner: int, activation: type[nn.Module]) -> None:
        super().__init__()
        self.w1 = nn.Linear(at.width, inner)
        self.activation = mark(activation(), at.child("hidden", width=inner))
        self.w2 = nn.Linear(inner, at.width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.w2(self.activation(self.w1(x)))
        return out


class Mlp(FeedForward):
    """Two linear maps with an activation between them: w2(activation(w1(x))).

    Source: Vaswani et al. 2017, §3.3.
    """

    kind: Literal["mlp"] = "mlp"
    ratio: float = Field(4.0, gt=0)
    """Inner width as a multiple of the stream's; rounded to a whole number."""
    width: int | None = Field(None, ge=1)
    """Inner width itself, in place of ``ratio``."""
    activation: Literal["relu", "gelu", "silu"] = "gelu"
    """What stands between the two maps."""

    @model_validator(mode="after")
    def _one_width(self) -> Self:
        if self.width is not None and self.ratio != type(self).model_fields["ratio"].default:
            raise ValueError("give `ratio` or `width`, not both")
        return self

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D)."""
        inner = self.width or max(1, round(self.ratio * at.width))
        return _Mlp(at, inner, ACTIVATIONS[self.activation])
