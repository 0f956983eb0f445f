"""The task of nested lists: expressions of a few operations on digits, and their value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from ablate.errors import InputError
from ablate.slots import Batch, Data, Interface, Task
from ablate_plugins.task.drawn import Drawn, Judged, TestedLonger, entropy, stream, taken_from

PAD, DIGIT, OPERATION, CLOSE, TOKENS = 0, 1, 11, 15, 16
"""Tokens: padding, the first digit, the first operation, the closing bracket; and how many there are."""
MIN, MAX, MEDIAN, SUM = range(4)
"""Operations, in the order of their tokens."""
NESTED = 0.25
"""Share of arguments that are lists, where they may be."""
ROUND = 256, 8192
"""Expressions that are begun at once: so many at least, and at most."""
PATIENCE = 400
"""How many are begun, for each that is wanted, before it is given up."""
FORMAT = 1
"""Raised when the same options give other data."""


class ListOps(TestedLonger, Judged, Task):
    """Say the value of nested lists: the least, the greatest or the median of digits, or their sum modulo 10.

    An expression is an operation's opening bracket, its arguments and a closing bracket; an argument is a digit, or an
    expression in one of four cases, and the median of an even number of them is the mean of the middle two, rounded
    down. The whole is never a mere digit. No expression comes twice, in training or in the evaluation set. Chance, of
    one digit out of ten, is less than who always says the commonest digit gets, `commonest_accuracy`; the ceiling is 1.
    The sizes are those of the first paper; the Long Range Arena has `depth: 10`, `arguments: 10`, `shortest: 500`,
    `length: 2000` and `examples: 96000`, and no brackets but these. Sources: Nangia and Bowman 2018, ListOps; Tay et
    al. 2021, Long Range Arena, §2.2.1.
    """

    kind: Literal["listops"] = "listops"
    depth: int = Field(20, ge=2)
    """Levels of an expression, of which the lowest are digits."""
    arguments: int = Field(5, ge=2)
    """Arguments of an operation, at most; there are two at least, and every number is as likely."""
    length: int = Field(100, ge=4)
    """Tokens in an expression, at most."""
    shortest: int = Field(4, ge=4)
    """Tokens in an expression, at least. With a `test_length`, those of the evaluation set are longer than `length`,
    up to that."""
    examples: int = Field(10_000, ge=1)
    """Expressions in the training set."""
    samples: int = Field(1_000, ge=1)
    """Expressions in the evaluation set."""

    units: ClassVar[Mapping[str, str]] = {"val/loss": "nats", "val/accuracy": "share"}

    @model_validator(mode="after")
    def _lengths_in_order(self) -> Self:
        if self.shortest > self.length:
            raise ValueError(f"`shortest` is {self.shortest}, and `length` is {self.length}")
        if self.tested < self.length:
            raise ValueError(f"`test_length` is {self.test_length}, and is no longer than `length: {self.length}`")
        return self

    def load(self, folder: str) -> Data:
        """Make the training and the evaluation set.

        Raises:
            InputError: there are too few expressions of that size.
        """
        least = self.shortest if self.tested == self.length else self.length + 1
        test = self._different("evaluation", self.samples, least, self.tested, set())
        seen = {row.numpy().tobytes() for row in test[0]}
        train = self._different("training", self.examples, self.shortest, self.length, seen)
        interface = Interface(
            form="classification", context=self.longest, vocabulary=TOKENS, classes=10, trained=self.length
        )
        facts = {
            "examples": float(self.examples),
            "mean_length": float((train[0] != PAD).sum(1).double().mean()),
            "unigram_entropy": entropy(train[1]),
            "chance_accuracy": 0.1,
            "commonest_accuracy": float((test[1] == train[1].mode().values).double().mean()),
            "ceiling_accuracy": 1.0,
        }
        return Drawn(self, FORMAT, interface, facts, taken_from(_batch(*train)), _batch(*test))

    def _different(self, name: str, count: int, least: int, most: int, seen: set[bytes]) -> tuple[Tensor, Tensor]:
        """So many expressions (N, most), all different and none of those seen, and their values (N,)."""
        generator = stream(self, name)
        found: dict[bytes, tuple[Tensor, int]] = {}
        size = min(max(ROUND[0], 4 * count), ROUND[1])
        for _ in range(1 + PATIENCE * max(count, ROUND[0]) // size):
            tokens, values = draw(size, self.depth, self.arguments, most, generator)
            fits = (tokens != PAD).sum(1) >= least
            for row, value in zip(tokens[fits], values[fits].tolist(), strict=True):
                key = row.numpy().tobytes()
                if key not in seen and len(found) < count:
                    found.setdefault(key, (row, value))
            if len(found) == count:
                rows = torch.stack([row for row, _ in found.values()])
                return rows, torch.tensor([value for _, value in found.values()])
        raise InputError.one(
            "S340",
            f"only {len(found):,} of the {count:,} expressions for {name} were found, of {least} to {most} tokens",
            help="ask for fewer, allow longer ones, or more `arguments` and `depth`",
        )


def draw(size: int, depth: int, arguments: int, most: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Expressions of at most so many tokens, padded (N, most, of bytes), and their values; of ``size`` that are begun.

    They are written from the left, all at once, and each keeps for every level that is open its operation, how many
    arguments it is to have, and those that it has.
    """
    tokens = torch.zeros(size, most, dtype=torch.uint8)
    operation, wanted, had = (torch.zeros(size, depth, dtype=torch.long) for _ in range(3))
    held = torch.zeros(size, depth, arguments, dtype=torch.long)
    level = torch.zeros(size, dtype=torch.long)  # level 0 holds the whole
    wanted[:, 0] = 1
    live, done = torch.arange(size), torch.zeros(size, dtype=torch.bool)
    for place in range(most):
        at = level[live]
        full = had[live, at] == wanted[live, at]
        nests = (torch.rand(len(live), generator=generator) < NESTED) & (at < depth - 1) | (at == 0)
        which = torch.randint(4, (len(live),), generator=generator)
        many = torch.randint(2, arguments + 1, (len(live),), generator=generator)
        digit = torch.randint(10, (len(live),), generator=generator)
        closes, opens, says = full, ~full & nests, ~full & ~nests
        tokens[live, place] = torch.where(closes, CLOSE, torch.where(opens, OPERATION + which, DIGIT + digit)).byte()

        rows, levels = live[opens], at[opens] + 1
        operation[rows, levels], wanted[rows, levels], had[rows, levels] = which[opens], many[opens], 0
        level[rows] = levels

        rows, levels = live[closes], at[closes]
        digit[closes] = _value(operation[rows, levels], held[rows, levels], wanted[rows, levels])
        level[rows] = levels - 1

        given = closes | says
        rows, levels = live[given], level[live[given]]
        held[rows, levels, had[rows, levels]] = digit[given]
        had[rows, levels] += 1
        done[live] = (level[live] == 0) & (had[live, 0] == 1)
        live = live[~done[live]]
        if not len(live):
            break
    return tokens[done], held[done, 0, 0]


def _value(operation: Tensor, held: Tensor, count: Tensor) -> Tensor:
    """The values of lists: operations (N,), arguments (N, A) and how many of them there are (N,)."""
    there = torch.arange(held.shape[1]) < count[:, None]
    ordered = torch.where(there, held, 10).sort(1).values

    def nth(place: Tensor) -> Tensor:
        return ordered.gather(1, place[:, None])[:, 0]

    median = (nth((count - 1) // 2) + nth(count // 2)) // 2
    results = torch.stack([ordered[:, 0], nth(count - 1), median, (held * there).sum(1) % 10], 1)
    return results.gather(1, operation[:, None])[:, 0]


def _batch(tokens: Tensor, values: Tensor) -> Batch:
    return Batch((tokens, tokens != PAD), values)
