"""The slots of a model."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ablate.slots.component import Component
from ablate.slots.site import Site

if TYPE_CHECKING:
    from torch import nn


class Norm(Component):
    """Normalises the last axis: (..., D) -> (..., D)."""

    slot: ClassVar[str] = "norm"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (..., D) -> (..., D)."""


class Wiring(NamedTuple):
    """Which places of a sublayer hold a norm: ``stream(residual(x, after(branch(before(x)))))``."""

    before: bool = False
    after: bool = False
    stream: bool = False


class Placement(Component):
    """Says where in a sublayer the norm sits."""

    slot: ClassVar[str] = "placement"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def wiring(self, at: Site) -> Wiring:
        """The places that hold a norm in the sublayer at this site."""


class Residual(Component):
    """Joins the stream with a sublayer's update: (x, update), both (B, T, D) -> (B, T, D)."""

    slot: ClassVar[str] = "residual"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (x, update) -> (B, T, D)."""


class Scale(Component):
    """Scales queries and keys before their product: (q, k), both (B, H, T, K) -> the same shapes."""

    slot: ClassVar[str] = "scale"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (q, k) -> (q, k); ``at.width`` is a head's width."""


class Position(Component):
    """Tells the model where a token stands, in the embeddings or in queries and keys."""

    slot: ClassVar[str] = "position"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (B, T, D) -> (B, T, D) that acts on the embeddings."""

    @abstractmethod
    def rotation(self, at: Site) -> nn.Module:
        """A module (q, k) -> (q, k) that acts on each head's queries and keys; ``at.width`` is a head's width."""


class Mixer(Component):
    """Moves information between tokens: (B, T, D) -> (B, T, D)."""

    slot: ClassVar[str] = "mixer"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (B, T, D) -> (B, T, D)."""

    def flops(self, at: Site, batch: int, tokens: int) -> int | None:
        """Floating-point operations of the module's forward pass on (batch, tokens, D); None to have them counted.

        For what the counter cannot see: kernels that it does not know (recurrent layers), work that depends on the
        values (mixture of experts). A multiplication and an addition are two; a training step costs three times this.
        """
        return None


class FeedForward(Component):
    """Transforms each token alone: (B, T, D) -> (B, T, D)."""

    slot: ClassVar[str] = "feed_forward"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (B, T, D) -> (B, T, D)."""

    def flops(self, at: Site, batch: int, tokens: int) -> int | None:
        """Floating-point operations of the module's forward pass on (batch, tokens, D); None to have them counted.

        For what the counter cannot see: kernels that it does not know (recurrent layers), work that depends on the
        values (mixture of experts). A multiplication and an addition are two; a training step costs three times this.
        """
        return None


class Output(Component):
    """Turns the stream into logits: (B, T, D) -> (B, T, V)."""

    slot: ClassVar[str] = "output"

    @abstractmethod
    def build(self, at: Site, embedding: nn.Embedding) -> nn.Module:
        """A module (B, T, D) -> (B, T, V); ``embedding`` is the input's (V, D) table."""


class Model(Component):
    """A whole network: what the task's inputs become logits by."""

    slot: ClassVar[str] = "model"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module from the task's inputs, (B, T) token ids, to logits (B, T, V); ``at`` has context and vocabulary."""
