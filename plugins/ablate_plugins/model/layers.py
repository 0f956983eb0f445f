"""What the blocks of a model are made of, and what some of them have otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from ablate.model.stack import BlockParts
from ablate.slots import FeedForward, Mixer, Norm, Options, Placement, Position, Residual, Traits, is_neutral
from ablate_plugins.feed_forward import Mlp
from ablate_plugins.mixer.attention import Attention
from ablate_plugins.norm import LayerNorm, NoNorm
from ablate_plugins.placement import PreNorm
from ablate_plugins.position import LearnedPosition, NoPosition
from ablate_plugins.residual import AddResidual

BY_BLOCK = ("norm", "placement", "residual", "mixer", "feed_forward", "dropout", "parallel")
"""The options that a block may have otherwise than its model."""

_PARTS = ("norm", "residual", "mixer", "feed_forward", "cross")
"""The components that a block is made of."""


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
    parallel: bool | None = None
    """Whether their branches stand side by side."""

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


class Layered(Options):
    """The options that every Transformer skeleton has; the first stack of blocks it has is ``layers`` of ``depth``."""

    kind: str  # first, as in every component
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
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share dropped of each sublayer's output and of the embeddings with their positions."""
    parallel: bool = False
    """Whether a block's branches stand side by side, x + mixer(norm(x)) + feed_forward(norm(x)), as in GPT-J."""
    scale_embedding: bool = False
    """Whether embeddings are multiplied by √D before positions are added (Vaswani et al. 2017, §3.4)."""
    layers: list[LayerOverride] = Field(default_factory=list)
    """Blocks that are otherwise than the rest: `[{range: [0, 3], placement: post}]`."""

    def parts(self, depth: int, overrides: Sequence[LayerOverride]) -> list[BlockParts]:
        """What each of so many blocks is made of."""
        blocks = [BlockParts(**{name: getattr(self, name) for name in BY_BLOCK})] * depth
        for override in overrides:
            for layer in range(*override.range):
                blocks[layer] = replace(blocks[layer], **override.changes)
        return blocks

    def traits_of(self, blocks: Sequence[BlockParts]) -> Traits:
        """What holds of a model of these blocks, from what holds of each part that takes part."""
        simple = [_simple(each) for each in blocks]
        parts = [getattr(each, slot) for each in simple for slot in _PARTS if getattr(each, slot) is not None]
        inside = [part.traits() for part in {*parts, self.position}]
        return Traits(
            causal=all(each.causal for each in inside),
            batch_dependent=any(each.batch_dependent for each in inside),
            attends=any(each.attends for each in inside),
            cached=True,
            vmap=all(each.vmap for each in inside) and not self.dropout,
            compiles=all(each.compiles for each in inside) and not self.dropout,
        )

    def simplest(self, *stacks: tuple[str, int]) -> dict[str, Any]:
        """The options of the same blocks, said in the one way.

        Without a norm its placement is dead, without any place for it a norm, without a mixer a position that acts in
        one, and in a block of one branch or none there is nothing to stand side by side. An option of the model is what
        the last block of the last stack has (but dropout is that of the embeddings too); what other blocks have
        otherwise is in as few overrides as can be.

        Args:
            stacks: the option that holds each stack's overrides, and its depth.
        """
        found = {name: [_simple(parts) for parts in self._shortest(name, depth)] for name, depth in stacks}
        last = replace(found[stacks[-1][0]][-1], dropout=self.dropout)
        common: dict[str, Any] = {name: getattr(last, name) for name in BY_BLOCK}
        changed = {name: list(_overrides(blocks, common)) for name, blocks in found.items()}
        still = all(is_neutral(parts.mixer) for blocks in found.values() for parts in blocks)
        unused = still and self.position.traits().needs_attention
        return {**common, **changed, "position": NoPosition() if unused else self.position}

    def _shortest(self, name: str, depth: int) -> list[BlockParts]:
        """The blocks of a stack; without overrides one block is as all are."""
        overrides: list[LayerOverride] = getattr(self, name)
        return self.parts(depth if overrides else 1, overrides)


def _simple(parts: BlockParts) -> BlockParts:
    branches = sum(each is not None and not is_neutral(each) for each in (parts.mixer, parts.cross, parts.feed_forward))
    wired = branches and not is_neutral(parts.placement)
    norm = parts.norm if wired or parts.residual.final_norm else NoNorm()
    return replace(
        parts,
        norm=norm,
        placement=PreNorm() if is_neutral(norm) or not branches else parts.placement,
        # Without a branch there is nothing to join, but whether a final norm follows is the residual's to say.
        residual=parts.residual if branches or not parts.residual.final_norm else AddResidual(),
        parallel=parts.parallel and branches > 1,
    )


def _overrides(blocks: Sequence[BlockParts], common: dict[str, Any]) -> Iterator[LayerOverride]:
    def otherwise(layer: int) -> dict[str, Any]:
        mine = {name: getattr(blocks[layer], name) for name in BY_BLOCK}
        return {name: value for name, value in mine.items() if value != common[name]}

    for changes, run in groupby(range(len(blocks)), otherwise):
        layers = list(run)
        if changes:
            yield LayerOverride(range=[layers[0], layers[-1] + 1], **changes)


def check_layers(
    owner: Options, name: str, overrides: Sequence[LayerOverride], depth: int, stack: str = "model"
) -> None:
    """Hold overrides against the stack that they are of, which is called ``stack``.

    Raises:
        ValidationError: one reaches beyond the last block, or sets what another has set.
    """
    problems: list[InitErrorDetails] = [
        {"type": PydanticCustomError("layers", words), "loc": (name, *place), "input": None}
        for place, words in _misfits(name, overrides, depth, stack)
    ]
    if problems:
        raise ValidationError.from_exception_data(type(owner).__name__, problems)


def _misfits(
    name: str, overrides: Sequence[LayerOverride], depth: int, stack: str
) -> Iterator[tuple[tuple[int, str], str]]:
    """Where an override does not fit, and what to say of it."""
    setters: dict[tuple[str, int], int] = {}
    for index, override in enumerate(overrides):
        first, end = override.range
        if end > depth:
            blocks = "1 block" if depth == 1 else f"{depth} blocks"
            yield (index, "range"), f"`range: {override.range}` ends at {end}, and the {stack} has {blocks}"
        for option in override.changes:
            taken = (block for block in range(first, min(end, depth)) if (option, block) in setters)
            if (block := next(taken, None)) is not None:
                other = setters[option, block]
                yield (index, option), f"`{option}` of block {block} is already set by `{name}[{other}]`"
            setters |= {(option, block): index for block in range(first, min(end, depth))}
