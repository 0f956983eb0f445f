"""Tasks of algorithms: to sort, and to keep brackets on a stack."""

from __future__ import annotations

import math
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch.nn.functional import pad

from ablate.slots import IGNORED, Batch, Data, Interface, Task
from ablate_plugins.task.drawn import Drawn, Judged, JudgedAsWhole, TestedLonger, stream

PAD, BEGIN, END, SYMBOLS = 0, 1, 2, 3
"""Tokens: padding, the beginning and the end of a target, and the first symbol."""
FORMAT = 1
"""Raised when the same options give other data."""


class Sort(TestedLonger, JudgedAsWhole, Task):
    """Write the symbols of a sequence in order, the smallest first.

    Symbols may come more than once. Chance is one of the symbols or the end; the ceiling is 1. Training draws from all
    sequences, those of the evaluation set among them. Sources: Vinyals et al. 2016, Order Matters: Sequence to Sequence
    for Sets, §5.1; Graves et al. 2014, Neural Turing Machines, §4.5.
    """

    kind: Literal["sort"] = "sort"
    symbols: int = Field(16, ge=2)
    """Number of symbols; a vocabulary also has the padding, the beginning and the end."""
    length: int = Field(16, ge=1)
    """Number of symbols in a sequence, at most."""
    shortest: int | None = Field(None, ge=1)
    """Number of symbols in a sequence, at least, every length being as likely; null for `length` always. With a
    `test_length`, those of the evaluation set have that many always."""
    samples: int = Field(512, ge=1)
    """Sequences in the evaluation set."""

    @model_validator(mode="after")
    def _lengths_in_order(self) -> Self:
        if self.shortest is not None and self.shortest > self.length:
            raise ValueError(f"`shortest` is {self.shortest}, and `length` is {self.length}")
        return self

    def effective(self) -> Self:
        """The same data, with one spelling of sequences that all have the same length."""
        one = self.model_copy(update={"shortest": None}) if self.shortest == self.length else self
        same = one.test_length == one.length and one.shortest is None
        return one.model_copy(update={"test_length": None}) if same else one

    def load(self, folder: str) -> Data:
        """Make the evaluation set; nothing is read."""
        tokens, shortest = self.symbols + SYMBOLS, self.shortest or self.length
        interface = Interface(
            form="sequence_to_sequence",
            context=self.longest + 1,
            vocabulary=tokens,
            source_context=self.longest,
            trained=self.length + 1,
            trained_source=self.length,
            source_vocabulary=tokens,
        )
        mean = (shortest + self.length) / 2
        facts = {
            "unigram_entropy": math.log(mean + 1) + mean / (mean + 1) * (math.log(self.symbols) - math.log(mean)),
            "chance_accuracy": 1 / (self.symbols + 1),
            "ceiling_accuracy": 1.0,
        }

        def train(size: int, generator: torch.Generator) -> Batch:
            return self._draw(size, shortest, self.length, generator)

        least = shortest if self.test_length is None else self.tested
        evaluation = self._draw(self.samples, least, self.tested, stream(self, "evaluation"))
        return Drawn(self, FORMAT, interface, facts, train, evaluation)

    def _draw(self, size: int, shortest: int, longest: int, generator: torch.Generator) -> Batch:
        lengths = torch.randint(shortest, longest + 1, (size, 1), generator=generator)
        valid = torch.arange(longest) < lengths
        drawn = torch.randint(SYMBOLS, SYMBOLS + self.symbols, (size, longest), generator=generator)
        # Padding sorts behind all symbols, and so stays where it is.
        answer = torch.where(valid, drawn, SYMBOLS + self.symbols).sort(1).values
        targets = pad(torch.where(valid, answer, IGNORED), (0, 1), value=IGNORED).scatter(1, lengths, END)
        so_far = pad(torch.where(valid, answer, PAD), (1, 0), value=BEGIN)
        return Batch((torch.where(valid, drawn, PAD), valid, so_far), targets)


class Dyck(TestedLonger, Judged, Task):
    """Close nested brackets of several kinds in the right order: Dyck-(k, D).

    A sequence begins with nothing open. Where nothing is open a bracket opens, where D are one closes, and elsewhere
    either is as likely; each kind is, too. Only the closing brackets are asked for: the loss and `val/accuracy` are
    those of the kind that closes, which the last one that is open decides. The sequence is cut at its length, so some
    may stay open. Chance is one of the k kinds; the ceiling is 1. The tokens from 0 open, those from k close. Source:
    Hewitt et al. 2020, RNNs can generate bounded hierarchical languages with optimal memory, §2 and 6.
    """

    kind: Literal["dyck"] = "dyck"
    kinds: int = Field(8, ge=2)
    """Kinds of brackets, k."""
    depth: int = Field(3, ge=1)
    """How many may be open at once, D."""
    length: int = Field(64, ge=1)
    """Brackets that are read of a sequence; at each of them the next one is asked for, where it closes."""
    samples: int = Field(512, ge=1)
    """Sequences in the evaluation set."""

    @model_validator(mode="after")
    def _room(self) -> Self:
        if (length := min(self.length, self.tested)) < self.depth:
            raise ValueError(
                f"with `depth: {self.depth}`, a sequence of {length} brackets may be one where none closes"
            )
        return self

    def load(self, folder: str) -> Data:
        """Make the evaluation set; nothing is read."""
        interface = Interface(context=self.longest, vocabulary=2 * self.kinds, trained=self.length)
        facts = {"unigram_entropy": math.log(self.kinds), "chance_accuracy": 1 / self.kinds, "ceiling_accuracy": 1.0}
        evaluation = self._draw(self.samples, self.tested, stream(self, "evaluation"))
        return Drawn(
            self, FORMAT, interface, facts, lambda size, given: self._draw(size, self.length, given), evaluation
        )

    def _draw(self, size: int, length: int, generator: torch.Generator) -> Batch:
        length += 1
        # How many are open is a walk that turns back at 0 and D: a free walk, folded.
        walk = (2 * torch.randint(2, (size, length), generator=generator) - 1).cumsum(1)
        open_after = (self.depth - (walk - self.depth) % (2 * self.depth)).abs()
        opens = pad(open_after, (1, 0))[:, :-1] < open_after
        kind = torch.randint(self.kinds, (size, length), generator=generator)
        closed = torch.zeros_like(kind)
        for level in range(1, self.depth + 1):
            last = torch.where(opens & (open_after == level), torch.arange(length), 0).cummax(1).values
            closes = ~opens & (open_after == level - 1)
            closed = torch.where(closes, kind.gather(1, last), closed)
        tokens = torch.where(opens, kind, self.kinds + closed)
        return Batch((tokens[:, :-1],), torch.where(opens, IGNORED, tokens)[:, 1:])
