"""The tasks of algorithms: sorted by counting, and closed by a stack."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor, nn

from ablate.model.keys import generator
from ablate.slots import IGNORED, Batch, Interface
from ablate_plugins.task.algorithms import Dyck, Sort
from tests.ablate_plugins.task.judging import Answer, Solves, answered, asked, at_its_bounds, rows

SEEDS = st.integers(0, 10**6)
few = settings(max_examples=25, deadline=None)
PAD, BEGIN, END, SYMBOLS = 0, 1, 2, 3


# --- sort ---


class _Sorts(nn.Module):
    """Counts how often each symbol is in the source, and writes the n-th at the n-th place."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

    def forward(self, source: Tensor, valid: Tensor, so_far: Tensor) -> Tensor:
        logits = torch.zeros(*so_far.shape, self.outputs)
        for row, (tokens, real) in enumerate(zip(source.tolist(), valid.tolist(), strict=True)):
            read = tokens[: sum(real)]
            written = [symbol for symbol in range(SYMBOLS, self.outputs) for _ in range(read.count(symbol))]
            for place, symbol in enumerate([*written, END]):
                logits[row, place, symbol] = 50.0
        return logits


def check_sorted(batch: Batch, symbols: int, lengths: set[int]) -> None:
    source, valid, so_far = batch.inputs
    wanted = _Sorts(symbols + SYMBOLS)(source, valid, so_far).argmax(-1)
    assert valid.dtype == torch.bool and source.dtype == so_far.dtype == batch.targets.dtype == torch.int64
    for tokens, real, read, right, targets in zip(
        source.tolist(), valid.tolist(), so_far.tolist(), wanted.tolist(), batch.targets.tolist(), strict=True
    ):
        length = sum(real)
        assert length in lengths and real == [True] * length + [False] * (len(real) - length)
        assert all(SYMBOLS <= token < SYMBOLS + symbols for token in tokens[:length])
        assert tokens[length:] == [PAD] * (len(real) - length)
        assert targets == right[: length + 1] + [IGNORED] * (len(real) - length)
        assert read == [BEGIN, *right[:length]] + [PAD] * (len(real) - length)


@few
@given(st.integers(2, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 12), SEEDS)
def test_what_is_sorted_is_in_order(symbols: int, one: int, other: int, test_length: int, seed: int) -> None:
    shortest, length = sorted((one, other))
    task = Sort(symbols=symbols, length=length, shortest=shortest, test_length=test_length, samples=5)
    data, longest = task.load("."), max(length, test_length)
    assert data.interface == Interface(
        form="sequence_to_sequence",
        context=longest + 1,
        vocabulary=symbols + SYMBOLS,
        source_context=longest,
        source_vocabulary=symbols + SYMBOLS,
        trained=length + 1,
        trained_source=length,
    )
    check_sorted(data.batch(6, generator(seed)), symbols, set(range(shortest, length + 1)))
    check_sorted(data.evaluation(5)[0], symbols, {test_length})
    untested = Sort(symbols=symbols, length=length, shortest=shortest, samples=5).load(".")
    check_sorted(untested.evaluation(5)[0], symbols, set(range(shortest, length + 1)))


def test_all_symbols_and_lengths_to_sort_are_drawn() -> None:
    source, valid, _ = Sort(symbols=4, length=5, shortest=2).load(".").batch(12_000, generator(1)).inputs
    lengths = valid.sum(1).bincount(minlength=6) / len(source)
    assert lengths.tolist() == pytest.approx([0, 0, 0.25, 0.25, 0.25, 0.25], abs=0.02)
    symbols = source[valid].bincount(minlength=7) / valid.sum()
    assert symbols.tolist() == pytest.approx([0, 0, 0, 0.25, 0.25, 0.25, 0.25], abs=0.02)


def test_sorting_has_its_floor_and_its_ceiling() -> None:
    at_its_bounds(Sort(samples=150), _Sorts(19))
    at_its_bounds(Sort(symbols=3, length=5, shortest=1, test_length=12, samples=150), _Sorts(6))


def test_the_unigram_entropy_of_sorting_is_that_of_its_targets() -> None:
    data = Sort(symbols=5, length=7, shortest=2).load(".")
    targets = data.batch(20_000, generator(0)).targets
    shares = targets[targets != IGNORED].bincount().double()
    shares = shares[shares > 0] / shares.sum()
    assert data.facts["unigram_entropy"] == pytest.approx(float(-(shares * shares.log()).sum()), abs=5e-3)


def test_the_shortest_is_no_longer_than_the_longest() -> None:
    with pytest.raises(ValidationError, match="`shortest` is 5, and `length` is 4"):
        Sort(length=4, shortest=5)


# --- Dyck ---


def stack(kinds: int, tokens: list[int]) -> list[int]:
    """The kinds that are open after these brackets, the last one at the end."""
    still_open: list[int] = []
    for token in tokens:
        if token < kinds:
            still_open.append(token)
        else:
            assert still_open.pop() == token - kinds
    return still_open


def closing(kinds: int) -> Answer:
    def answer(tokens: list[int]) -> int | None:
        still_open = stack(kinds, tokens)
        return still_open[-1] + kinds if still_open else None

    return answer


@few
@given(st.integers(2, 6), st.integers(1, 5), st.integers(0, 30), st.integers(0, 40), SEEDS)
def test_brackets_are_nested_and_only_their_closing_is_asked_for(
    kinds: int, depth: int, more: int, test_more: int, seed: int
) -> None:
    length, test_length = depth + more, depth + test_more
    data = Dyck(kinds=kinds, depth=depth, length=length, test_length=test_length, samples=5).load(".")
    assert data.interface == Interface(context=max(length, test_length), vocabulary=2 * kinds, trained=length)
    for batch, many in ((data.batch(6, generator(seed)), length), (data.evaluation(5)[0], test_length)):
        answered(batch, closing(kinds))
        for tokens, targets in rows(batch):
            assert len(tokens) == many
            open_after = [len(stack(kinds, tokens[: place + 1])) for place in range(many)]
            assert max(open_after) <= depth
            closes = [place for place in range(many - 1) if tokens[place + 1] >= kinds]
            assert [place for place in asked(targets) if place < many - 1] == closes
            if open_after[-1] == depth:
                assert asked(targets)[-1] == many - 1


def test_brackets_open_and_close_as_often_where_both_may_be_and_no_kind_is_favoured() -> None:
    (tokens,), _ = Dyck(kinds=3, depth=3, length=40).load(".").batch(2_000, generator(0))
    opens = tokens < 3
    open_before = (2 * opens - 1).cumsum(1) - (2 * opens.long() - 1)
    assert opens[open_before == 0].all() and not opens[open_before == 3].any()
    for level in (1, 2):
        assert opens[open_before == level].double().mean() == pytest.approx(0.5, abs=0.015)
    assert (tokens[opens].bincount() / opens.sum()).tolist() == pytest.approx([1 / 3] * 3, abs=0.015)


def test_brackets_have_their_floor_and_their_ceiling() -> None:
    at_its_bounds(Dyck(samples=40), Solves(closing(8), 16))
    at_its_bounds(Dyck(kinds=2, depth=5, length=10, test_length=80, samples=40), Solves(closing(2), 4))


def test_a_sequence_in_which_nothing_closes_is_refused() -> None:
    with pytest.raises(ValidationError, match="with `depth: 3`, a sequence of 2 brackets may be one where none closes"):
        Dyck(depth=3, length=2)
