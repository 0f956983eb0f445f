"""A model of my own: a whole network, from token ids to logits."""

from __future__ import annotations

from typing import Literal

from ablate.slots import Model, Site, mark
from pydantic import Field
from torch import Tensor, nn


class _Block(nn.Module):
    """A convolution that sees a token and those before it, added to the stream."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        self.window = window
        self.norm = nn.LayerNorm(width)
        self.convolution = nn.Conv1d(width, width, window)

    def forward(self, x: Tensor) -> Tensor:
        before = nn.functional.pad(self.norm(x).mT, (self.window - 1, 0))
        return x + nn.functional.gelu(self.convolution(before)).mT


class _Network(nn.Module):
    """Initial values are drawn by the path of the site that a module is marked with."""

    def __init__(self, at: Site, width: int, depth: int, window: int) -> None:
        super().__init__()
        site = at.child("embed", width=width, depth=depth)
        self.embed = mark(nn.Embedding(at.vocabulary, width), site)
        self.blocks = nn.Sequential()
        for layer in range(depth):
            site = at.child(f"block.{layer}", "block", width=width, layer=layer)
            self.blocks.append(mark(_Block(width, window), site))
        self.head = mark(nn.Linear(width, at.vocabulary), at.child("head", width=width))

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.head(self.blocks(self.embed(tokens)))
        return logits


class MyComponent(Model):
    """Causal convolutions, one above the other, predict the next token.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    width: int = Field(32, ge=1)
    """Width of the stream, D."""
    depth: int = Field(2, ge=1)
    """Number of blocks."""
    window: int = Field(3, ge=1)
    """Number of tokens that a convolution sees."""

    def build(self, at: Site) -> nn.Module:
        """Token ids (B, T) -> logits (B, T, V)."""
        return _Network(at, self.width, self.depth, self.window)
