"""Cutting a batch into micro-batches, so that a step needs less memory and its gradient stays that of the batch."""

from __future__ import annotations

import gc
from dataclasses import dataclass

import torch

from ablate.experiment.settings import Setup
from ablate.model.dropout import Rows
from ablate.slots import IGNORED, Batch, Model, named, parts_of


@dataclass(frozen=True)
class MicroBatch:
    """Some rows of a batch."""

    batch: Batch
    rows: Rows | None
    """Which rows; None where they are all."""
    share: float
    """What its mean loss counts in the mean over the whole batch: its share of the targets that are not ignored."""


def micro_batches(batch: Batch, size: int) -> list[MicroBatch]:
    """The batch in micro-batches of at most ``size`` rows, in their order."""
    whole = len(batch.targets)
    if size >= whole:
        return [MicroBatch(batch, None, 1.0)]
    parts = cut(batch, size)
    counted = [int(count) for count in torch.stack([(part.targets != IGNORED).sum() for part in parts]).tolist()]
    total = max(1, sum(counted))
    return [
        MicroBatch(part, Rows(number * size, len(part.targets), whole), count / total)
        for number, (part, count) in enumerate(zip(parts, counted, strict=True))
    ]


def cut(batch: Batch, size: int) -> list[Batch]:
    """The batch in pieces of at most ``size`` rows."""
    inputs = [each.split(size) for each in batch.inputs]
    return [Batch(tuple(given), targets) for *given, targets in zip(*inputs, batch.targets.split(size), strict=True)]


def sees_the_batch(setup: Setup) -> str | None:
    """Why a setup means something else on a part of a batch, or None where it does not."""
    parts = [*parts_of(setup.model.effective()), setup.training.loss]
    parts.sort(key=lambda part: isinstance(part, Model))  # a model says what its parts say; they are the plainer cause
    found = next((part for part in parts if part.traits().batch_dependent), None)
    return None if found is None else f"{named(found)} sees the whole batch in training"


def free() -> None:
    """Give back what nothing needs any more: cycles of an exception's frames first, and then the allocators' caches."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()
