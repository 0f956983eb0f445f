"""What holds of every made up task: its streams, its evaluation set, its identity and what is counted."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ablate.model.keys import generator
from ablate.slots import IGNORED, Batch, Data
from ablate_plugins.task.algorithms import Dyck, Sort
from ablate_plugins.task.arithmetic import ModularArithmetic
from ablate_plugins.task.drawn import distinct, entropy
from ablate_plugins.task.listops import ListOps
from ablate_plugins.task.mad import MadCompression, MadMemorization, MadSelectiveCopying
from ablate_plugins.task.mad_recall import MadFuzzyRecall, MadNoisyRecall, MadRecall
from ablate_plugins.task.recall import AssociativeRecall, Induction, Mqar, SelectiveCopying
from tests.ablate_plugins.task.judging import judged

FEW: dict[str, Any] = {"examples": 30, "samples": 20}
OPTIONS: list[tuple[type[Any], dict[str, Any], list[dict[str, Any]]]] = [
    (AssociativeRecall, {}, [{"keys": 25}, {"values": 9}, {"pairs": 5}, {"test_pairs": 5}, {"samples": 9}]),
    (
        Mqar,
        {},
        [
            {"vocabulary": 63},
            {"pairs": 5},
            {"context": 34},
            {"power": 0.5},
            {"filler": "zero"},
            {"test_pairs": 5},
            {"test_context": 34},
            {"samples": 9},
        ],
    ),
    (Induction, {}, [{"vocabulary": 19}, {"length": 29}, {"test_length": 60}, {"samples": 9}]),
    (
        SelectiveCopying,
        {"length": 40, "tokens": 5},
        [{"vocabulary": 15}, {"length": 41}, {"tokens": 6}, {"test_length": 60}, {"samples": 9}],
    ),
    (Sort, {}, [{"symbols": 15}, {"length": 15}, {"shortest": 3}, {"test_length": 20}, {"samples": 9}]),
    (Dyck, {}, [{"kinds": 7}, {"depth": 4}, {"length": 63}, {"test_length": 70}, {"samples": 9}]),
    (
        ModularArithmetic,
        {"modulus": 11},
        [{"operation": "-"}, {"operation": "/"}, {"modulus": 13}, {"train_share": 0.6}, {"samples": 9}],
    ),
    (
        ListOps,
        FEW,
        [{"depth": 3}, {"arguments": 4}, {"length": 50}, {"shortest": 6}, {"test_length": 120}, {"examples": 31}],
    ),
    (
        MadRecall,
        {"length": 20, **FEW},
        [{"vocabulary": 14}, {"length": 18}, {"every_token": False}, {"examples": 31}, {"samples": 9}],
    ),
    (
        MadNoisyRecall,
        {"length": 20, **FEW},
        [{"vocabulary": 30}, {"noise_vocabulary": 9}, {"noise": 0.4}, {"length": 18}, {"every_token": False}],
    ),
    (
        MadFuzzyRecall,
        {"length": 30, **FEW},
        [{"vocabulary": 14}, {"length": 31}, {"key_size": 2}, {"value_size": 2}, {"every_token": False}],
    ),
    (
        MadSelectiveCopying,
        {"length": 40, "tokens": 5, **FEW},
        [{"vocabulary": 15}, {"length": 41}, {"tokens": 6}, {"examples": 31}, {"samples": 9}],
    ),
    (MadCompression, FEW, [{"vocabulary": 15}, {"length": 31}, {"examples": 31}, {"samples": 9}]),
    (MadMemorization, FEW, [{"vocabulary": 200}, {"length": 30}, {"examples": 31}, {"samples": 9}]),
]
TASKS = [component(**options) for component, options, _ in OPTIONS]


def kind(task: Any) -> str:
    return str(task.kind)


def same(first: Batch, second: Batch) -> bool:
    tensors = list(zip((*first.inputs, first.targets), (*second.inputs, second.targets), strict=True))
    return all(one.dtype == other.dtype and torch.equal(one, other) for one, other in tensors)


def joined(parts: Any) -> Batch:
    *inputs, targets = (torch.cat(each) for each in zip(*((*part.inputs, part.targets) for part in parts), strict=True))
    return Batch(tuple(inputs), targets)


@pytest.mark.parametrize("task", TASKS, ids=kind)
def test_training_is_drawn_from_the_given_stream_alone(task: Any) -> None:
    data = task.load(".")
    torch.manual_seed(5)
    before = torch.get_rng_state()
    assert same(data.batch(8, generator(0, 1)), data.batch(8, generator(0, 1)))
    assert not same(data.batch(8, generator(0, 1)), data.batch(8, generator(0, 2)))
    assert same(data.batch(8, generator(0, 1)), task.load("elsewhere").batch(8, generator(0, 1)))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("task", TASKS, ids=kind)
def test_the_evaluation_set_is_the_same_at_every_call_and_in_every_cut(task: Any) -> None:
    (whole,) = task.load(".").evaluation(10_000)
    data = task.load(".")
    data.batch(8, generator(0))
    assert len(whole.targets) == (task.samples or 61)
    for _ in range(2):
        parts = data.evaluation(7)
        assert {len(part.targets) for part in parts[:-1]} == {7}
        assert same(joined(parts), whole)


@pytest.mark.parametrize(("component", "options", "changes"), OPTIONS, ids=lambda value: getattr(value, "__name__", ""))
def test_every_option_gives_other_data(
    component: type[Any], options: dict[str, Any], changes: list[dict[str, Any]]
) -> None:
    made = [component(**options), *(component(**{**options, **change}) for change in changes)]
    assert len({task.load(".").digest for task in made}) == len(made)
    first: Data = made[0].load(".")
    for task in made[1:]:
        data: Data = task.load(".")
        trained, evaluated = data.batch(64, generator(0)), joined(data.evaluation(99))
        other = joined(first.evaluation(99))
        assert (
            data.interface != first.interface
            or not same(trained, first.batch(64, generator(0)))
            or evaluated.targets.shape != other.targets.shape
            or not same(evaluated, other)
        ), task


def test_a_length_that_is_the_same_has_one_spelling() -> None:
    for plain, spelled in (
        (AssociativeRecall(), AssociativeRecall(test_pairs=4)),
        (Mqar(), Mqar(test_pairs=4, test_context=32)),
        (Mqar(test_context=40), Mqar(test_pairs=4, test_context=40)),
        (Induction(), Induction(test_length=30)),
        (Sort(), Sort(shortest=16, test_length=16)),
        (Dyck(), Dyck(test_length=64)),
        (ModularArithmetic(modulus=11), ModularArithmetic(modulus=11, samples=61)),
        (ListOps(), ListOps(test_length=100)),
    ):
        assert plain.effective() == plain == spelled.effective(), spelled
    assert Mqar().load(".").digest == Mqar(test_pairs=4).load(".").digest
    assert Sort(shortest=3, test_length=16).effective() == Sort(shortest=3, test_length=16)


class _Says(nn.Module):
    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.logits


def test_what_is_right_is_counted_by_answer_and_by_sequence() -> None:
    task = Mqar(samples=10)
    data = task.load(".")
    (batch,) = data.evaluation(10)
    logits = 50.0 * nn.functional.one_hot(batch.targets.clamp(min=0), 64)
    logits[batch.targets == IGNORED] = 3.0  # says nothing of what is not asked
    place = int((batch.targets[2] != IGNORED).nonzero()[0])
    logits[2, place] = logits[2, place].roll(1)
    assert judged(task, data, _Says(logits)) == {
        "val/loss": pytest.approx(50 / 40, rel=1e-4),
        "val/accuracy": pytest.approx(39 / 40),
        "val/exact": pytest.approx(9 / 10),
    }


def test_numbers_that_are_distinct_are_drawn_evenly_in_every_order() -> None:
    drawn = distinct(12_000, 2, 4, generator(0))
    counts = (drawn[:, 0] * 4 + drawn[:, 1]).bincount(minlength=16).double() / len(drawn)
    expected = [0.0 if a == b else 1 / 12 for a in range(4) for b in range(4)]
    assert counts.tolist() == pytest.approx(expected, abs=0.012)


def test_entropy_is_of_what_is_asked_for() -> None:
    assert entropy(torch.tensor([0, 3, IGNORED, 3, 0])) == pytest.approx(0.6931472)
    assert entropy(torch.tensor([5, 5])) == 0
