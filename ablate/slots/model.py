"""The slots of a model."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ablate.slots.component import Component
from ablate.slots.interface import Form
from ablate.slots.site import Site
from ablate.slots.traits import Traits

if TYPE_CHECKING:
    from torch import nn


class Norm(Component):
    """Normalises the last axis: (..., D) -> (..., D)."""

    slot: ClassVar[str] = "norm"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (..., D) -> (..., D)."""

    def traits(self) -> Traits:
        """A norm sees one token alone, unless it says otherwise."""
        return Traits(position_wise=True)


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
    final_norm: ClassVar[bool] = True
    """Whether a norm follows the last block where that leaves the stream unnormalised."""

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (x, update) -> (B, T, D)."""

    def traits(self) -> Traits:
        """A residual sees one token alone."""
        return Traits(position_wise=True)


class Scale(Component):
    """Scales queries and keys before their product: (q, k), (B, H, T, K) and (B, H, S, K) -> the same shapes."""

    slot: ClassVar[str] = "scale"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (q, k, start, valid) -> (q, k); ``at.width`` is a head's width.

        ``start`` is the first query's position; ``valid``, (B, S) or None for all, says which keys are tokens.
        """

    def traits(self) -> Traits:
        """A scale acts on queries and keys."""
        return Traits(needs_attention=True)


class Position(Component):
    """Tells the model where a token stands: in the embeddings, in queries and keys, or in the logits of attention."""

    slot: ClassVar[str] = "position"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (x, start) -> x, (B, T, D), on the embeddings; ``start`` is the position of the first token."""

    def rotation(self, at: Site) -> nn.Module | None:
        """A module (q, k, start) -> (q, k) on each head's queries and keys of the same tokens, or None.

        ``at.width`` is a head's width.
        """
        return None

    def bias(self, at: Site) -> nn.Module | None:
        """A module (start, T, S) -> (H, T, S), added to the logits of T queries and the S keys from the first, or None.

        ``at.heads`` is H; ``start`` is the first query's position.
        """
        return None


class Mixer(Component):
    """Moves information between tokens: (B, T, D) -> (B, T, D)."""

    slot: ClassVar[str] = "mixer"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (x, given) -> x, (B, T, D) -> (B, T, D); ``given`` is :class:`~ablate.slots.Given`.

        At a causal site a token sees nothing that comes after it, and nowhere does it see padding.
        """

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
        """Floating-point operations of the module's forward pass, as :meth:`Mixer.flops` says."""
        return None

    def traits(self) -> Traits:
        """A feed-forward network sees one token alone."""
        return Traits(position_wise=True)


class Output(Component):
    """Turns the stream into logits: (B, T, D) -> (B, T, V)."""

    slot: ClassVar[str] = "output"

    @abstractmethod
    def build(self, at: Site, embedding: nn.Embedding) -> nn.Module:
        """A module (B, T, D) -> (B, T, V); ``embedding`` is the input's (V, D) table."""


class Model(Component):
    """A whole network: what the task's inputs become logits by."""

    slot: ClassVar[str] = "model"
    usual: ClassVar[str | None] = "decoder"
    forms: ClassVar[frozenset[Form]] = frozenset({"language_modelling"})
    """The forms of tasks that the model is for."""

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module from a task's inputs to its logits, as the task's `Form` says; ``at.interface`` has the sizes.

        A module that can also decode has ``begin(*inputs) -> Cache``, given the inputs but for the tokens that are
        decoded, and ``decode(tokens, cache) -> logits``, (B, T) -> (B, T, V), which goes on from the cache.
        """
