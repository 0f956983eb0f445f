"""The slot of decoding: how a model's logits become a text."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from ablate.slots.component import Component
from ablate.slots.interface import Cache

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Decodes(Protocol):
    """A network that gives the logits of what comes next."""

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        """Tokens (B, T) that follow what the cache holds -> logits (B, T, V); the cache then holds them too."""
        ...


class Decoded(NamedTuple):
    """Texts, and how likely the model thinks them."""

    tokens: Tensor
    """(B, L): what follows the prompt; after its end a text is filled up with the end's token."""
    scores: Tensor
    """(B,): the sum of the tokens' log-probabilities under the model, the end's among them, in nats."""


class Decoding(Component):
    """Writes texts by a model, token by token."""

    slot: ClassVar[str] = "decoding"
    default: ClassVar[str | None] = "greedy"

    @abstractmethod
    def write(
        self, network: Decodes, cache: Cache, prompt: Tensor, *, most: int, end: int | None, generator: torch.Generator
    ) -> Decoded:
        """Go on from a prompt.

        Args:
            network: the model, in evaluation mode.
            cache: what it has read before the prompt; for a sequence-to-sequence model, the source.
            prompt: (B, t) tokens to begin with, at least one.
            most: how many tokens are written at most.
            end: the token that ends a text, or None to write ``most`` tokens.
            generator: what is drawn is drawn from it alone.
        """
