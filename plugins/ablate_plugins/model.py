"""Models: the skeletons that an experiment can start from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from torch import nn

from ablate.model.decoder import BlockParts, DecoderStack
from ablate.slots import (
    Component,
    FeedForward,
    Mixer,
    Model,
    Norm,
    Options,
    Output,
    Placement,
    Position,
    Residual,
    Site,
)
from ablate_plugins.feed_forward import Mlp
from ablate_plugins.mixer import Attention
from ablate_plugins.norm import LayerNorm
from ablate_plugins.output import UntiedOutput
from ablate_plugins.placement import PreNorm
from ablate_plugins.position import LearnedPosition, NoPosition, RotaryPosition
from ablate_plugins.residual import AddResidual

BY_BLOCK = ("norm", "placement", "residual", "mixer", "feed_forward", "dropout")
"""The options that a block may have otherwise than its model."""


class LayerOverride(Options):
    """What some of the blocks have otherwise than the model; an option that is not given is as the model has it."""

    range: list[int] = Field(json_schema_extra={"minItems": 2, "maxItems": 2})
    """First block, counted from 0, and the one after the last."""
    norm: Norm | None = None
    """What normalises in these blocks."""
    placement: Placement | None = None
    """Where in their sublayers the norm sits."""
    residual: Residual | None = None
    """How their updates join the stream."""
    mixer: Mixer | None = None
    """What moves information between tokens in them."""
    feed_forward: FeedForward | None = None
    """What transforms each token alone in them."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Share dropped of the output of their sublayers."""

    @field_validator("range")
    @classmethod
    def _some_blocks(cls, ends: list[int]) -> list[int]:
        if len(ends) != 2:
            raise ValueError("`range` must be two numbers: the first block, and the one after the last")
        if ends[0] < 0:
            raise ValueError(f"`range` must begin at block 0 or later, not at {ends[0]}")
        if ends[1] <= ends[0]:
            raise ValueError(f"`range: {ends}` has no block: its second number is the block after the last")
        return ends

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.changes:
            raise ValueError(f"an override of layers must set at least one of {', '.join(BY_BLOCK)}")
        return self

    @property
    def changes(self) -> dict[str, Any]:
        """The options that are given."""
        return {name: value for name in BY_BLOCK if (value := getattr(self, name)) is not None}


class Decoder(Model):
    """A causal, decoder-only Transformer.

    Source: Vaswani et al. 2017; Radford et al. 2018 for the decoder alone.
    """

    kind: Literal["decoder"] = "decoder"
    width: int = Field(128, ge=1)
    """Width of the stream, D."""
    depth: int = Field(4, ge=1, le=4096)
    """Number of blocks."""
    norm: Norm = LayerNorm()
    """What normalises."""
    placement: Placement = PreNorm()
    """Where in a sublayer the norm sits."""
    residual: Residual = AddResidual()
    """How a sublayer's update joins the stream."""
    mixer: Mixer = Attention()
    """What moves information between tokens."""
    feed_forward: FeedForward = Mlp()
    """What transforms each token alone."""
    position: Position = LearnedPosition()
    """How the model is told where a token stands."""
    output: Output = UntiedOutput()
    """How the stream becomes logits."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share dropped of each sublayer's output and of the embeddings with their positions."""
    layers: list[LayerOverride] = Field(default_factory=list)
    """Blocks that are otherwise than the rest: `[{range: [0, 3], placement: post}]`."""

    @model_validator(mode="after")
    def _layers_fit(self) -> Self:
        problems: list[InitErrorDetails] = [
            {"type": PydanticCustomError("layers", words), "loc": ("layers", *place), "input": None}
            for place, words in self._misfits()
        ]
        if problems:
            raise ValidationError.from_exception_data(type(self).__name__, problems)
        return self

    def build(self, at: Site) -> nn.Module:
        """Token ids (B, T) -> logits (B, T, V)."""
        site = replace(at, width=self.width, depth=self.depth, position=self.position)
        return DecoderStack(self._blocks(self.depth), site, position=self.position, output=self.output, p=self.dropout)

    def effective(self) -> Self:
        """The same blocks, said in the one way: without a norm its placement is dead, without a mixer a rotation is.

        An option of the model is what the last block has, which also decides on the final norm (but dropout is that
        of the embeddings too); what other blocks have otherwise is in as few overrides as can be.
        """
        found = self._blocks(self.depth if self.layers else 1)  # without overrides one block is as all are
        blocks = [replace(block, placement=PreNorm()) if _off(block.norm) else block for block in found]
        last = replace(blocks[-1], dropout=self.dropout)

        def otherwise(layer: int) -> dict[str, Any]:
            mine = {name: getattr(blocks[layer], name) for name in BY_BLOCK}
            return {name: value for name, value in mine.items() if value != getattr(last, name)}

        runs = [(changes, list(layers)) for changes, layers in groupby(range(len(blocks)), otherwise)]
        layers = [LayerOverride(range=[run[0], run[-1] + 1], **changes) for changes, run in runs if changes]
        unturned = isinstance(self.position, RotaryPosition) and all(_off(block.mixer) for block in blocks)
        common = {name: getattr(last, name) for name in BY_BLOCK}
        position = NoPosition() if unturned else self.position
        return self.model_copy(update={**common, "layers": layers, "position": position})

    def _blocks(self, depth: int) -> list[BlockParts]:
        """What each of so many blocks is made of."""
        blocks = [BlockParts(**{name: getattr(self, name) for name in BY_BLOCK})] * depth
        for override in self.layers:
            for layer in range(*override.range):
                blocks[layer] = replace(blocks[layer], **override.changes)
        return blocks

    def _misfits(self) -> Iterator[tuple[tuple[int, str], str]]:
        """Overrides that reach beyond the last block, or set what another has set: where, and what to say of it."""
        setters: dict[tuple[str, int], int] = {}
        for index, override in enumerate(self.layers):
            first, end = override.range
            if end > self.depth:
                blocks = "1 block" if self.depth == 1 else f"{self.depth} blocks"
                yield (index, "range"), f"`range: {override.range}` ends at {end}, and the model has {blocks}"
            for name in override.changes:
                taken = (block for block in range(first, min(end, self.depth)) if (name, block) in setters)
                if (block := next(taken, None)) is not None:
                    other = setters[name, block]
                    yield (index, name), f"`{name}` of block {block} is already set by `layers[{other}]`"
                setters |= {(name, block): index for block in range(first, min(end, self.depth))}


def _off(component: Component) -> bool:
    return getattr(component, "kind", None) == component.neutral
