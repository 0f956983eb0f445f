"""The three skeletons: a language model, a classifier and an encoder with a decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from ablate.model.generation import Rereading
from ablate.model.stack import BlockParts, Stack
from ablate.slots import Cache, Given, is_neutral

Pooling = Literal["mean", "max", "first", "last"]


class LanguageModel(nn.Module):
    """Token ids (B, T) -> logits (B, T, V), each of the token that follows."""

    def __init__(self, stack: Stack, head: nn.Module, *, cached: bool, context: int | None = None) -> None:
        super().__init__()
        self.context = context
        self.stack = stack
        self.head = head
        self._cached = cached

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) -> (B, T, V)."""
        return self._logits(tokens, Given())

    def begin(self) -> Cache:
        """A cache that holds nothing yet."""
        return Cache()

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        """(B, T) that follow what the cache holds -> (B, T, V)."""
        if self._cached:
            return self._logits(tokens, Given(cache=cache))
        return Rereading(lambda _, text: self(text)).decode(tokens, cache)

    def _logits(self, tokens: Tensor, given: Given) -> Tensor:
        logits: Tensor = self.head(self.stack(tokens, given))
        return logits


class Classifier(nn.Module):
    """Token ids (B, T) and which of them are tokens -> logits (B, C), one label a sequence."""

    def __init__(self, stack: Stack, head: nn.Module, *, pooling: Pooling) -> None:
        super().__init__()
        self.stack = stack
        self.head = head
        self._pool = POOLING[pooling]

    def forward(self, tokens: Tensor, valid: Tensor) -> Tensor:
        """(B, T), (B, T) -> (B, C)."""
        logits: Tensor = self.head(self._pool(self.stack(tokens, Given(valid=valid)), valid))
        return logits


def _mean(x: Tensor, valid: Tensor) -> Tensor:
    kept = valid[..., None].to(x.dtype)
    return (x * kept).sum(1) / kept.sum(1).clamp_min(1)


def _max(x: Tensor, valid: Tensor) -> Tensor:
    largest = x.masked_fill(~valid[..., None], torch.finfo(x.dtype).min).amax(1)
    return largest.masked_fill(~valid.any(1, keepdim=True), 0)  # of a sequence without tokens


def _first(x: Tensor, valid: Tensor) -> Tensor:
    return x[:, 0]


def _last(x: Tensor, valid: Tensor) -> Tensor:
    at = (valid.sum(1) - 1).clamp_min(0)
    return x.gather(1, at[:, None, None].expand(-1, 1, x.shape[-1])).squeeze(1)


POOLING = {"mean": _mean, "max": _max, "first": _first, "last": _last}
"""(B, T, D) and (B, T) -> (B, D): what stands for a sequence; padding takes no part."""


class EncoderDecoder(nn.Module):
    """A source (B, S) and a target so far (B, T) -> logits (B, T, V), each of the target's next token."""

    def __init__(
        self, encoder: Stack, decoder: Stack, head: nn.Module, *, cached: bool, context: int | None = None
    ) -> None:
        super().__init__()
        self.context = context
        self.encoder = encoder
        self.decoder = decoder
        self.head = head
        self._cached = cached

    def forward(self, source: Tensor, valid: Tensor, tokens: Tensor) -> Tensor:
        """(B, S), (B, S), (B, T) -> (B, T, V)."""
        memory = self.encoder(source, Given(valid=valid))
        return self._logits(tokens, Given(memory=memory, memory_valid=valid))

    def begin(self, source: Tensor, valid: Tensor) -> Cache:
        """A cache that holds the source as the encoder reads it."""
        cache = Cache()
        cache.states["memory"] = (self.encoder(source, Given(valid=valid)), valid)
        return cache

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        """(B, T) of the target that follow what the cache holds -> (B, T, V)."""
        memory, valid = cache.states["memory"]
        if self._cached:
            return self._logits(tokens, Given(memory=memory, memory_valid=valid, cache=cache))

        def reread(_: tuple[Tensor, ...], text: Tensor) -> Tensor:
            return self._logits(text, Given(memory=memory, memory_valid=valid))

        return Rereading(reread).decode(tokens, cache)

    def _logits(self, tokens: Tensor, given: Given) -> Tensor:
        logits: Tensor = self.head(self.decoder(tokens, given))
        return logits


def cached(blocks: Sequence[BlockParts]) -> bool:
    """Whether every mixer of these blocks can go on from a cache."""
    mixers = [mixer for parts in blocks for mixer in (parts.mixer, parts.cross) if mixer is not None]
    return all(is_neutral(mixer) or mixer.traits().cached for mixer in mixers)
