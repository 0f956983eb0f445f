"""A stack of blocks over embedded tokens, which every Transformer skeleton is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor, nn

from ablate.model.dropout import dropout
from ablate.model.sublayer import Sublayer
from ablate.slots import (
    FeedForward,
    Given,
    ImpossibleError,
    Mixer,
    Norm,
    Placement,
    Position,
    Residual,
    Site,
    is_neutral,
    mark,
    named,
    place,
)


@dataclass(frozen=True)
class BlockParts:
    """What a block is made of; a neutral mixer or feed-forward is left out with its whole sublayer."""

    norm: Norm
    placement: Placement
    residual: Residual
    mixer: Mixer
    feed_forward: FeedForward
    dropout: float
    parallel: bool = False
    cross: Mixer | None = None
    """What reads the other stack's output, in a model that has two."""

    def branches(self, at: Site) -> dict[Site, Mixer | FeedForward]:
        """What the block does, in order, by place."""
        cross = at.child("cross", "mixer", cross=True, causal=False, position=None)
        found: dict[Site, Mixer | FeedForward | None] = {
            at.child("mixer"): self.mixer,
            cross: self.cross,
            at.child("feed_forward"): self.feed_forward,
        }
        return {site: branch for site, branch in found.items() if branch is not None and not is_neutral(branch)}

    def sublayers(self, at: Site) -> Iterator[tuple[Site, Mapping[Site, Mixer | FeedForward]]]:
        """The branches of each sublayer: one, or all side by side."""
        branches = self.branches(at)
        if self.parallel and len(branches) > 1:
            yield at.child("parallel"), branches
        else:
            yield from ((site, {site: branch}) for site, branch in branches.items())

    def normalises(self, at: Site) -> bool:
        """Whether the stream that leaves the block is normalised, or is to be left as it is."""
        sites = [site for site, _ in self.sublayers(at)]
        return not self.residual.final_norm or bool(sites and self.placement.wiring(sites[-1]).stream)


class Block(nn.Module):
    """A mixer's sublayer, one for cross-attention where there is a memory, and a feed-forward's; or all in one."""

    def __init__(self, parts: BlockParts, at: Site) -> None:
        super().__init__()
        for site, branches in parts.sublayers(at):
            for place_of_branch, branch in branches.items():
                if place_of_branch.cross and not branch.traits().crosses:
                    raise ImpossibleError(f"{named(branch)} cannot read another sequence")
            wiring = parts.placement.wiring(site)
            sublayer = Sublayer(
                branches, site, norm=parts.norm, wiring=wiring, residual=parts.residual, p=parts.dropout
            )
            self.add_module(site.path.rpartition(".")[2], sublayer)

    def forward(self, x: Tensor, given: Given) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        for sublayer in self.children():
            x = sublayer(x, given)
        return x


class Stack(nn.Module):
    """Embedding, position, blocks and a derived final norm: token ids (B, T) -> (B, T, D).

    The final norm is derived: it is there wherever the last block leaves the stream itself unnormalised and the
    residual does not opt out, so that no comparison can forget it.
    """

    def __init__(
        self,
        blocks: Sequence[BlockParts],
        at: Site,
        *,
        embed: nn.Embedding | Projection,
        position: Position,
        p: float,
        scale_embedding: bool = False,
    ) -> None:
        super().__init__()
        at = replace(at, position=position)
        self.embed = embed
        self.factor = at.width**0.5 if scale_embedding else 1.0
        self.position = place(position, at.child("position"))
        self.dropout = dropout(p, at.child("dropout"))
        sites = [at.child(f"block.{layer}", "block", layer=layer) for layer in range(len(blocks))]
        self.blocks = nn.ModuleList(mark(Block(parts, site), site) for parts, site in zip(blocks, sites, strict=True))
        last = blocks[-1]
        self.final_norm = (
            nn.Identity() if last.normalises(sites[-1]) else place(last.norm, at.child("final_norm", "norm"))
        )

    def forward(self, tokens: Tensor, given: Given) -> Tensor:
        """(B, T) or (B, T, F) -> (B, T, D); the cache, if one is given, then holds these tokens too."""
        x = self.embed(tokens)
        if self.factor != 1.0:
            x = x * self.factor
        x = self.dropout(self.position(x, given.start))
        for block in self.blocks:
            x = block(x, given)
        if given.cache is not None:
            given.cache.length += tokens.shape[1]
        out: Tensor = self.final_norm(x)
        return out


def embedding(at: Site, vocabulary: int) -> nn.Embedding:
    """A table of vectors for tokens, at ``embed``."""
    return mark(nn.Embedding(vocabulary, at.width), at.child("embed"))


def projection(at: Site, features: int) -> Projection:
    """A linear map of tokens that are values, at ``embed``; its matrix is no looked-up table, and not drawn as one."""
    return mark(Projection(features, at.width), at.child("embed", "projection"))


class Projection(nn.Linear):
    """Values (..., F) -> vectors (..., D) of the parameters' own type, as a table would give them."""

    def forward(self, values: Tensor) -> Tensor:
        """(..., F) -> (..., D)."""
        kind = self.weight.dtype
        return super().forward(values.to(kind)).to(kind)


def check_position(position: Position, blocks: Sequence[BlockParts]) -> None:
    """What acts on queries and keys needs a mixer of the model that has them, unless there is no mixer at all.

    Raises:
        ImpossibleError: no mixer has them.
    """
    mixers = [parts.mixer for parts in blocks if not is_neutral(parts.mixer)]
    if mixers and position.traits().needs_attention and not any(mixer.traits().attends for mixer in mixers):
        raise ImpossibleError(f"{named(position)} acts on queries and keys, and {named(mixers[0])} has none for it")
