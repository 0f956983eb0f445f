"""Checks of tasks: their data, and what they count of a network."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor, nn

from ablate.model.keys import generator
from ablate.slots import IGNORED, Batch, Cache, Data, Interface, Task
from ablate.testing.case import Case
from ablate.testing.modules import global_generators_kept


@cache
def _data(task: Task) -> Data:
    with tempfile.TemporaryDirectory() as folder:
        return task.load(folder)


def _task(case: Case) -> Task:
    assert isinstance(case.component, Task)
    return case.component


def loads(case: Case) -> str | None:
    """The data load, have a digest that is the same at every load, and facts that are numbers."""
    task = _task(case)
    first = _data(task)
    with tempfile.TemporaryDirectory() as folder:
        second = task.load(folder)
    if not isinstance(first.interface, Interface):
        return f"an interface that is a {type(first.interface).__name__}"
    if not isinstance(first.digest, str) or not first.digest:
        return f"the digest {first.digest!r}"
    if first.digest != second.digest or first.interface != second.interface:
        return "another digest or interface at a second load"
    bad = [
        name for name, value in first.facts.items() if not isinstance(value, int | float) or not math.isfinite(value)
    ]
    return f"no finite number for {', '.join(f'`{name}`' for name in bad)} in its facts" if bad else None


def batches(case: Case) -> str | None:
    """Batches have the shapes, types and ranges that the interface says."""
    data = _data(_task(case))
    found = [("a training batch", data.batch(5, generator("testing", "data")), 5)]
    found += [("an evaluation batch", batch, 0) for batch in data.evaluation(5)]
    return next(
        (f"{wrong} in {what}" for what, batch, size in found if (wrong := _misfit(batch, data.interface, size))), None
    )


def _misfit(batch: Batch, interface: Interface, size: int) -> str | None:
    """What does not fit in a batch; ``size`` is 0 where it may have fewer samples."""
    source, tokens = ("source", interface.source_vocabulary), ("tokens", interface.vocabulary)
    expected = {
        "language_modelling": [tokens],
        "classification": [tokens, ("valid", 0)],
        "sequence_to_sequence": [source, ("valid", 0), tokens],
    }[interface.form]
    if not isinstance(batch, Batch) or len(batch.inputs) != len(expected):
        return f"no inputs of {', '.join(name for name, _ in expected)}"
    for (name, vocabulary), values in zip(expected, batch.inputs, strict=True):
        of_source = interface.form == "sequence_to_sequence" and name != "tokens"
        most = interface.source_context if of_source else interface.context
        real = interface.features if name == "tokens" else 0
        if real and (values.dim() != 3 or values.shape[2] != real or not values.is_floating_point()):
            return f"`{name}` of shape {tuple(values.shape)} and type {_type(values)}, where a token is {real} values"
        if values.dim() != 2 + bool(real) or (size and len(values) != size) or not 1 <= values.shape[1] <= most:
            return f"`{name}` of shape {tuple(values.shape)}, where it has at most {most} tokens"
        if real:
            if not values.isfinite().all():
                return f"`{name}` with values that are not finite"
            continue
        if values.dtype != (torch.long if vocabulary else torch.bool):
            return f"`{name}` of type {_type(values)}"
        if vocabulary and not 0 <= int(values.min()) <= int(values.max()) < vocabulary:
            return f"`{name}` from {int(values.min())} to {int(values.max())}, of a vocabulary of {vocabulary}"
        if not vocabulary and (not values[:, 0].all() or (values[:, 1:] > values[:, :-1]).any()):
            return "`valid` that is not True up to a sequence's end and False from there"
    targets = batch.targets
    shape = batch.inputs[0].shape[:1] if interface.form == "classification" else batch.inputs[-1].shape
    if targets.shape != shape or targets.dtype != torch.long:
        return f"targets of shape {tuple(targets.shape)} and type {_type(targets)}"
    counted = targets[targets != IGNORED]
    if not len(counted) or not 0 <= int(counted.min()) <= int(counted.max()) < interface.outputs:
        return f"targets that are none of {interface.outputs}"
    return None


def _type(values: Tensor) -> str:
    return str(values.dtype).removeprefix("torch.")


def draws_by_generator(case: Case) -> str | None:
    """The generator alone decides a batch: the same gives the same, another gives another."""
    data, moved = _data(_task(case)), list[str]()
    with global_generators_kept(moved):
        first, second, other = (data.batch(8, generator("testing", "draw", seed)) for seed in (0, 0, 1))
    if moved:
        return f"a draw from the global generator of {' and '.join(moved)}"
    if not _same([first], [second]):
        return "another batch from the same generator"
    return "the same batch from another generator" if _same([first], [other]) else None


def evaluates(case: Case) -> str | None:
    """The evaluation set is the same at every call, however large its batches are."""
    data, moved = _data(_task(case)), list[str]()
    with global_generators_kept(moved):
        first, second, smaller = data.evaluation(7), data.evaluation(7), data.evaluation(3)
    if moved:
        return f"a draw from the global generator of {' and '.join(moved)}"
    if any(len(batch.targets) > 3 for batch in smaller):
        return "a batch of more samples than were asked for"
    if not _same(first, second):
        return "another set at a second call"
    return None if _same(first, smaller) else "other samples in smaller batches"


def _same(first: Sequence[Batch], second: Sequence[Batch]) -> bool:
    """Whether two lists of batches hold the same samples in the same order."""
    parts = list(zip(*((*batch.inputs, batch.targets) for batch in first), strict=True))
    others = list(zip(*((*batch.inputs, batch.targets) for batch in second), strict=True))
    return all(_rows(one) == _rows(other) for one, other in zip(parts, others, strict=True))


def _rows(tensors: Sequence[Tensor]) -> list[list[int]]:
    return [row.tolist() for tensor in tensors for row in tensor]


class _Guess(nn.Module):
    """Logits that depend on a sample alone."""

    def __init__(self, interface: Interface) -> None:
        super().__init__()
        self.interface = interface
        size = max(interface.vocabulary, interface.source_vocabulary, interface.features)
        self.table = nn.Parameter(torch.randn(size, interface.outputs, generator=generator("testing", "guess")))

    def forward(self, *inputs: Tensor) -> Tensor:
        if self.interface.form == "classification":
            tokens, valid = inputs
            given = tokens @ self.table if self.interface.features else self.table[tokens]
            return (given * valid[..., None]).sum(1)
        return self.table[inputs[-1]]

    def begin(self, *source: Tensor) -> Cache:
        return Cache()

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        return self.table[tokens]


@torch.no_grad()
def tallies(case: Case) -> str | None:
    """Sums over a batch are those over its parts, and what is reported are exactly the `units`, as finite numbers."""
    task = _task(case)
    data = _data(task)
    network, batch = _Guess(data.interface).eval(), data.evaluation(6)[0]
    whole = _totals(task, network, [batch])
    parts = _totals(task, network, [_cut(batch, slice(0, 2)), _cut(batch, slice(2, None))])
    if whole.keys() != parts.keys():
        return "other sums for parts of a batch"
    for name, value in whole.items():
        if abs(value - parts[name]) > 1e-4 * max(1.0, abs(value)):
            return f"`{name}` of {value:.6g} for a batch, and {parts[name]:.6g} for its parts"
    reported = task.metrics(whole)
    if set(reported) != set(task.units):
        return f"metrics {sorted(reported)} in place of {sorted(task.units)}"
    bad = [name for name, value in reported.items() if not isinstance(value, int | float) or not math.isfinite(value)]
    return f"no finite number for {', '.join(f'`{name}`' for name in bad)}" if bad else None


def _cut(batch: Batch, rows: slice) -> Batch:
    return Batch(tuple(each[rows] for each in batch.inputs), batch.targets[rows])


def _totals(task: Task, network: nn.Module, batches: Sequence[Batch]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for batch in batches:
        for name, value in task.tally(network, batch).items():
            if value.dim():
                raise TypeError(f"`tally` gave `{name}` of shape {tuple(value.shape)}, and no scalar")
            totals[name] = totals.get(name, 0.0) + float(value)
    return totals
