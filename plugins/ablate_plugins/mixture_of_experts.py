"""The mixture of experts, as a feed-forward network."""

from __future__ import annotations

from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from ablate.slots import FeedForward, Site, mark
from ablate_plugins.feed_forward import ACTIVATIONS, inner_width


class _Expert(nn.Module):
    def __init__(self, width: int, inner: int, activation: type[nn.Module]) -> None:
        super().__init__()
        self.w1 = nn.Linear(width, inner)
        self.activation = activation()
        self.w2 = nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.w2(self.activation(self.w1(x)))
        return out


class _Balance(nn.Module):
    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, probabilities: Tensor, chosen: Tensor) -> Tensor:
        """weight * E * sum_i f_i * P_i, from the router's probabilities and the choices, both (B, T, E)."""
        share = chosen.flatten(0, -2).mean(0)
        share = share / share.sum()  # a token has top_k choices, and f sums to 1
        out: Tensor = self.weight * share.numel() * (share * probabilities.flatten(0, -2).mean(0)).sum()
        return out


class _Mixture(nn.Module):
    def __init__(self, at: Site, options: MixtureOfExperts) -> None:
        super().__init__()
        inner, activation = inner_width(at, options.ratio, options.width), ACTIVATIONS[options.activation]
        self.router = nn.Linear(at.width, options.experts, bias=False)
        self.experts = nn.ModuleList(_Expert(at.width, inner, activation) for _ in range(options.experts))
        self.balance = mark(_Balance(options.balance), at.child("balance", "auxiliary"))
        self.top_k = options.top_k

    def forward(self, x: Tensor) -> Tensor:
        logits = self.router(x)
        # Experts are told apart by small differences, which bfloat16 loses: no less than float32.
        probabilities = logits.to(torch.promote_types(logits.dtype, torch.float32)).softmax(-1)
        best = probabilities.topk(self.top_k, dim=-1).indices
        chosen = torch.zeros_like(probabilities).scatter(-1, best, 1.0)
        gates = probabilities * chosen
        if self.top_k > 1:  # the gate of one alone would be 1 whatever the router says, and teach it nothing
            gates = gates / gates.sum(-1, keepdim=True)
        if self.training:
            self.balance(probabilities, chosen)  # the trainer adds what this gives to the loss
        out = torch.zeros_like(x)
        for expert, gate in zip(self.experts, gates.split(1, -1), strict=True):
            out = out + gate * expert(x)
        return out.type_as(x)


class MixtureOfExperts(FeedForward):
    """Several mlps, of which a router picks the best few for each token and adds them up by its gates.

    The gates are the router's probabilities of the chosen experts, made to sum to 1; with `top_k: 1` the probability as
    it is. No noise is added to the router, and no token is dropped. In training the balance loss E·Σ f·P is added to
    the loss, with f the share of all choices that an expert gets and P its mean probability; it is 1 where all are
    even.

    Every expert is computed for every token and then weighted, by zero where it is not chosen, so that a token's output
    depends on that token alone and runs repeat bit for bit. Time and FLOPs are those of all experts, and are counted
    so: they grow with `experts`, not with `top_k`. Probes do not look at the experts' hidden units.
    Source: Shazeer et al. 2017, Outrageously Large Neural Networks; Fedus et al. 2022, Switch Transformers, for the
    balance loss and for one expert a token.
    """

    kind: Literal["mixture_of_experts"] = "mixture_of_experts"
    experts: int = Field(4, ge=2)
    """Number of experts, E."""
    top_k: int = Field(2, ge=1)
    """How many of them a token goes to."""
    ratio: float = Field(4.0, gt=0)
    """Inner width of each expert as a multiple of the stream's; rounded to a whole number."""
    width: int | None = Field(None, ge=1)
    """Inner width of each expert itself, in place of ``ratio``."""
    activation: Literal["relu", "gelu", "silu", "squared_relu"] = "gelu"
    """What stands between the two maps of an expert."""
    balance: float = Field(0.01, ge=0)
    """Weight of the balance loss."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.width is not None and self.ratio != type(self).model_fields["ratio"].default:
            raise ValueError("give `ratio` or `width`, not both")
        if self.top_k > self.experts:
            raise ValueError(f"`top_k` is {self.top_k}, and there are {self.experts} experts")
        return self

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D)."""
        return _Mixture(at, self)
