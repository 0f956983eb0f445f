"""The three recall tasks of mechanistic architecture design, with the parameters of their paper."""

from __future__ import annotations

from typing import Literal, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from ablate.slots import IGNORED, Batch, Data, Interface, Task
from ablate_plugins.task.drawn import Drawn, Judged, distinct, entropy, fixed, stream, taken_from

FORMAT = 1
"""Raised when the same options give other data."""


class _Sequences(NamedTuple):
    """Sequences of pairs, (B, T) each."""

    tokens: Tensor
    asked: Tensor
    """Where a value stands that the sequence has said before."""
    padded: Tensor | None = None

    def batch(self, every_token: bool) -> Batch:
        """The next token, at all of them or where it is an answer."""
        asked = self.asked
        if every_token:
            asked = torch.ones_like(asked) if self.padded is None else ~self.padded
        return Batch((self.tokens[:, :-1],), torch.where(asked, self.tokens, IGNORED)[:, 1:])


class _Recalled(Judged):
    """What the three tasks have in common."""

    every_token: bool = True
    """Whether training asks for every next token, as that of the paper's authors does, or for the answers alone, as
    the evaluation always does."""
    examples: int = Field(12_800, ge=1)
    """Sequences in the training set."""
    samples: int = Field(1_280, ge=1)
    """Sequences in the evaluation set."""


class MadRecall(_Recalled, Task):
    """Say the values of keys that a sequence has had before: the in-context recall of MAD.

    A sequence is pairs of a key and a value, and a key has the same value throughout it, but not in other sequences.
    Keys are the first half of the vocabulary. The last pair's key has always been there before; how often the others
    have is chance. A blind guess among the values is right as often as `chance_accuracy`; the ceiling is 1. Source:
    Poli et al. 2024, Mechanistic Design and Scaling of Hybrid Architectures, §3.1.
    """

    kind: Literal["mad_recall"] = "mad_recall"
    vocabulary: int = Field(16, ge=4)
    """Number of tokens."""
    length: int = Field(128, ge=4, multiple_of=2)
    """Tokens of the pairs in a sequence; all but the last are read."""

    def load(self, folder: str) -> Data:
        """Make the training and the evaluation set; nothing is read."""
        return _recall(self, self.vocabulary, noise=0.0)


class MadNoisyRecall(_Recalled, Task):
    """Say the values of keys that a sequence has had before, past tokens that mean nothing: MAD's noisy recall.

    As MAD's in-context recall; but some of the pairs are two tokens of a vocabulary of their own, which are the last of
    all tokens. A blind guess among the values is right as often as `chance_accuracy`; the ceiling is 1. Source: Poli et
    al. 2024, Mechanistic Design and Scaling of Hybrid Architectures, §3.1.
    """

    kind: Literal["mad_noisy_recall"] = "mad_noisy_recall"
    vocabulary: int = Field(32, ge=5)
    """Number of tokens, those that mean nothing among them."""
    noise_vocabulary: int = Field(16, ge=1)
    """Number of tokens that mean nothing."""
    noise: float = Field(0.2, ge=0, lt=1)
    """Share of the pairs that mean nothing; one pair at least does not."""
    length: int = Field(128, ge=4, multiple_of=2)
    """Tokens of the pairs in a sequence; all but the last are read."""

    @model_validator(mode="after")
    def _keys_and_values_are_left(self) -> Self:
        if (left := self.vocabulary - self.noise_vocabulary) < 4:
            raise ValueError(f"two keys and two values are 4 tokens, and `noise_vocabulary` leaves {left}")
        return self

    def load(self, folder: str) -> Data:
        """Make the training and the evaluation set; nothing is read."""
        return _recall(self, self.vocabulary - self.noise_vocabulary, self.noise)


class MadFuzzyRecall(_Recalled, Task):
    """Say the values of keys that a sequence has had before, each of one or more tokens: MAD's fuzzy recall.

    As MAD's in-context recall; but keys and values are short runs of different tokens, and the answer is the whole
    value. In training every size up to the largest is as likely; in the evaluation set all keys have the largest, so
    none is the beginning of another. The last token is padding, which stands before the pairs. A blind guess among the
    tokens of values is right as often as `chance_accuracy`; the ceiling is 1. Source: Poli et al. 2024, Mechanistic
    Design and Scaling of Hybrid Architectures, §3.1.
    """

    kind: Literal["mad_fuzzy_recall"] = "mad_fuzzy_recall"
    vocabulary: int = Field(16, ge=5)
    """Number of tokens, the padding among them."""
    length: int = Field(128, ge=3)
    """Tokens that are read."""
    key_size: int = Field(3, ge=1)
    """Tokens of a key, at most."""
    value_size: int = Field(3, ge=1)
    """Tokens of a value, at most."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        keys = (self.vocabulary - 1) // 2
        for name, size, tokens in (
            ("key", self.key_size, keys),
            ("value", self.value_size, self.vocabulary - 1 - keys),
        ):
            if size > tokens:
                raise ValueError(f"`{name}_size` is {size}, and a {name} has different ones of {tokens} tokens")
        if (least := 2 * (self.key_size + self.value_size)) > self.length + 1:
            raise ValueError(f"two pairs may have {least} tokens, and {self.length + 1} are read and asked for")
        return self

    def load(self, folder: str) -> Data:
        """Make the training and the evaluation set; nothing is read."""
        keys = (self.vocabulary - 1) // 2
        interface = Interface(context=self.length, vocabulary=self.vocabulary)
        train = fixed(
            lambda size, given: self._draw(size, given, 1).batch(self.every_token),
            self.examples,
            stream(self, "training"),
        )
        test = fixed(
            lambda size, given: self._draw(size, given, self.key_size).batch(False),
            self.samples,
            stream(self, "evaluation"),
        )
        return Drawn(self, FORMAT, interface, _facts(train, self.vocabulary - 1 - keys), taken_from(train), test)

    def _draw(self, size: int, generator: torch.Generator, least: int) -> _Sequences:
        """Sequences whose keys have ``least`` tokens or more."""
        most_k, most_v, end = self.key_size, self.value_size, self.length + 1
        pairs, keys = end // (least + 1), (self.vocabulary - 1) // 2
        key = distinct(size * pairs, most_k, keys, generator).view(size, pairs, most_k)
        value = keys + distinct(size * pairs, most_v, self.vocabulary - 1 - keys, generator).view(size, pairs, most_v)
        key_size = torch.randint(least, most_k + 1, (size, pairs), generator=generator)
        value_size = torch.randint(1, most_v + 1, (size, pairs), generator=generator)

        # Two keys are the same where all their tokens are; then the first one's value is that of both.
        first = _first(torch.where(torch.arange(most_k) < key_size[..., None], key, -1))
        value = value.gather(1, first[..., None].expand_as(value))
        value_size = value_size.gather(1, first)

        # As many pairs as leave room for the last one, whose key is one of theirs.
        ends = (key_size + value_size).cumsum(1)
        there = ends <= end - most_k - most_v
        probe = _any_of(there & (first == torch.arange(pairs)), generator)
        key, value = (
            torch.cat([each, each.gather(1, probe[..., None].expand(-1, -1, each.shape[2]))], 1)
            for each in (key, value)
        )
        key_size, value_size = (torch.cat([each, each.gather(1, probe)], 1) for each in (key_size, value_size))
        there = torch.cat([there, torch.ones_like(probe, dtype=torch.bool)], 1)
        repeated = torch.cat([first < torch.arange(pairs), torch.ones_like(probe, dtype=torch.bool)], 1)

        # From the right end on: what is not there has no size, and lies where it is cut off.
        sizes = torch.where(there, key_size + value_size, 0)
        starts = end - sizes.flip(1).cumsum(1).flip(1)
        tokens = torch.full((size, end + 1), self.vocabulary - 1)
        asked = torch.zeros(size, end + 1, dtype=torch.bool)
        for part, part_size, offset, answer in ((key, key_size, 0, False), (value, value_size, key_size, True)):
            step = torch.arange(part.shape[2])
            real = there[..., None] & (step < part_size[..., None])
            place = torch.where(real, (starts + offset)[..., None] + step, end).flatten(1)
            tokens.scatter_(1, place, part.flatten(1))
            if answer:
                asked.scatter_(1, place, (repeated[..., None] & real).flatten(1))
        padded = torch.arange(end) < starts[:, :1]
        return _Sequences(tokens[:, :end], asked[:, :end], padded)


def _recall(task: MadRecall | MadNoisyRecall, meaning: int, noise: float) -> Data:
    """The data where keys and values are single tokens, of the first ``meaning`` of the vocabulary."""

    def draw(size: int, generator: torch.Generator) -> _Sequences:
        pairs, keys = task.length // 2, meaning // 2
        key = torch.randint(keys, (size, pairs), generator=generator)
        value = torch.randint(keys, meaning, (size, keys), generator=generator).gather(1, key)
        nothing = torch.rand(size, pairs, generator=generator) < noise
        nothing[:, -1] = False
        nothing.scatter_(1, torch.randint(pairs - 1, (size, 1), generator=generator), False)
        # A pair that means nothing has a key of its own, which no other pair has.
        first = _first(torch.where(nothing, keys + torch.arange(pairs), key)[:, :-1, None])
        before = torch.arange(pairs - 1)
        last = _any_of((first == before) & ~nothing[:, :-1], generator)
        key[:, -1:], value[:, -1:] = key.gather(1, last), value.gather(1, last)
        tokens = torch.stack([key, value], 2)
        if noise:
            drawn = torch.randint(meaning, task.vocabulary, tokens.shape, generator=generator)
            tokens = torch.where(nothing[..., None], drawn, tokens)
        asked = torch.zeros_like(tokens, dtype=torch.bool)
        asked[:, :-1, 1] = first < before
        asked[:, -1, 1] = True
        return _Sequences(tokens.flatten(1), asked.flatten(1))

    interface = Interface(context=task.length - 1, vocabulary=task.vocabulary)
    train = fixed(
        lambda size, given: draw(size, given).batch(task.every_token), task.examples, stream(task, "training")
    )
    test = fixed(lambda size, given: draw(size, given).batch(False), task.samples, stream(task, "evaluation"))
    return Drawn(task, FORMAT, interface, _facts(train, meaning - meaning // 2), taken_from(train), test)


def _facts(train: Batch, values: int) -> dict[str, float]:
    return {
        "examples": float(len(train.targets)),
        "unigram_entropy": entropy(train.targets),
        "chance_accuracy": 1 / values,
        "ceiling_accuracy": 1.0,
    }


def _first(keys: Tensor) -> Tensor:
    """The place of each key's first occurrence in its row: (B, P, K) -> (B, P)."""
    pairs = keys.shape[1]
    same = torch.ones(len(keys), pairs, pairs, dtype=torch.bool)
    for token in keys.unbind(-1):
        same &= token[:, :, None] == token[:, None, :]
    return torch.where(same, torch.arange(pairs), pairs).amin(-1)


def _any_of(there: Tensor, generator: torch.Generator) -> Tensor:
    """One of the places in each row that are True, each being as likely: (B, 1)."""
    return (torch.rand(there.shape, generator=generator) + there).argmax(1, keepdim=True)
