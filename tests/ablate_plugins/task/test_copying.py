"""The task of copying: right answers by brute force, and what is counted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from ablate.errors import InputError
from ablate.model.keys import generator
from ablate.slots import IGNORED, Batch, Cache, Decoded, Decodes, Decoding, Interface
from ablate_plugins.task.copying import Copy

PAD, BEGIN, END = 0, 1, 2
TASKS = [
    Copy(symbols=5, length=6, samples=40),
    Copy(symbols=5, length=6, shortest=1, samples=40),
    Copy(symbols=2, length=7, shortest=3, reverse=True, samples=40),
    Copy(symbols=9, length=1, reverse=True, samples=3),
]


def named(task: Copy) -> str:
    return str(task.model_dump(exclude_defaults=True, exclude={"kind"}))


def same(first: Batch, second: Batch) -> bool:
    tensors = zip((*first.inputs, first.targets), (*second.inputs, second.targets), strict=True)
    return all(torch.equal(one, other) for one, other in tensors)


def right_logits(batch: Batch, vocabulary: int) -> Tensor:
    return 50 * nn.functional.one_hot(batch.targets.clamp(min=0), vocabulary).float()


class _Says(nn.Module):
    """Gives the logits that it was made with."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, source: Tensor, valid: Tensor, so_far: Tensor) -> Tensor:
        return self.logits


class _Writes(_Says):
    def begin(self, source: Tensor, valid: Tensor) -> Cache:
        cache = Cache()
        cache.states["source"] = (source, valid)
        return cache


class _Reads(Decoding):
    """Writes what the source says, up to its end, and spoils one text."""

    kind: Literal["reads"] = "reads"
    spoiled: int = 0
    cut: int = 0
    calls: ClassVar[list[Any]] = []

    def write(
        self, network: Decodes, cache: Cache, prompt: Tensor, *, most: int, end: int | None, generator: torch.Generator
    ) -> Decoded:
        """Source, then the end."""
        source, valid = cache.states["source"]
        written = nn.functional.pad(torch.where(valid, source, END), (0, 1), value=END)
        written[self.spoiled, 0] = END
        self.calls.append((prompt.tolist(), most, end, torch.rand(1, generator=generator).item()))
        return Decoded(written[:, : most - self.cut], torch.zeros(len(prompt)))


@pytest.mark.parametrize("task", TASKS, ids=named)
def test_every_sample_is_what_it_should_be(task: Copy) -> None:
    data = task.load(".")
    for batch in [data.batch(64, generator(0)), *data.evaluation(16)]:
        source, valid, so_far = batch.inputs
        assert source.shape == valid.shape == (len(source), task.length)
        assert so_far.shape == batch.targets.shape == (len(source), task.length + 1)
        assert valid.dtype == torch.bool and source.dtype == so_far.dtype == batch.targets.dtype == torch.int64
        rows = zip(source.tolist(), valid.tolist(), so_far.tolist(), batch.targets.tolist(), strict=True)
        for tokens, real, read, wanted in rows:
            length = sum(real)
            assert real == [True] * length + [False] * (task.length - length)
            assert (task.shortest or task.length) <= length <= task.length
            symbols = tokens[:length]
            assert all(3 <= symbol < 3 + task.symbols for symbol in symbols)
            assert tokens[length:] == [PAD] * (task.length - length)
            answer = symbols[::-1] if task.reverse else symbols
            assert read == [BEGIN, *answer] + [PAD] * (task.length - length)
            assert wanted == [*answer, END] + [IGNORED] * (task.length - length)


def test_all_symbols_and_lengths_are_drawn_and_none_is_favoured() -> None:
    task = Copy(symbols=4, length=5, shortest=2)
    source, valid, _ = task.load(".").batch(20_000, generator(1)).inputs
    lengths = valid.sum(1).bincount(minlength=6) / len(source)
    assert lengths.tolist() == pytest.approx([0, 0, 0.25, 0.25, 0.25, 0.25], abs=0.015)
    symbols = source[valid].bincount(minlength=7) / valid.sum()
    assert symbols.tolist() == pytest.approx([0, 0, 0, 0.25, 0.25, 0.25, 0.25], abs=0.015)


def test_the_interface_has_the_sizes_of_both_sides() -> None:
    assert Copy(symbols=5, length=6).load(".").interface == Interface(
        form="sequence_to_sequence", context=7, vocabulary=8, source_context=6, source_vocabulary=8
    )


def test_training_is_drawn_from_the_given_stream_alone() -> None:
    data = TASKS[1].load(".")
    torch.manual_seed(5)
    before = torch.get_rng_state()
    assert same(data.batch(8, generator(0, 1)), data.batch(8, generator(0, 1)))
    assert not same(data.batch(8, generator(0, 1)), data.batch(8, generator(0, 2)))
    assert torch.equal(before, torch.get_rng_state())


def test_the_evaluation_set_is_the_same_at_every_call_and_in_every_cut() -> None:
    task = Copy(shortest=2, samples=50)
    (whole,) = task.load(".").evaluation(64)
    data = task.load(".")
    data.batch(8, generator(0))
    for _ in range(2):
        parts = data.evaluation(16)
        assert [len(part.targets) for part in parts] == [16, 16, 16, 2]
        tensors = [torch.cat(parts) for parts in zip(*((*part.inputs, part.targets) for part in parts), strict=True)]
        *inputs, targets = tensors
        assert same(Batch(tuple(inputs), targets), whole)


def test_digests_differ_by_every_option_of_the_data() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"symbols": 15},
        {"length": 15},
        {"shortest": 4},
        {"shortest": 5},
        {"reverse": True},
        {"samples": 255},
    ]
    assert len({Copy.model_validate(change).load(".").digest for change in changes}) == len(changes)
    assert Copy().load(".").digest == Copy(decoding=_Reads()).load("elsewhere").digest


def test_one_length_has_one_spelling() -> None:
    task = Copy(length=9, shortest=9)
    assert task.effective() == Copy(length=9) == Copy(length=9).effective()
    assert task.load(".").digest == Copy(length=9).load(".").digest
    assert same(task.load(".").batch(8, generator(0)), Copy(length=9).load(".").batch(8, generator(0)))


def test_the_shortest_is_no_longer_than_the_longest() -> None:
    with pytest.raises(ValidationError, match="`shortest` is 5, and `length` is 4"):
        Copy(length=4, shortest=5)


@pytest.mark.parametrize("task", TASKS, ids=named)
def test_unigram_entropy_is_that_of_the_targets(task: Copy) -> None:
    data = task.load(".")
    targets = data.batch(50_000, generator(0)).targets
    shares = targets[targets != IGNORED].bincount().double()
    shares = shares[shares > 0] / shares.sum()
    assert data.facts["unigram_entropy"] == pytest.approx(float(-(shares * shares.log()).sum()), abs=5e-3)
    assert data.facts["vocabulary"] == data.interface.vocabulary


def judged(task: Copy, network: nn.Module, batch: Batch) -> Mapping[str, float]:
    totals = task.tally(network, batch)
    assert all(total.dim() == 0 for total in totals.values())
    values = task.metrics({name: float(total) for name, total in totals.items()})
    assert values.keys() == task.units.keys()
    return values


def test_what_is_right_is_counted_by_token_and_by_sequence() -> None:
    task = Copy(symbols=5, length=3, shortest=1, samples=20)
    (batch,) = task.load(".").evaluation(20)
    logits = right_logits(batch, 8)
    assert judged(task, _Says(logits), batch) == {"val/loss": 0, "val/accuracy": 1, "val/exact": 1}
    logits[4, 0] = logits[4, 0].roll(1)
    logits[batch.targets == IGNORED] = 7.0  # says nothing of what is not asked
    counted = int((batch.targets != IGNORED).sum())
    assert judged(task, _Says(logits), batch) == {
        "val/loss": pytest.approx(50 / counted),
        "val/accuracy": pytest.approx(1 - 1 / counted),
        "val/exact": pytest.approx(19 / 20),
    }


def test_who_knows_nothing_loses_as_much_as_there_are_tokens() -> None:
    task = TASKS[1]
    (batch,) = task.load(".").evaluation(64)
    values = judged(task, _Says(torch.zeros(*batch.targets.shape, 8)), batch)
    assert values == {"val/loss": pytest.approx(math.log(8)), "val/accuracy": 0, "val/exact": 0}


@pytest.mark.parametrize("cut", [0, 1])
def test_with_a_decoding_exact_is_of_what_is_written(cut: int) -> None:
    decoding = _Reads(spoiled=2, cut=cut)
    task = Copy(symbols=5, length=4, shortest=1, samples=20, decoding=decoding)
    (batch,) = task.load(".").evaluation(20)
    _Reads.calls.clear()
    network = _Writes(torch.zeros(20, 5, 8))
    values = [judged(task, network, batch) for _ in range(2)]
    # A text that is cut off was written to its end where it is shorter: an end is taken to follow.
    assert values[0]["val/exact"] == pytest.approx(19 / 20)
    assert values[0]["val/loss"] == pytest.approx(math.log(8))
    assert values[0] == values[1] and _Reads.calls[0] == _Reads.calls[1]
    assert _Reads.calls[0][:3] == ([[BEGIN]] * 20, 5, END)


def test_what_is_written_backwards_is_no_copy() -> None:
    task = Copy(symbols=9, length=6, reverse=True, samples=20, decoding=_Reads())
    (batch,) = task.load(".").evaluation(20)
    assert judged(task, _Writes(torch.zeros(20, 7, 12)), batch)["val/exact"] == 0


def test_a_model_that_cannot_write_is_one_clear_error() -> None:
    task = Copy(symbols=5, length=4, samples=3, decoding=_Reads())
    (batch,) = task.load(".").evaluation(3)
    with pytest.raises(InputError) as caught:
        task.tally(_Says(torch.zeros(3, 5, 8)), batch)
    assert str(caught.value) == (
        "error[S307]: the task writes by `reads`, and the model cannot decode\n"
        "  = help: set the task's `decoding` to null, or take a model that has `begin` and `decode`"
    )
