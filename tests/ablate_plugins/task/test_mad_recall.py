"""MAD's three tasks of recall: pairs are read anew, and every repeated key is asked for."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ablate.model.keys import generator
from ablate.slots import Batch, Interface
from ablate_plugins.task.mad_recall import MadFuzzyRecall, MadNoisyRecall, MadRecall
from tests.ablate_plugins.task.judging import Answer, Solves, answered, asked, at_its_bounds, rows

SEEDS = st.integers(0, 10**6)
few = settings(max_examples=20, deadline=None)


def said_before(meaning: int) -> Answer:
    """Pairs of single tokens, some of which are noise."""

    def answer(tokens: list[int]) -> int | None:
        if len(tokens) % 2 == 0 or tokens[-1] >= meaning:
            return None
        return dict(zip(tokens[:-1:2], tokens[1::2], strict=True)).get(tokens[-1])

    return answer


def check_pairs(batch: Batch, meaning: int, vocabulary: int) -> None:
    """What is read are pairs, and what is asked for are the values of the keys that were there before."""
    answered(batch, said_before(meaning))
    for tokens, targets in rows(batch):
        keys = tokens[::2]
        again = [2 * place for place, key in enumerate(keys) if key < meaning and key in keys[:place]]
        assert asked(targets) == again and again[-1] == len(tokens) - 1
        for key, value in zip(tokens[:-1:2], tokens[1::2], strict=True):
            if key < meaning:
                assert key < meaning // 2 <= value < meaning
            else:
                assert meaning <= min(key, value) and max(key, value) < vocabulary


def check_every_token(batch: Batch, ignored: int = 0) -> None:
    for tokens, targets in rows(batch):
        skipped = len(targets) - len(asked(targets))
        assert skipped <= ignored
        assert tokens[skipped + 1 :] == targets[skipped:-1]


@few
@given(st.integers(4, 12), st.integers(2, 15), st.booleans(), SEEDS)
def test_recall_asks_for_the_keys_that_were_there_before(vocabulary: int, pairs: int, every: bool, seed: int) -> None:
    task = MadRecall(vocabulary=vocabulary, length=2 * pairs, every_token=every, examples=30, samples=9)
    data = task.load(".")
    assert data.interface == Interface(context=2 * pairs - 1, vocabulary=vocabulary)
    check_pairs(data.evaluation(9)[0], vocabulary, vocabulary)
    trained = data.batch(8, generator(seed))
    if every:
        check_every_token(trained)
    else:
        check_pairs(trained, vocabulary, vocabulary)


@few
@given(st.integers(4, 12), st.integers(1, 6), st.floats(0, 0.9), st.integers(2, 15), SEEDS)
def test_noisy_recall_goes_past_what_means_nothing(
    meaning: int, noise_vocabulary: int, noise: float, pairs: int, seed: int
) -> None:
    task = MadNoisyRecall(
        vocabulary=meaning + noise_vocabulary,
        noise_vocabulary=noise_vocabulary,
        noise=noise,
        length=2 * pairs,
        every_token=False,
        examples=30,
        samples=9,
    )
    data = task.load(".")
    for batch in (data.evaluation(9)[0], data.batch(8, generator(seed))):
        check_pairs(batch, meaning, meaning + noise_vocabulary)


def test_as_many_pairs_mean_nothing_as_is_asked_for() -> None:
    task = MadNoisyRecall(noise=0.4, length=60, samples=400, examples=1)
    (batch,) = task.load(".").evaluation(400)
    keys = batch.inputs[0][:, :-1:2]
    # One of the 29 pairs before the last is drawn to mean something.
    assert (keys >= 16).double().mean() == pytest.approx(0.4 * 28 / 29, abs=0.02)
    assert (keys[keys < 16].bincount() / (keys < 16).sum()).tolist() == pytest.approx([1 / 8] * 8, abs=0.01)


def test_the_last_key_is_any_of_those_that_were_there() -> None:
    task = MadRecall(vocabulary=8, length=8, samples=6000, examples=1)
    ((tokens,), _) = task.load(".").evaluation(6000)[0]
    # Two keys, of which one was there twice: that makes it no more likely.
    first, second, third, last = tokens[:, ::2].unbind(1)
    twice = (first == second) & (second != third)
    assert (last[twice] == third[twice]).double().mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("task", "meaning"),
    [
        (MadRecall(length=40, samples=80, examples=1), 16),
        (MadNoisyRecall(length=40, samples=80, examples=1), 16),
    ],
    ids=["plain", "noisy"],
)
def test_recall_has_its_floor_and_its_ceiling(task: Any, meaning: int) -> None:
    at_its_bounds(task, Solves(said_before(meaning), task.vocabulary))


def test_noise_leaves_keys_and_values() -> None:
    with pytest.raises(ValidationError, match="two keys and two values are 4 tokens, and `noise_vocabulary` leaves 3"):
        MadNoisyRecall(vocabulary=19)


# --- fuzzy recall ---


def runs(tokens: list[int], vocabulary: int) -> list[tuple[int, ...]]:
    """Keys and values in turn, without the padding before them."""
    keys = (vocabulary - 1) // 2
    real = tokens[next(place for place, token in enumerate(tokens) if token != vocabulary - 1) :]
    assert vocabulary - 1 not in real
    return [tuple(group) for _, group in groupby(real, lambda token: token < keys)]


def fuzzily_said_before(vocabulary: int) -> Answer:
    def answer(tokens: list[int]) -> int | None:
        if set(tokens) == {vocabulary - 1}:
            return None
        found = runs(tokens, vocabulary)
        if len(found) % 2:
            *before, key = found
            written: tuple[int, ...] = ()
        else:
            *before, key, written = found
        value = dict(zip(before[::2], before[1::2], strict=True)).get(key)
        return value[len(written)] if value and len(written) < len(value) else None

    return answer


@st.composite
def fuzzy(draw: Any) -> MadFuzzyRecall:
    vocabulary = draw(st.integers(7, 14))
    key_size, value_size = (draw(st.integers(1, 3)) for _ in range(2))
    return MadFuzzyRecall(
        vocabulary=vocabulary,
        key_size=key_size,
        value_size=value_size,
        length=2 * (key_size + value_size) - 1 + draw(st.integers(0, 25)),
        every_token=draw(st.booleans()),
        examples=20,
        samples=9,
    )


@few
@given(fuzzy(), SEEDS)
def test_fuzzy_recall_asks_for_the_whole_values_of_keys_that_were_there_before(task: MadFuzzyRecall, seed: int) -> None:
    data = task.load(".")
    assert data.interface == Interface(context=task.length, vocabulary=task.vocabulary)
    trained, (evaluated,) = data.batch(8, generator(seed)), data.evaluation(9)
    if task.every_token:
        check_every_token(trained, task.length)
    else:
        check_fuzzy(trained, task, least=1)
    check_fuzzy(evaluated, task, least=task.key_size)


def check_fuzzy(batch: Batch, task: MadFuzzyRecall, least: int) -> None:
    answered(batch, fuzzily_said_before(task.vocabulary))
    for tokens, targets in rows(batch):
        # The last token of the sequence is not read, but asked for: the end of the last value.
        found = runs([*tokens, targets[-1]], task.vocabulary)
        keys, values = found[::2], found[1::2]
        assert len(keys) == len(values) >= 2
        assert all(least <= len(key) <= task.key_size for key in keys)
        assert all(1 <= len(value) <= task.value_size for value in values)
        assert all(len(set(run)) == len(run) for run in found)
        ends = len(tokens) + 1 - sum(map(len, found))
        places: list[int] = []
        for index, (key, value) in enumerate(zip(keys, values, strict=True)):
            start = ends + len(key)
            ends = start + len(value)
            if key in keys[:index]:
                places += range(start - 1, ends - 1)
        assert keys[-1] in keys[:-1]
        assert asked(targets) == places


def test_no_more_is_padded_than_a_pair_needs() -> None:
    task = MadFuzzyRecall(length=60, samples=300, examples=1)
    (tokens,), _ = task.load(".").evaluation(300)[0]
    padding = (tokens == 15).sum(1)
    # Room is kept for a last pair of 6; another one of up to 6 did not fit before it.
    assert int(padding.max()) <= 5 + 2


def test_sizes_of_keys_and_values_are_drawn_evenly_in_training() -> None:
    task = MadFuzzyRecall(length=80, every_token=True, examples=600, samples=1)
    found = [runs([*tokens, targets[-1]], 16)[:8] for tokens, targets in rows(task.load(".").batch(600, generator(0)))]
    for first in (0, 1):
        sizes = torch.tensor([len(run) for each in found for run in each[first::2]]).bincount()[1:]
        assert (sizes / sizes.sum()).tolist() == pytest.approx([1 / 3] * 3, abs=0.05)


def test_fuzzy_recall_has_its_floor_and_its_ceiling() -> None:
    task = MadFuzzyRecall(vocabulary=7, key_size=2, length=50, samples=80, examples=1)
    at_its_bounds(task, Solves(fuzzily_said_before(7), 7))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary": 6}, "`key_size` is 3, and a key has different ones of 2 tokens"),
        ({"value_size": 9}, "`value_size` is 9, and a value has different ones of 8 tokens"),
        ({"length": 10}, "two pairs may have 12 tokens, and 11 are read and asked for"),
    ],
)
def test_what_fuzzy_recall_needs_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        MadFuzzyRecall(**options)
