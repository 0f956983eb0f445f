"""Sequences by index, draws, splits and vocabularies: against plain loops."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.data.sequences import Draws, Sequences, Vocabulary, entropy, held_out, in_order_of_hash, some_of
from ablate.model.keys import generator

LISTS = st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=9), min_size=1, max_size=12)


@settings(deadline=None)
@given(LISTS, st.data(), st.none() | st.integers(1, 12), st.sampled_from([0, -100]))
def test_what_is_gathered_is_what_a_loop_gathers(
    lists: list[list[int]], data: st.DataObject, longest: int | None, fill: int
) -> None:
    rows = data.draw(st.lists(st.integers(0, len(lists) - 1), min_size=1, max_size=20))
    tokens, valid = Sequences.of(lists).gather(torch.tensor(rows), longest=longest, fill=fill)
    wide = longest or max(len(lists[row]) for row in rows)
    assert tokens.tolist() == [(lists[row] + [fill] * wide)[:wide] for row in rows]
    assert valid.tolist() == [([True] * len(lists[row]) + [False] * wide)[:wide] for row in rows]
    assert tokens.dtype == torch.long and valid.dtype == torch.bool
    assert Sequences.of(lists).tokens(torch.tensor(rows)).tolist() == [token for row in rows for token in lists[row]]


def test_gathering_changes_nothing() -> None:
    sequences = Sequences.of([[1, 2], [3], [4, 5, 6]])
    first = sequences.gather(torch.tensor([1, 2]), fill=7)
    sequences.gather(torch.tensor([0, 1]), longest=5, fill=-1)[0].fill_(9)
    again = sequences.gather(torch.tensor([1, 2]), fill=7)
    assert all(map(torch.equal, first, again))
    assert (len(sequences), sequences.longest, sequences.lengths.tolist()) == (3, 3, [2, 1, 3])


@pytest.mark.parametrize("buckets", [1, 3, 7, 100])
def test_every_sample_is_as_likely_in_any_number_of_buckets(buckets: int) -> None:
    lengths = torch.tensor([5, 1, 9, 9, 2, 7, 3, 4, 4, 8, 6])
    rows = torch.tensor([0, 1, 2, 3, 5, 6, 7, 9, 10])
    draws = Draws(rows, lengths, buckets)
    stream = generator("draws", buckets)
    counts = torch.zeros(11)
    for _ in range(6000):
        counts += draws(4, stream).bincount(minlength=11)
    assert counts[[4, 8]].tolist() == [0, 0]
    assert (counts[rows] / 24_000 - 1 / 9).abs().max() < 0.015


def test_a_bucket_has_samples_of_similar_length() -> None:
    lengths = torch.arange(100) % 50
    draws = Draws(torch.arange(100), lengths, 10)
    ranges = [lengths[draws(64, generator("b", step))] for step in range(50)]
    assert max(int(each.max() - each.min()) for each in ranges) == 4
    assert {int(each.min()) // 5 for each in ranges} == set(range(10))


@pytest.mark.parametrize("buckets", [1, 5])
def test_the_generator_alone_decides(buckets: int) -> None:
    draws = Draws(torch.arange(90), torch.arange(90), buckets)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    assert torch.equal(draws(8, generator(1)), draws(8, generator(1)))
    assert not torch.equal(draws(8, generator(1)), draws(8, generator(2)))
    assert torch.equal(before, torch.get_rng_state())


def test_a_vocabulary_is_in_order_and_has_what_is_often_enough() -> None:
    vocabulary = Vocabulary.of(["bab", "c", "éa"], first=2, unknown=1)
    assert vocabulary.symbols == ("a", "b", "c", "é") and len(vocabulary) == 6
    assert vocabulary == Vocabulary.of(["éa", "bab", "c"], first=2, unknown=1)
    assert vocabulary.encode(["cab", "dé"]).gather(torch.tensor([0, 1]))[0].tolist() == [[4, 2, 3], [1, 5, 0]]
    assert Vocabulary.of([["of", "to"], ["of"]], first=2, unknown=1, least=2).symbols == ("of",)
    with pytest.raises(KeyError):
        Vocabulary.of(["ab"], first=2, unknown=None).encode(["abc"])


@settings(deadline=None)
@given(st.lists(st.text(max_size=2), min_size=2, max_size=30), st.floats(0.01, 0.99))
def test_what_is_held_out_is_whole_groups_and_never_all(keys: list[str], share: float) -> None:
    different = len(set(keys))
    if different < 2:
        with pytest.raises(ValueError, match="two different keys are needed"):
            held_out(keys, share)
        return
    test = held_out(keys, share).tolist()
    sides = {key: {held for other, held in zip(keys, test, strict=True) if other == key} for key in keys}
    assert all(len(side) == 1 for side in sides.values())
    assert sum(True in side for side in sides.values()) == min(max(1, round(share * different)), different - 1)
    assert held_out(keys[::-1], share).tolist() == test[::-1]


def test_a_new_sample_moves_few_of_the_others() -> None:
    keys = [str(number) for number in range(1000)]
    before, after = held_out(keys, 0.1), held_out([*keys, "new"], 0.1)
    assert int((before != after[:-1]).sum()) <= 1
    assert in_order_of_hash(keys) == in_order_of_hash(reversed(keys)) != keys


def test_some_rows_are_chosen_by_what_they_are_called() -> None:
    names = [f"row {number % 7}" for number in range(40)]
    rows = torch.arange(5, 40)
    few = some_of(rows, names, 6)
    assert few.tolist() == sorted(set(few.tolist())) and set(few.tolist()) <= set(rows.tolist()) and len(few) == 6
    assert set(few.tolist()) < set(some_of(rows, names, 12).tolist())
    assert torch.equal(some_of(rows, names, 35), rows) and torch.equal(some_of(rows, names, 99), rows)
    assert max(Counter(names[row] for row in few.tolist()).values()) > 1  # by name, and so those of one name together


def test_entropy_is_that_of_the_shares() -> None:
    assert entropy(torch.tensor([4, 4, 7, 9])) == pytest.approx(1.5 * math.log(2))
    assert entropy(torch.tensor([3, 3])) == 0
