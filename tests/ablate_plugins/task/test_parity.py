"""The task of parity: right answers by brute force, and what is counted."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from ablate.model.keys import generator
from ablate.slots import Batch, Interface
from ablate_plugins.task.parity import Parity


def same(first: Batch, second: Batch) -> bool:
    tensors = zip((*first.inputs, first.targets), (*second.inputs, second.targets), strict=True)
    return all(torch.equal(one, other) for one, other in tensors)


class _Says(nn.Module):
    """Gives the logits that it was made with."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, tokens: Tensor, valid: Tensor) -> Tensor:
        return self.logits


@pytest.mark.parametrize("task", [Parity(), Parity(length=7, shortest=1), Parity(length=1)])
def test_every_sample_is_what_it_should_be(task: Parity) -> None:
    data = task.load(".")
    for batch in [data.batch(64, generator(0)), *data.evaluation(100)]:
        tokens, valid = batch.inputs
        assert tokens.shape == valid.shape == (len(tokens), task.length)
        assert batch.targets.shape == (len(tokens),)
        assert valid.dtype == torch.bool and tokens.dtype == batch.targets.dtype == torch.int64
        for row, real, label in zip(tokens.tolist(), valid.tolist(), batch.targets.tolist(), strict=True):
            length = sum(real)
            assert real == [True] * length + [False] * (task.length - length)
            assert (task.shortest or task.length) <= length <= task.length
            assert set(row[:length]) <= {1, 2} and row[length:] == [0] * (task.length - length)
            assert label == (1 if row.count(2) % 2 == 0 else 0)


def test_all_sequences_are_drawn_and_none_is_favoured() -> None:
    tokens, _ = Parity(length=3).load(".").batch(16_000, generator(0)).inputs
    counts = ((tokens - 1) @ torch.tensor([4, 2, 1])).bincount(minlength=8) / len(tokens)
    assert counts.tolist() == pytest.approx([1 / 8] * 8, abs=0.012)


def test_the_interface_is_that_of_two_labels() -> None:
    assert Parity(length=5).load(".").interface == Interface(form="classification", context=5, vocabulary=3, classes=2)


def test_training_is_drawn_from_the_given_stream_alone() -> None:
    data = Parity(shortest=2).load(".")
    torch.manual_seed(5)
    before = torch.get_rng_state()
    assert same(data.batch(8, generator(0, 1)), data.batch(8, generator(0, 1)))
    assert not same(data.batch(8, generator(0, 1)), data.batch(8, generator(0, 2)))
    assert torch.equal(before, torch.get_rng_state())


def test_the_evaluation_set_is_the_same_at_every_call_and_in_every_cut() -> None:
    task = Parity(shortest=2, samples=50)
    (whole,) = task.load(".").evaluation(64)
    data = task.load(".")
    data.batch(8, generator(0))
    for _ in range(2):
        parts = data.evaluation(16)
        assert [len(part.targets) for part in parts] == [16, 16, 16, 2]
        tensors = [torch.cat(parts) for parts in zip(*((*part.inputs, part.targets) for part in parts), strict=True)]
        *inputs, targets = tensors
        assert same(Batch(tuple(inputs), targets), whole)


def test_digests_differ_by_every_option() -> None:
    changes: list[dict[str, Any]] = [{}, {"length": 9}, {"shortest": 4}, {"shortest": 5}, {"samples": 255}]
    assert len({Parity.model_validate(change).load(".").digest for change in changes}) == len(changes)


def test_one_length_has_one_spelling() -> None:
    task = Parity(length=9, shortest=9)
    assert task.effective() == Parity(length=9) == Parity(length=9).effective()
    assert task.load(".").digest == Parity(length=9).load(".").digest
    assert same(task.load(".").batch(8, generator(0)), Parity(length=9).load(".").batch(8, generator(0)))


def test_the_shortest_is_no_longer_than_the_longest() -> None:
    with pytest.raises(ValidationError, match="`shortest` is 5, and `length` is 4"):
        Parity(length=4, shortest=5)


def test_labels_are_as_likely_as_their_entropy_says() -> None:
    data = Parity(length=6, shortest=1).load(".")
    share = float(data.batch(40_000, generator(0)).targets.float().mean())
    assert share == pytest.approx(0.5, abs=0.01)
    assert data.facts == {"vocabulary": 3.0, "unigram_entropy": math.log(2)}


def test_what_is_right_is_counted() -> None:
    task = Parity(samples=10)
    (batch,) = task.load(".").evaluation(10)
    logits = 50 * nn.functional.one_hot(batch.targets, 2).float()
    logits[3] = logits[3].flip(0)
    totals = task.tally(_Says(logits), batch)
    assert all(total.dim() == 0 for total in totals.values())
    values = task.metrics({name: float(total) for name, total in totals.items()})
    assert values == {"val/loss": pytest.approx(5.0), "val/accuracy": pytest.approx(0.9)}
    assert values.keys() == task.units.keys()
