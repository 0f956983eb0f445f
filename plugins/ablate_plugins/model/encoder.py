"""The encoder-only Transformer."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal, Self

from pydantic import model_validator
from torch import nn

from ablate.model.networks import Classifier, Pooling
from ablate.model.stack import Stack, check_position, embedding, projection
from ablate.slots import Form, Model, Site, Traits, mark
from ablate_plugins.model.layers import Layered, check_layers


class Encoder(Layered, Model):
    """A Transformer in which every token sees all others, pooled to one label a sequence.

    Source: Vaswani et al. 2017; Devlin et al. 2019, BERT, for the encoder alone.
    """

    kind: Literal["encoder"] = "encoder"
    pooling: Pooling = "mean"
    """What stands for the sequence: the mean or the maximum over its tokens, or its first or last token."""

    forms: ClassVar[frozenset[Form]] = frozenset({"classification"})

    @model_validator(mode="after")
    def _layers_fit(self) -> Self:
        check_layers(self, "layers", self.layers, self.depth)
        return self

    def effective(self) -> Self:
        """The same blocks, said in the one way."""
        return self.model_copy(update=self.simplest(("layers", self.depth)))

    def traits(self) -> Traits:
        """It is what its blocks are, and sees both ways."""
        return replace(self.traits_of(self.parts(self.depth, self.layers)), causal=False)

    def build(self, at: Site) -> nn.Module:
        """Token ids (B, T), or values (B, T, F), and which of them are tokens (B, T) -> logits (B, C)."""
        features = at.interface.features if at.interface is not None else 0
        site = replace(at, width=self.width, depth=self.depth, causal=False, stack="encoder")
        blocks = self.parts(self.depth, self.layers)
        check_position(self.position, blocks)
        stack = Stack(
            blocks,
            site,
            embed=projection(site, features) if features else embedding(site, at.vocabulary),
            position=self.position,
            p=self.dropout,
            scale_embedding=self.scale_embedding,
        )
        classes = at.interface.classes if at.interface is not None else at.vocabulary
        head = mark(nn.Linear(self.width, classes), site.child("head", vocabulary=classes))
        return Classifier(stack, head, pooling=self.pooling)
