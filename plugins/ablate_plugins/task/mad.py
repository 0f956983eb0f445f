"""Three tasks of mechanistic architecture design, with the parameters of their paper; those of recall are apart."""

from __future__ import annotations

import math
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch.nn.functional import pad

from ablate.slots import IGNORED, Batch, Data, Interface, Task
from ablate_plugins.task.drawn import Drawn, Judged, JudgedAsWhole, distinct, entropy, fixed, stream, taken_from
from ablate_plugins.task.recall import among_blanks, check_room, facts_of_copying

FORMAT = 1
"""Raised when the same options give other data."""


class MadSelectiveCopying(JudgedAsWhole, Task):
    """Write the symbols of a sequence again, without the blanks between them: the selective copying of MAD.

    As `selective_copying`, but from a fixed training set, and shorter. Chance is one of the symbols; the ceiling is 1.
    Source: Poli et al. 2024, Mechanistic Design and Scaling of Hybrid Architectures, §3.1.
    """

    kind: Literal["mad_selective_copying"] = "mad_selective_copying"
    vocabulary: int = Field(16, ge=4)
    """Number of tokens, the blank and the mark among them."""
    length: int = Field(256, ge=3)
    """Tokens in a sequence."""
    tokens: int = Field(16, ge=1)
    """Symbols to copy."""
    examples: int = Field(12_800, ge=1)
    """Sequences in the training set."""
    samples: int = Field(1_280, ge=1)
    """Sequences in the evaluation set."""

    @model_validator(mode="after")
    def _room(self) -> Self:
        check_room(self.length, self.tokens)
        return self

    def load(self, folder: str) -> Data:
        """Make the training and the evaluation set; nothing is read."""

        def draw(size: int, generator: torch.Generator) -> Batch:
            return among_blanks(size, self.vocabulary, self.length, self.tokens, generator)

        train = fixed(draw, self.examples, stream(self, "training"))
        test = fixed(draw, self.samples, stream(self, "evaluation"))
        interface = Interface(context=self.length, vocabulary=self.vocabulary)
        facts = {"examples": float(self.examples), **facts_of_copying(self.vocabulary)}
        return Drawn(self, FORMAT, interface, facts, taken_from(train), test)


class MadCompression(JudgedAsWhole, Task):
    """Write a random sequence again from what is left of it: the compression of MAD.

    The source is random tokens and a last one, the mark, and the target is the tokens; those before a place say nothing
    of what comes there. In the paper only what a model has made of the mark is passed on, and a feed-forward network
    reads the tokens from it. Here the model decides: one that passes a single vector from the source to the target, as
    `rnn_seq2seq` with `attention: none`, has to compress, and one that can look at the source again has not. Chance is
    one of the tokens; the ceiling is 1. Source: Poli et al. 2024, Mechanistic Design and Scaling of Hybrid
    Architectures, §3.1.
    """

    kind: Literal["mad_compression"] = "mad_compression"
    vocabulary: int = Field(16, ge=3)
    """Number of tokens, the mark among them; it also begins the target."""
    length: int = Field(32, ge=2)
    """Tokens in a source, the mark among them."""
    examples: int = Field(12_800, ge=1)
    """Sequences in the training set."""
    samples: int = Field(1_280, ge=1)
    """Sequences in the evaluation set."""

    def load(self, folder: str) -> Data:
        """Make the training and the evaluation set; nothing is read."""
        interface = Interface(
            form="sequence_to_sequence",
            context=self.length - 1,
            vocabulary=self.vocabulary,
            source_context=self.length,
            source_vocabulary=self.vocabulary,
        )
        symbols = self.vocabulary - 1
        facts = {
            "examples": float(self.examples),
            "unigram_entropy": math.log(symbols),
            "chance_accuracy": 1 / symbols,
            "ceiling_accuracy": 1.0,
        }
        train = fixed(self._draw, self.examples, stream(self, "training"))
        test = fixed(self._draw, self.samples, stream(self, "evaluation"))
        return Drawn(self, FORMAT, interface, facts, taken_from(train), test)

    def _draw(self, size: int, generator: torch.Generator) -> Batch:
        mark = self.vocabulary - 1
        tokens = torch.randint(mark, (size, self.length - 1), generator=generator)
        source = pad(tokens, (0, 1), value=mark)
        valid = torch.ones_like(source, dtype=torch.bool)
        return Batch((source, valid, pad(tokens[:, :-1], (1, 0), value=mark)), tokens)


class MadMemorization(Judged, Task):
    """Learn by heart which value each key has: the memorization of MAD.

    A key's value is the same in all sequences, those of the evaluation set too, and no sequence shows it: after each
    key stands a mark, the last of the vocabulary, at which the value is asked for. No two keys have the same. Chance is
    one of the values; the ceiling is 1, if training has all keys. Source: Poli et al. 2024, Mechanistic Design and
    Scaling of Hybrid Architectures, §3.1.
    """

    kind: Literal["mad_memorization"] = "mad_memorization"
    vocabulary: int = Field(256, ge=5)
    """Number of tokens: as many keys, values in equal number or one more, and the mark."""
    length: int = Field(32, ge=2, multiple_of=2)
    """Tokens in a sequence: keys and marks."""
    examples: int = Field(256, ge=1)
    """Sequences in the training set."""
    samples: int = Field(1_280, ge=1)
    """Sequences in the evaluation set."""

    def load(self, folder: str) -> Data:
        """Make the facts, the training and the evaluation set; nothing is read."""
        keys = (self.vocabulary - 1) // 2
        values = self.vocabulary - 1 - keys
        known = keys + distinct(1, keys, values, stream(self, "facts"))[0]

        def draw(size: int, generator: torch.Generator) -> Batch:
            key = torch.randint(keys, (size, self.length // 2), generator=generator)
            tokens = torch.stack([key, torch.full_like(key, self.vocabulary - 1)], 2).flatten(1)
            targets = torch.stack([torch.full_like(key, IGNORED), known[key]], 2).flatten(1)
            return Batch((tokens,), targets)

        train = fixed(draw, self.examples, stream(self, "training"))
        test = fixed(draw, self.samples, stream(self, "evaluation"))
        interface = Interface(context=self.length, vocabulary=self.vocabulary)
        shown = train.inputs[0][:, ::2].unique()
        facts = {
            "examples": float(self.examples),
            "unigram_entropy": entropy(train.targets),
            "chance_accuracy": 1 / values,
            "ceiling_accuracy": float(torch.isin(test.inputs[0][:, ::2], shown).double().mean()),
        }
        return Drawn(self, FORMAT, interface, facts, taken_from(train), test)
