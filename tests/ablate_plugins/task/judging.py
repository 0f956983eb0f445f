"""What the tests of made up tasks share: solvers, guessers, and how they are judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ablate.model.keys import generator
from ablate.slots import IGNORED, Batch, Data

Answer = Callable[[list[int]], int | None]
"""What should follow a sequence that has been read up to here, if that can be known."""


class Solves(nn.Module):
    """A language model that works each answer out from what it has read."""

    def __init__(self, answer: Answer, outputs: int) -> None:
        super().__init__()
        self.answer, self.outputs = answer, outputs

    def forward(self, tokens: Tensor) -> Tensor:
        logits = torch.zeros(*tokens.shape, self.outputs)
        for row, read in enumerate(tokens.tolist()):
            for place in range(len(read)):
                answer = self.answer(read[: place + 1])
                if answer is not None:
                    logits[row, place, answer] = 50.0
        return logits


class Guesses(nn.Module):
    """Takes any of the answers that there are, each as likely."""

    def __init__(self, data: Data) -> None:
        super().__init__()
        self.data = data
        targets = torch.cat([batch.targets.flatten() for batch in data.evaluation(4096)])
        self.answers = targets[targets != IGNORED].unique()

    def forward(self, *inputs: Tensor) -> Tensor:
        shape = inputs[0].shape[:1] if self.data.interface.form == "classification" else inputs[-1].shape
        drawn = torch.rand(*shape, len(self.answers), generator=generator("guess"))
        logits = torch.full((*shape, self.data.interface.outputs), -1.0)
        logits[..., self.answers] = drawn
        return logits


def judged(task: Any, data: Data, network: nn.Module) -> dict[str, float]:
    """The metrics of a network, over the evaluation set."""
    totals: dict[str, float] = {}
    for batch in data.evaluation(256):
        for name, value in task.tally(network, batch).items():
            assert value.dim() == 0
            totals[name] = totals.get(name, 0.0) + float(value)
    found = dict(task.metrics(totals))
    assert found.keys() == task.units.keys()
    return found


def asked(targets: Sequence[int]) -> list[int]:
    """Where an answer is asked for."""
    return [place for place, target in enumerate(targets) if target != IGNORED]


def rows(batch: Batch) -> list[tuple[list[int], list[int]]]:
    """The tokens and the targets of each sequence of a language."""
    (tokens,), targets = batch
    assert tokens.shape == targets.shape and tokens.dtype == targets.dtype == torch.int64
    return list(zip(tokens.tolist(), targets.tolist(), strict=True))


def answered(batch: Batch, answer: Answer) -> None:
    """Every target is what can be worked out from the tokens up to its place."""
    for tokens, targets in rows(batch):
        assert asked(targets)
        for place in asked(targets):
            assert answer(tokens[: place + 1]) == targets[place], (tokens, targets, place)


def at_its_bounds(task: Any, solver: nn.Module) -> None:
    """Who guesses is at the floor that the facts state, and who can solve it is at the ceiling."""
    data = task.load(".")
    counted = sum(int((batch.targets != IGNORED).sum()) for batch in data.evaluation(4096))
    floor, ceiling = data.facts["chance_accuracy"], data.facts["ceiling_accuracy"]
    spread = (floor * (1 - floor) / counted) ** 0.5
    assert judged(task, data, Guesses(data))["val/accuracy"] == pytest.approx(floor, abs=4.5 * spread)
    assert 5 * spread < ceiling - floor
    found = judged(task, data, solver)
    assert found["val/accuracy"] == pytest.approx(ceiling)
    assert found.get("val/exact", 1.0) == 1.0
    assert data.facts["unigram_entropy"] > 0
