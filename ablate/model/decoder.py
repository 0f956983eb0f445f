"""The decoder-only skeleton: embedding, position, blocks, a derived final norm, logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from ablate.model.dropout import dropout
from ablate.model.sublayer import Sublayer
from ablate.slots import FeedForward, Mixer, Norm, Output, Placement, Position, Residual, Site, mark, place


@dataclass(frozen=True)
class BlockParts:
    """What a block is made of."""

    norm: Norm
    placement: Placement
    residual: Residual
    mixer: Mixer
    feed_forward: FeedForward
    dropout: float


class Block(nn.Module):
    """A mixer sublayer, then a feed-forward sublayer: (B, T, D) -> (B, T, D)."""

    def __init__(self, parts: BlockParts, at: Site) -> None:
        super().__init__()
        branches: dict[str, Mixer | FeedForward] = {"mixer": parts.mixer, "feed_forward": parts.feed_forward}
        for name, branch in branches.items():
            place_of_branch = at.child(name)
            sublayer = Sublayer(
                branch,
                place_of_branch,
                norm=parts.norm,
                wiring=parts.placement.wiring(place_of_branch),
                residual=parts.residual,
                p=parts.dropout,
            )
            self.add_module(name, sublayer)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        for sublayer in self.children():
            x = sublayer(x)
        return x


class DecoderStack(nn.Module):
    """A causal language model: token ids (B, T) -> logits (B, T, V).

    The final norm is derived: it is there wherever the last block leaves the stream itself unnormalised, so that no
    comparison can forget it.
    """

    def __init__(self, blocks: Sequence[BlockParts], at: Site, *, position: Position, output: Output, p: float) -> None:
        super().__init__()
        self.embed = mark(nn.Embedding(at.vocabulary, at.width), at.child("embed"))
        self.position = place(position, at.child("position"))
        self.dropout = dropout(p, at.child("dropout"))
        sites = [at.child(f"block.{layer}", "block", layer=layer) for layer in range(len(blocks))]
        made = (mark(Block(parts, site), site) for parts, site in zip(blocks, sites, strict=True))
        self.blocks = nn.Sequential(*made)
        last = blocks[-1]
        normalised = last.placement.wiring(sites[-1].child("feed_forward")).stream
        self.final_norm = nn.Identity() if normalised else place(last.norm, at.child("final_norm", "norm"))
        self.head = place(output, at.child("head"), self.embed)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) -> (B, T, V)."""
        x = self.dropout(self.position(self.embed(tokens)))
        logits: Tensor = self.head(self.final_norm(self.blocks(x)))
        return logits
