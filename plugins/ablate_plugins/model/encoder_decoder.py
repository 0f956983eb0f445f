"""The encoder-decoder Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator
from torch import nn

from ablate.model.networks import EncoderDecoder as Network
from ablate.model.networks import cached
from ablate.model.stack import BlockParts, Stack, check_position, embedding
from ablate.slots import Form, ImpossibleError, Interface, Mixer, Model, Output, Site, Traits, place
from ablate_plugins.mixer.attention import Attention
from ablate_plugins.model.layers import Layered, LayerOverride, check_layers
from ablate_plugins.output import UntiedOutput


class EncoderDecoder(Layered, Model):
    """A Transformer that reads one sequence and writes another, with cross-attention from each block of its decoder.

    Options without `encoder_` are of both stacks. Keys and values of every cross-attention come from the encoder's
    last block. Source: Vaswani et al. 2017, §3.1.
    """

    kind: Literal["encoder_decoder"] = "encoder_decoder"
    encoder_depth: int | None = Field(None, ge=1, le=4096)
    """Number of the encoder's blocks; null for as many as the decoder's, which are `depth`."""
    encoder_layers: list[LayerOverride] = Field(default_factory=list)
    """Blocks of the encoder that are otherwise than the rest; `layers` are the decoder's."""
    cross: Mixer = Attention()
    """What reads the encoder's output in the decoder."""
    output: Output = UntiedOutput()
    """How the stream becomes logits."""
    share_embeddings: bool = False
    """Whether source and target have one table of embeddings, where their tokens are the same."""

    forms: ClassVar[frozenset[Form]] = frozenset({"sequence_to_sequence"})

    @model_validator(mode="after")
    def _layers_fit(self) -> Self:
        check_layers(self, "layers", self.layers, self.depth, "decoder")
        check_layers(self, "encoder_layers", self.encoder_layers, self._encoder_depth, "encoder")
        return self

    def effective(self) -> Self:
        """The same blocks, said in the one way."""
        stacks = ("encoder_layers", self._encoder_depth), ("layers", self.depth)
        depth = None if self.encoder_depth == self.depth else self.encoder_depth
        return self.model_copy(update={**self.simplest(*stacks), "encoder_depth": depth})

    def traits(self) -> Traits:
        """It is what its blocks are; in the encoder, and across, whatever sees both ways sees no later target."""
        writes = self.traits_of(self.parts(self.depth, self.layers))
        return replace(self.traits_of([*self._encoder_parts(), *self._decoder_parts()]), causal=writes.causal)

    def build(self, at: Site) -> nn.Module:
        """Source ids (B, S), which of them are tokens (B, S), target ids (B, T) -> logits (B, T, V)."""
        given = at.interface or Interface(at.context, at.vocabulary, source_context=at.context)
        reading = replace(
            at.child("encoder"),
            width=self.width,
            depth=self._encoder_depth,
            other_depth=self.depth,
            stack="encoder",
            causal=False,
            context=given.source_context,
            vocabulary=given.source_vocabulary,
        )
        first = self._encoder_depth
        writing = replace(at, width=self.width, depth=self.depth, other_depth=first, stack="decoder", first=first)
        embed = embedding(writing, at.vocabulary)
        if self.share_embeddings and given.source_vocabulary != at.vocabulary:
            tokens = f"the source has {given.source_vocabulary} tokens, the target {at.vocabulary}"
            raise ImpossibleError(f"embeddings cannot be shared: {tokens}")
        source = embed if self.share_embeddings else embedding(reading, given.source_vocabulary)
        blocks = self._decoder_parts()
        check_position(self.position, [*self._encoder_parts(), *blocks])
        encoder = self._stack(self._encoder_parts(), reading, source)
        decoder = self._stack(blocks, writing, embed)
        head = place(self.output, writing.child("head"), embed)
        return Network(encoder, decoder, head, cached=cached(blocks), context=at.context)

    @property
    def _encoder_depth(self) -> int:
        return self.encoder_depth or self.depth

    def _encoder_parts(self) -> list[BlockParts]:
        return self.parts(self._encoder_depth, self.encoder_layers)

    def _decoder_parts(self) -> list[BlockParts]:
        return [replace(parts, cross=self.cross) for parts in self.parts(self.depth, self.layers)]

    def _shortest(self, name: str, depth: int) -> list[BlockParts]:
        """All blocks of a stack: what is dead in one may not be in the other, which has one branch more."""
        return self._decoder_parts() if name == "layers" else self._encoder_parts()

    def _stack(self, blocks: Sequence[BlockParts], at: Site, embed: nn.Embedding) -> Stack:
        return Stack(
            blocks, at, embed=embed, position=self.position, p=self.dropout, scale_embedding=self.scale_embedding
        )
