"""Outputs: how the stream becomes logits."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from ablate.slots import Output, Site


class _Tied(nn.Module):
    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.weight = embedding.weight
        self.factor = embedding.embedding_dim**-0.5

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x * self.factor, self.weight)


class UntiedOutput(Output):
    """A matrix of its own turns the stream into logits.

    Source: Press and Wolf 2017, Using the Output Embedding, where it is what tying is compared with.
    """

    kind: Literal["untied"] = "untied"

    def build(self, at: Site, embedding: nn.Embedding) -> nn.Module:
        """(B, T, D) -> (B, T, V)."""
        return nn.Linear(at.width, at.vocabulary, bias=False)


class TiedOutput(Output):
    """The input's embedding, transposed and divided by √d, turns the stream into logits.

    One matrix, counted once and initialised as the embedding; the factor keeps the logits' variance at 1 where
    embeddings have unit variance. Source: Press and Wolf 2017; Raffel et al. 2020 for the factor.
    """

    kind: Literal["tied"] = "tied"

    def build(self, at: Site, embedding: nn.Embedding) -> nn.Module:
        """(B, T, D) -> (B, T, V)."""
        return _Tied(embedding)
