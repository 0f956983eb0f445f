"""The task of parity: sequences of zeros and ones, and whether the number of ones is even."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator

from ablate.model.keys import generator as keyed
from ablate.slots import Batch, Data, Interface, Task
from ablate_plugins.task.drawn import Judged

PAD, ZERO, ONE = 0, 1, 2
"""Tokens: padding, a zero and a one."""
FORMAT = 1
"""Raised when the same options give other data."""


class _Bits:
    """Sequences of random zeros and ones."""

    def __init__(self, options: Parity) -> None:
        self.length = options.length
        self.shortest = options.length if options.shortest is None else options.shortest
        self.interface = Interface(form="classification", context=self.length, vocabulary=ONE + 1, classes=2)
        what = ["parity", FORMAT, self.length, self.shortest, options.samples]
        self.digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()
        # The last bit alone makes either label as likely, whatever stands before it.
        self.facts: Mapping[str, float] = {"vocabulary": float(ONE + 1), "unigram_entropy": math.log(2)}
        self._evaluation = self.batch(options.samples, keyed("parity", "evaluation"))

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Tokens (size, T) and valid (size, T); targets (size,): 1 for an even number of ones, else 0."""
        lengths = torch.randint(self.shortest, self.length + 1, (size, 1), generator=generator)
        bits = torch.randint(2, (size, self.length), generator=generator)
        valid = torch.arange(self.length) < lengths
        targets = ((bits * valid).sum(1) + 1) % 2
        return Batch((torch.where(valid, ZERO + bits, PAD), valid), targets)

    def evaluation(self, size: int) -> Sequence[Batch]:
        """Samples of a stream of their own."""
        parts = zip(
            *(tensor.split(size) for tensor in (*self._evaluation.inputs, self._evaluation.targets)), strict=True
        )
        return [Batch(tuple(inputs), targets) for *inputs, targets in parts]


class Parity(Judged, Task):
    """Say whether the number of ones in a sequence is even.

    Every token decides, so nothing short of reading them all beats a guess. Training draws from all sequences, those
    of the evaluation set among them. Source: Hahn 2020, Theoretical Limitations of Self-Attention in Neural Sequence
    Models.
    """

    kind: Literal["parity"] = "parity"
    length: int = Field(8, ge=1)
    """Number of tokens in a sequence, at most."""
    shortest: int | None = Field(None, ge=1)
    """Number of tokens in a sequence, at least, every length being as likely; null for `length` always."""
    samples: int = Field(256, ge=1)
    """Sequences in the evaluation set."""

    units: ClassVar[Mapping[str, str]] = {"val/loss": "nats", "val/accuracy": "share"}

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
        return _Bits(self)
