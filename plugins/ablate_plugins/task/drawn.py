"""What the tasks share whose samples are made up: how they are drawn, cut and judged. No component."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from ablate.model.keys import generator as keyed
from ablate.model.scoring import tally
from ablate.slots import IGNORED, Batch, Interface, Options, Task

Draw = Callable[[int, torch.Generator], Batch]
"""So many samples, from a stream."""
CHUNK = 256
"""Samples of a fixed set that are drawn at once."""


class Drawn:
    """Samples that are made up: those of training drawn afresh at each step, those of evaluation once."""

    def __init__(
        self, task: Task, form: int, interface: Interface, facts: Mapping[str, float], train: Draw, evaluation: Batch
    ) -> None:
        self.interface = interface
        self.facts: Mapping[str, float] = {"vocabulary": float(interface.vocabulary), **facts}
        self.digest = digest_of(task, form)
        self._train, self._evaluation = train, evaluation

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Training samples."""
        return self._train(size, generator)

    def evaluation(self, size: int) -> Sequence[Batch]:
        """The fixed samples, in their order."""
        tensors = [_tokens(each) for each in (*self._evaluation.inputs, self._evaluation.targets)]
        parts = zip(*(tensor.split(size) for tensor in tensors), strict=True)
        return [Batch(tuple(inputs), targets) for *inputs, targets in parts]


def digest_of(task: Task, form: int) -> str:
    """Hash of what a made up task is made by: its options, and a number that is raised when they give other data."""
    options = task.effective().model_dump(mode="json", exclude_defaults=True)
    return hashlib.sha256(json.dumps([_kind(task), form, options], sort_keys=True).encode()).hexdigest()


def stream(task: Task, name: str) -> torch.Generator:
    """The stream of a task that no seed of a trial changes, as of its ``evaluation``."""
    return keyed(_kind(task), name)


def _kind(task: Task) -> str:
    return str(type(task).model_fields["kind"].default)


def taken_from(samples: Batch) -> Draw:
    """Draw from a fixed training set, each sample being as likely at each draw; its tokens may be of any integers."""

    def draw(size: int, generator: torch.Generator) -> Batch:
        rows = torch.randint(len(samples.targets), (size,), generator=generator)
        return Batch(tuple(_tokens(each[rows]) for each in samples.inputs), _tokens(samples.targets[rows]))

    return draw


def _tokens(held: Tensor) -> Tensor:
    return held if held.dtype == torch.bool else held.long()


def fixed(draw: Draw, count: int, generator: torch.Generator) -> Batch:
    """A set of so many samples, held small, and drawn a few at a time where drawing them takes much memory."""
    parts = [draw(min(CHUNK, count - done), generator) for done in range(0, count, CHUNK)]
    *inputs, targets = (
        torch.cat(each) if each[0].dtype == torch.bool else torch.cat(each).int()
        for each in zip(*((*part.inputs, part.targets) for part in parts), strict=True)
    )
    return Batch(tuple(inputs), targets)


def distinct(size: int, count: int, of: int, generator: torch.Generator) -> Tensor:
    """Numbers under ``of``, no two of a row alike, each choice and order being as likely: (size, count)."""
    return torch.rand(size, of, generator=generator).topk(count, dim=1).indices


def entropy(targets: Tensor) -> float:
    """That of the tokens which are to be answered, each taken by itself, in nats."""
    counts = targets[targets != IGNORED].bincount().double()
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * shares.log()).sum())


class Judged(Options):
    """A made up task that is judged answer by answer."""

    units: ClassVar[Mapping[str, str]] = {"val/loss": "nats/token", "val/accuracy": "share"}

    def tally(self, network: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Sums over the tokens that are asked for."""
        return tally(network(*batch.inputs), batch.targets)

    def metrics(self, totals: Mapping[str, float]) -> Mapping[str, float]:
        """Mean cross-entropy, and the share of the answers that are right."""
        return {"val/loss": totals["nats"] / totals["count"], "val/accuracy": totals["correct"] / totals["count"]}


class JudgedAsWhole(Judged):
    """A made up task that is judged answer by answer, and by whether a sequence has all of them."""

    units: ClassVar[Mapping[str, str]] = {"val/loss": "nats/token", "val/accuracy": "share", "val/exact": "share"}

    def tally(self, network: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Sums over the tokens that are asked for, and the sequences that are right as a whole."""
        logits, targets = network(*batch.inputs), batch.targets
        right = ((logits.argmax(-1) == targets) | (targets == IGNORED)).all(-1)
        return {**tally(logits, targets), "exact": right.sum(), "sequences": targets.new_tensor(len(targets))}

    def metrics(self, totals: Mapping[str, float]) -> Mapping[str, float]:
        """Loss and accuracy by token, given the right tokens before it; `exact` by sequence."""
        return {**super().metrics(totals), "val/exact": totals["exact"] / totals["sequences"]}


class TestedLonger(Options):
    """A made up task whose evaluation may be of another length than its training."""

    length: int
    test_length: int | None = Field(None, ge=1)
    """Tokens of a sequence in the evaluation set, `length` being that of training; null for the same. The metrics are
    then those of this length, and the model's context is the longer of the two."""

    @property
    def tested(self) -> int:
        """Length of what is evaluated."""
        return self.length if self.test_length is None else self.test_length

    @property
    def longest(self) -> int:
        """The longer of the two lengths."""
        return max(self.length, self.tested)

    def effective(self) -> Self:
        """The same data, with one spelling of a length that is the same."""
        return self.model_copy(update={"test_length": None}) if self.test_length == self.length else self
