"""The task of arithmetic on a small table, of which half is never seen in training."""

from __future__ import annotations

from typing import Literal, Self

import torch
from pydantic import Field, model_validator

from ablate.slots import IGNORED, Batch, Data, Interface, Task
from ablate_plugins.task.drawn import Drawn, Judged, entropy, stream, taken_from

FORMAT = 1
"""Raised when the same options give other data."""


class ModularArithmetic(Judged, Task):
    """Compute a o b modulo a number, for pairs that training has not shown.

    A sequence is a, o, b, =, and only what follows is asked for. A share of all pairs is for training, which draws from
    them again and again, and the others are the evaluation set: the two never meet. A model first learns its pairs by
    heart, and may find the rule much later. Chance is one of the residues; the ceiling is 1. Source: Power et al. 2022,
    Grokking: Generalization Beyond Overfitting on Small Algorithmic Datasets, §2 and app. A.1.
    """

    kind: Literal["modular_arithmetic"] = "modular_arithmetic"
    operation: Literal["+", "-", "*", "/"] = "+"
    """What o is; `/` is the product with the inverse, and leaves out b = 0."""
    modulus: int = Field(97, ge=2, le=4096)
    """What is computed modulo; for `/` a prime."""
    train_share: float = Field(0.5, gt=0, lt=1)
    """Share of all pairs that is for training."""
    samples: int | None = Field(None, ge=1)
    """Pairs in the evaluation set; null for all that are not for training."""

    @model_validator(mode="after")
    def _can_be_computed(self) -> Self:
        if self.operation == "/" and any(self.modulus % each == 0 for each in range(2, self.modulus)):
            raise ValueError(f"not every number has an inverse modulo {self.modulus}, which is no prime")
        trained, rest = self._sizes
        if not trained or not rest:
            raise ValueError(f"`train_share: {self.train_share}` leaves none of {trained + rest} pairs on one side")
        if self.samples is not None and self.samples > rest:
            raise ValueError(f"`samples` is {self.samples}, and {rest} pairs are not for training")
        return self

    @property
    def _sizes(self) -> tuple[int, int]:
        """How many pairs are for training, and how many are not."""
        pairs = self.modulus * (self.modulus - (self.operation == "/"))
        trained = round(self.train_share * pairs)
        return trained, pairs - trained

    def effective(self) -> Self:
        """The same data, with one spelling of all pairs that are left."""
        return self.model_copy(update={"samples": None}) if self.samples == self._sizes[1] else self

    def load(self, folder: str) -> Data:
        """Make the whole table, and part it."""
        table = self._table()
        order = torch.randperm(len(table.targets), generator=stream(self, "split"))
        trained, rest = self._sizes
        train, test = (
            Batch((table.inputs[0][rows],), table.targets[rows])
            for rows in (order[:trained], order[trained : trained + (self.samples or rest)])
        )
        interface = Interface(context=4, vocabulary=self.modulus + 2)
        facts = {
            "pairs": float(trained),
            "unigram_entropy": entropy(train.targets),
            "chance_accuracy": 1 / self.modulus,
            "ceiling_accuracy": 1.0,
        }
        return Drawn(self, FORMAT, interface, facts, taken_from(train), test)

    def _table(self) -> Batch:
        """Every pair: the numbers are tokens by themselves, and the operation and = are those behind them."""
        least = 1 if self.operation == "/" else 0
        a, b = (each.flatten() for each in torch.meshgrid(*self._numbers(least), indexing="ij"))
        if self.operation == "+":
            c = a + b
        elif self.operation == "-":
            c = a - b
        else:
            inverse = (
                torch.tensor([pow(n, -1, self.modulus) if n else 0 for n in range(self.modulus)]) if least else None
            )
            c = a * (b if inverse is None else inverse[b])
        signs = torch.tensor([self.modulus, self.modulus + 1]).expand(len(a), 2)
        tokens = torch.stack([a, signs[:, 0], b, signs[:, 1]], 1)
        targets = torch.full_like(tokens, IGNORED)
        targets[:, -1] = c % self.modulus
        return Batch((tokens,), targets)

    def _numbers(self, least: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.arange(self.modulus), torch.arange(least, self.modulus)
