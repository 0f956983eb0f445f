"""The tasks of recall: every answer can be found in its sequence, and is drawn as it should be."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ablate.model.keys import generator
from ablate.slots import Interface
from ablate_plugins.task.recall import AssociativeRecall, Induction, Mqar, SelectiveCopying
from tests.ablate_plugins.task.judging import Answer, Solves, answered, asked, at_its_bounds, rows

SEEDS = st.integers(0, 10**6)
few = settings(max_examples=25, deadline=None)


# --- associative recall ---


def follows_its_key(tokens: list[int]) -> int | None:
    said = dict(zip(tokens[:-3:2], tokens[1:-3:2], strict=False))
    return said.get(tokens[-1])


@few
@given(st.integers(1, 9), st.integers(2, 6), st.data(), SEEDS)
def test_associative_recall_asks_for_the_value_of_one_key(keys: int, values: int, draw: Any, seed: int) -> None:
    pairs, test_pairs = (draw.draw(st.integers(1, keys)) for _ in range(2))
    task = AssociativeRecall(keys=keys, values=values, pairs=pairs, test_pairs=test_pairs, samples=5)
    data = task.load(".")
    assert data.interface == Interface(
        context=2 * max(pairs, test_pairs) + 3, vocabulary=keys + values + 1, trained=2 * pairs + 3
    )
    for batch, many in ((data.batch(6, generator(seed)), pairs), (data.evaluation(5)[0], test_pairs)):
        answered(batch, follows_its_key)
        for tokens, targets in rows(batch):
            assert len(tokens) == 2 * many + 3 and asked(targets) == [2 * many + 2]
            assert len(set(tokens[: 2 * many : 2])) == many and max(tokens[: 2 * many : 2]) < keys
            assert all(keys <= value < keys + values for value in tokens[1 : 2 * many : 2])
            assert tokens[-3:-1] == [keys + values] * 2 and tokens[-1] in tokens[: 2 * many : 2]


def test_associative_recall_asks_for_any_of_its_pairs_and_of_all_values() -> None:
    (tokens,), targets = AssociativeRecall(keys=5, values=4, pairs=3).load(".").batch(12_000, generator(0))
    place = (tokens[:, :6:2] == tokens[:, -1:]).float().argmax(1)
    assert (place.bincount() / 12_000).tolist() == pytest.approx([1 / 3] * 3, abs=0.02)
    assert ((targets[:, -1] - 5).bincount() / 12_000).tolist() == pytest.approx([1 / 4] * 4, abs=0.02)


def test_associative_recall_has_its_floor_and_its_ceiling() -> None:
    at_its_bounds(AssociativeRecall(samples=600, test_pairs=8), Solves(follows_its_key, 37))


def test_who_takes_a_value_of_the_sequence_is_right_as_often_as_is_said() -> None:
    for task in (AssociativeRecall(values=5, samples=8000), Mqar(samples=4000)):
        data = task.load(".")
        (tokens,), targets = data.evaluation(8000)[0]
        right = torch.cat([targets[row, targets[row] >= 0] == tokens[row, 3] for row in range(len(tokens))])
        assert right.double().mean() == pytest.approx(data.facts["in_context_accuracy"], abs=0.02)


def test_keys_are_enough_for_the_pairs() -> None:
    with pytest.raises(ValidationError, match="5 pairs have different keys, of `keys: 4`"):
        AssociativeRecall(keys=4, test_pairs=5, pairs=2)


# --- multi-query associative recall ---


def was_paired(pairs: int) -> Answer:
    def answer(tokens: list[int]) -> int | None:
        for place in range(0, 2 * pairs, 2):
            if len(tokens) > 2 * pairs and tokens[place] == tokens[-1]:
                return tokens[place + 1]
        return None

    return answer


@st.composite
def mqar(draw: Any) -> Mqar:
    vocabulary = draw(st.integers(4, 20))
    pairs, test_pairs = (draw(st.integers(1, min(4, vocabulary // 2 - 1))) for _ in range(2))
    context, test_context = (draw(st.integers(4 * each, 4 * each + 9)) for each in (pairs, test_pairs))
    return Mqar(
        vocabulary=vocabulary,
        pairs=pairs,
        context=context,
        test_pairs=test_pairs,
        test_context=test_context,
        power=draw(st.sampled_from([0.01, 1.0, 2.0])),
        filler=draw(st.sampled_from(["random", "zero"])),
        samples=5,
    )


@few
@given(mqar(), SEEDS)
def test_mqar_asks_for_each_key_once(task: Mqar, seed: int) -> None:
    data = task.load(".")
    tested = (task.test_pairs or task.pairs, task.test_context or task.context)
    assert data.interface == Interface(
        context=max(task.context, tested[1]), vocabulary=task.vocabulary, trained=task.context
    )
    half = task.vocabulary // 2
    for batch, (pairs, context) in (
        (data.batch(6, generator(seed)), (task.pairs, task.context)),
        (data.evaluation(5)[0], tested),
    ):
        answered(batch, was_paired(pairs))
        for tokens, targets in rows(batch):
            assert len(tokens) == context
            keys, values, places = tokens[: 2 * pairs : 2], tokens[1 : 2 * pairs : 2], asked(targets)
            assert len(set(keys)) == len(set(values)) == pairs
            assert all(1 <= key < half for key in keys)
            assert all(half <= value < task.vocabulary for value in values)
            assert sorted(tokens[place] for place in places) == sorted(keys)
            assert all(place >= 2 * pairs and place % 2 == 0 for place in places)
            rest = [token for place, token in enumerate(tokens) if place >= 2 * pairs and place not in places]
            assert all(0 <= token < (task.vocabulary if task.filler == "random" else 1) for token in rest)


@pytest.mark.parametrize("power", [0.01, 1.0])
def test_the_first_query_of_mqar_is_as_far_as_the_power_law_says(power: float) -> None:
    (_,), targets = Mqar(pairs=1, context=14, power=power, vocabulary=8).load(".").batch(20_000, generator(0))
    places = ((targets >= 0).int().argmax(1) - 2) // 2
    weights = torch.arange(1, 7).double() ** (power - 1)
    assert (places.bincount(minlength=6) / 20_000).tolist() == pytest.approx(
        (weights / weights.sum()).tolist(), abs=0.012
    )


def test_the_places_of_mqar_are_drawn_one_after_the_other_without_replacement() -> None:
    (tokens,), targets = Mqar(pairs=2, context=10, power=0.01, vocabulary=8).load(".").batch(20_000, generator(0))
    first_asked = tokens.where(targets >= 0, -1) == tokens[:, :1]
    second_asked = tokens.where(targets >= 0, -1) == tokens[:, 2:3]
    counts = torch.zeros(3, 3)
    places = [(each[:, 4:].int().argmax(1) // 2) for each in (first_asked, second_asked)]
    counts.index_put_((places[0], places[1]), torch.ones(20_000), accumulate=True)
    weights = [place**-0.99 for place in (1, 2, 3)]
    for first in range(3):
        for second in range(3):
            rest = sum(weights) - weights[first]
            expected = 0 if first == second else weights[first] / sum(weights) * weights[second] / rest
            assert float(counts[first, second]) / 20_000 == pytest.approx(expected, abs=0.012)


def test_mqar_has_its_floor_and_its_ceiling() -> None:
    at_its_bounds(Mqar(samples=300), Solves(was_paired(4), 64))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": 9}, "9 pairs and their queries need 36 tokens, and the context is 32"),
        ({"test_context": 15}, "4 pairs and their queries need 16 tokens, and the context is 15"),
        ({"vocabulary": 9}, "4 pairs have different keys, of 3 in the vocabulary"),
    ],
)
def test_what_mqar_needs_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Mqar(**options)


# --- induction ---


def after_the_mark(mark: int) -> Answer:
    def answer(tokens: list[int]) -> int | None:
        seen = tokens.index(mark) if mark in tokens else len(tokens)
        return tokens[seen + 1] if seen < len(tokens) - 1 and tokens[-1] == mark else None

    return answer


@few
@given(st.integers(3, 9), st.integers(3, 20), st.integers(3, 40), SEEDS)
def test_induction_asks_at_the_end_for_what_followed_the_mark(
    vocabulary: int, length: int, test_length: int, seed: int
) -> None:
    data = Induction(vocabulary=vocabulary, length=length, test_length=test_length, samples=5).load(".")
    assert data.interface == Interface(context=max(length, test_length), vocabulary=vocabulary, trained=length)
    for batch, tokens_long in ((data.batch(6, generator(seed)), length), (data.evaluation(5)[0], test_length)):
        answered(batch, after_the_mark(vocabulary - 1))
        for tokens, targets in rows(batch):
            assert len(tokens) == tokens_long and asked(targets) == [tokens_long - 1]
            assert tokens.count(vocabulary - 1) == 2 and tokens[-1] == vocabulary - 1
            assert targets[-1] < vocabulary - 1


def test_the_mark_of_induction_is_at_any_place() -> None:
    (tokens,), _ = Induction(vocabulary=4, length=6).load(".").batch(12_000, generator(0))
    places = (tokens == 3).int().argmax(1).bincount() / 12_000
    assert places.tolist() == pytest.approx([0.25] * 4, abs=0.02)


def test_induction_has_its_floor_and_its_ceiling() -> None:
    at_its_bounds(Induction(samples=600, test_length=50), Solves(after_the_mark(19), 20))


def test_an_induction_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValidationError, match="`test_length` is 2, and a mark, its answer and the mark again are 3"):
        Induction(test_length=2)


# --- selective copying ---


def without_blanks(vocabulary: int) -> Answer:
    def answer(tokens: list[int]) -> int | None:
        mark = tokens.index(vocabulary - 1) if vocabulary - 1 in tokens else len(tokens)
        symbols = [token for token in tokens[:mark] if token != vocabulary - 2]
        written = len(tokens) - mark - 2
        return symbols[written] if 0 <= written < len(symbols) else None

    return answer


@few
@given(st.integers(4, 9), st.integers(1, 5), st.integers(0, 12), st.integers(0, 20), SEEDS)
def test_selective_copying_asks_for_the_symbols_in_order(
    vocabulary: int, tokens: int, blanks: int, test_blanks: int, seed: int
) -> None:
    length, test_length = 2 * tokens + 1 + blanks, 2 * tokens + 1 + test_blanks
    task = SelectiveCopying(vocabulary=vocabulary, length=length, tokens=tokens, test_length=test_length, samples=5)
    data = task.load(".")
    assert data.interface == Interface(context=max(length, test_length), vocabulary=vocabulary, trained=length)
    for batch, many in ((data.batch(6, generator(seed)), length), (data.evaluation(5)[0], test_length)):
        answered(batch, without_blanks(vocabulary))
        for read, targets in rows(batch):
            assert len(read) == many and asked(targets) == list(range(many - tokens, many))
            assert read[many - tokens - 1 :] == [vocabulary - 1] + [vocabulary - 2] * tokens
            assert sum(token < vocabulary - 2 for token in read) == tokens
            assert read.count(vocabulary - 1) == 1


def test_symbols_to_copy_are_at_any_place() -> None:
    (tokens,), _ = SelectiveCopying(vocabulary=6, length=10, tokens=2).load(".").batch(12_000, generator(0))
    assert (tokens[:, :7] < 4).float().mean(0).tolist() == pytest.approx([2 / 7] * 7, abs=0.02)


def test_selective_copying_has_its_floor_and_its_ceiling() -> None:
    at_its_bounds(SelectiveCopying(length=40, tokens=6, samples=150), Solves(without_blanks(16), 16))
    assert SelectiveCopying().length == 4096


def test_selective_copying_has_room_for_its_copies() -> None:
    with pytest.raises(ValidationError, match="16 symbols, a mark and their copies need 33 tokens of the 32"):
        SelectiveCopying(test_length=32)
