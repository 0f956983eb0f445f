"""The decoder-only Transformer."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal, Self

from pydantic import model_validator
from torch import nn

from ablate.model.networks import LanguageModel, cached
from ablate.model.stack import Stack, check_position, embedding
from ablate.slots import Form, Model, Output, Site, Traits, place
from ablate_plugins.model.layers import Layered, check_layers
from ablate_plugins.output import UntiedOutput


class Decoder(Layered, Model):
    """A causal, decoder-only Transformer.

    Source: Vaswani et al. 2017; Radford et al. 2018 for the decoder alone.
    """

    kind: Literal["decoder"] = "decoder"
    output: Output = UntiedOutput()
    """How the stream becomes logits."""

    forms: ClassVar[frozenset[Form]] = frozenset({"language_modelling"})

    @model_validator(mode="after")
    def _layers_fit(self) -> Self:
        check_layers(self, "layers", self.layers, self.depth)
        return self

    def effective(self) -> Self:
        """The same blocks, said in the one way."""
        return self.model_copy(update=self.simplest(("layers", self.depth)))

    def traits(self) -> Traits:
        """It is what its blocks are."""
        return self.traits_of(self.parts(self.depth, self.layers))

    def build(self, at: Site) -> nn.Module:
        """Token ids (B, T) -> logits (B, T, V)."""
        site = replace(at, width=self.width, depth=self.depth)
        blocks = self.parts(self.depth, self.layers)
        check_position(self.position, blocks)
        embed = embedding(site, at.vocabulary)
        stack = Stack(
            blocks,
            site,
            embed=embed,
            position=self.position,
            p=self.dropout,
            scale_embedding=self.scale_embedding,
        )
        return LanguageModel(
            stack, place(self.output, site.child("head"), embed), cached=cached(blocks), context=at.context
        )
