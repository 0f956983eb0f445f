"""The task of copying: made up sequences, written again or backwards."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import pad

from ablate.data.transduction import BEGIN, END, PAD, SYMBOLS, written
from ablate.model.keys import generator as keyed
from ablate.slots import IGNORED, Batch, Data, Decoding, Interface, Task
from ablate_plugins.task.drawn import JudgedAsWhole

FORMAT = 1
"""Raised when the same options give other data."""


class _Copies:
    """Sequences of random symbols, each with what is to be written for it."""

    def __init__(self, options: Copy) -> None:
        self.symbols, self.length, self.reverse = options.symbols, options.length, options.reverse
        self.shortest = options.length if options.shortest is None else options.shortest
        tokens = self.symbols + SYMBOLS
        self.interface = Interface(
            form="sequence_to_sequence",
            context=self.length + 1,
            vocabulary=tokens,
            source_context=self.length,
            source_vocabulary=tokens,
        )
        what = ["copy", FORMAT, self.symbols, self.length, self.shortest, self.reverse, options.samples]
        self.digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()
        mean = (self.shortest + self.length) / 2
        # A mean of `mean` symbols, all alike, and one end.
        entropy = math.log(mean + 1) + mean / (mean + 1) * (math.log(self.symbols) - math.log(mean))
        self.facts: Mapping[str, float] = {"vocabulary": float(tokens), "unigram_entropy": entropy}
        self._evaluation = self.batch(options.samples, keyed("copy", "evaluation"))

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Source (size, S), valid (size, S) and target so far (size, S + 1); targets (size, S + 1)."""
        lengths = torch.randint(self.shortest, self.length + 1, (size, 1), generator=generator)
        drawn = torch.randint(SYMBOLS, SYMBOLS + self.symbols, (size, self.length), generator=generator)
        places = torch.arange(self.length)
        valid = places < lengths
        source = torch.where(valid, drawn, PAD)
        answer = source
        if self.reverse:
            answer = torch.where(valid, source.gather(1, (lengths - 1 - places).clamp(min=0)), PAD)
        targets = pad(torch.where(valid, answer, IGNORED), (0, 1), value=IGNORED).scatter(1, lengths, END)
        return Batch((source, valid, pad(answer, (1, 0), value=BEGIN)), targets)

    def evaluation(self, size: int) -> Sequence[Batch]:
        """Samples of a stream of their own."""
        parts = zip(
            *(tensor.split(size) for tensor in (*self._evaluation.inputs, self._evaluation.targets)), strict=True
        )
        return [Batch(tuple(inputs), targets) for *inputs, targets in parts]


class Copy(JudgedAsWhole, Task):
    """Write a sequence of random symbols again, or backwards.

    Training draws from all sequences, those of the evaluation set among them: with few symbols and a short length it
    is no test of generalisation. The fact `unigram_entropy` is that of the targets, the end among them; a model that
    counts places and ignores the source does better, by knowing where the end is. Source: Graves et al. 2014, Neural
    Turing Machines, §4.1, for copying; Sutskever et al. 2014, Sequence to Sequence Learning, §3.3, for reversing.
    """

    kind: Literal["copy"] = "copy"
    symbols: int = Field(16, ge=2)
    """Number of symbols; a vocabulary also has the padding, the beginning and the end."""
    length: int = Field(16, ge=1)
    """Number of symbols in a sequence, at most."""
    shortest: int | None = Field(None, ge=1)
    """Number of symbols in a sequence, at least, every length being as likely; null for `length` always."""
    reverse: bool = False
    """Whether the sequence is written backwards."""
    samples: int = Field(256, ge=1)
    """Sequences in the evaluation set."""
    decoding: Decoding | None = None
    """How sequences are written for `val/exact`; null for taking the likeliest token at each place, given the right
    ones before it."""

    @model_validator(mode="after")
    def _lengths_in_order(self) -> Self:
        if self.shortest is not None and self.shortest > self.length:
            raise ValueError(f"`shortest` is {self.shortest}, and `length` is {self.length}")
        return self

    def effective(self) -> Self:
        """The same data, with one spelling of sequences that all have the same length."""
        return self.model_copy(update={"shortest": None}) if self.shortest == self.length else self

    def load(self, folder: str) -> Data:
        """Make the evaluation set; nothing is read."""
        return _Copies(self)

    def tally(self, network: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Sums over tokens, and the number of sequences that are right as a whole.

        Raises:
            InputError: sequences are to be written by a model that cannot decode.
        """
        sums = super().tally(network, batch)
        if self.decoding is None:
            return sums
        most = batch.targets.shape[1]
        text = written(self.decoding, network, batch.inputs, most)
        text = pad(text, (0, most - text.shape[1]), value=END)
        right = text == batch.targets.where(batch.targets != IGNORED, END)
        return {**sums, "exact": right.all(-1).sum()}
