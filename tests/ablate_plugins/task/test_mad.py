"""MAD's selective copying, compression and memorization."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor, nn

from ablate.model.keys import generator
from ablate.slots import Interface
from ablate_plugins.task.mad import MadCompression, MadMemorization, MadSelectiveCopying
from ablate_plugins.task.mad_recall import MadFuzzyRecall, MadNoisyRecall, MadRecall
from tests.ablate_plugins.task.judging import Answer, Solves, answered, asked, at_its_bounds, rows
from tests.ablate_plugins.task.test_recall import without_blanks

SEEDS = st.integers(0, 10**6)
few = settings(max_examples=20, deadline=None)


@few
@given(st.integers(4, 9), st.integers(1, 5), st.integers(0, 12), SEEDS)
def test_selective_copying_asks_for_the_symbols_in_order(vocabulary: int, tokens: int, blanks: int, seed: int) -> None:
    length = 2 * tokens + 1 + blanks
    task = MadSelectiveCopying(vocabulary=vocabulary, length=length, tokens=tokens, examples=20, samples=9)
    data = task.load(".")
    assert data.interface == Interface(context=length, vocabulary=vocabulary)
    for batch in (data.batch(8, generator(seed)), data.evaluation(9)[0]):
        answered(batch, without_blanks(vocabulary))
        assert all(asked(targets) == list(range(length - tokens, length)) for _, targets in rows(batch))


def test_selective_copying_has_its_floor_and_its_ceiling() -> None:
    at_its_bounds(MadSelectiveCopying(length=40, tokens=6, samples=150, examples=1), Solves(without_blanks(16), 16))


def test_selective_copying_has_room_for_its_copies() -> None:
    with pytest.raises(ValidationError, match="16 symbols, a mark and their copies need 33 tokens of the 32"):
        MadSelectiveCopying(length=32)


def test_a_training_set_has_as_many_sequences_as_is_said_and_the_evaluation_set_is_another() -> None:
    for task in (
        MadSelectiveCopying(length=40, examples=300, samples=50),
        MadCompression(examples=300, samples=50),
        MadMemorization(examples=300, samples=50),
        MadRecall(examples=300, samples=50),
        MadNoisyRecall(examples=300, samples=50),
        MadFuzzyRecall(examples=300, samples=50),
    ):
        data = task.load(".")
        trained = {tuple(row) for row in data.batch(6000, generator(0)).inputs[0].tolist()}
        evaluated = {tuple(row) for row in data.evaluation(50)[0].inputs[0].tolist()}
        assert len(trained) == 300 == data.facts["examples"]
        assert not trained & evaluated and len(evaluated) == 50


def test_the_parameters_are_those_of_the_paper() -> None:
    for task, vocabulary, length, examples in (
        (MadRecall(), 16, 128, 12_800),
        (MadFuzzyRecall(), 16, 128, 12_800),
        (MadNoisyRecall(), 32, 128, 12_800),
        (MadSelectiveCopying(), 16, 256, 12_800),
        (MadCompression(), 16, 32, 12_800),
        (MadMemorization(), 256, 32, 256),
    ):
        assert (task.vocabulary, task.length, task.examples, task.samples) == (vocabulary, length, examples, 1_280)
    assert (MadNoisyRecall().noise_vocabulary, MadNoisyRecall().noise) == (16, 0.2)
    assert (MadFuzzyRecall().key_size, MadFuzzyRecall().value_size) == (3, 3)
    assert MadSelectiveCopying().tokens == 16


# --- compression ---


class _Remembers(nn.Module):
    """Writes what the source said, from the source alone."""

    def forward(self, source: Tensor, valid: Tensor, so_far: Tensor) -> Tensor:
        assert valid.all()
        return 50.0 * nn.functional.one_hot(source[:, :-1], int(source.max()) + 1)


@few
@given(st.integers(3, 9), st.integers(2, 9), SEEDS)
def test_compression_asks_for_the_whole_source(vocabulary: int, length: int, seed: int) -> None:
    data = MadCompression(vocabulary=vocabulary, length=length, examples=20, samples=9).load(".")
    assert data.interface == Interface(
        form="sequence_to_sequence",
        context=length - 1,
        vocabulary=vocabulary,
        source_context=length,
        source_vocabulary=vocabulary,
    )
    for batch in (data.batch(8, generator(seed)), data.evaluation(9)[0]):
        source, valid, so_far = batch.inputs
        assert valid.dtype == torch.bool and source.dtype == so_far.dtype == batch.targets.dtype == torch.int64
        for tokens, read, targets in zip(source.tolist(), so_far.tolist(), batch.targets.tolist(), strict=True):
            assert tokens == [*targets, vocabulary - 1] and max(targets) < vocabulary - 1
            assert read == [vocabulary - 1, *targets[:-1]]


def test_compression_has_its_floor_and_its_ceiling() -> None:
    at_its_bounds(MadCompression(length=20, samples=60, examples=1), _Remembers())


# --- memorization ---


def learned(task: MadMemorization) -> dict[int, int]:
    """What the training set says of each key."""
    known: dict[int, int] = {}
    for tokens, targets in rows(task.load(".").batch(20 * task.examples, generator(0))):
        for place in range(0, len(tokens), 2):
            assert known.setdefault(tokens[place], targets[place + 1]) == targets[place + 1]
    return known


@few
@given(st.integers(5, 30), st.integers(1, 9), SEEDS)
def test_memorization_asks_for_the_same_value_of_a_key_everywhere(vocabulary: int, pairs: int, seed: int) -> None:
    task = MadMemorization(vocabulary=vocabulary, length=2 * pairs, examples=200, samples=9)
    data, known, keys = task.load("."), learned(task), (vocabulary - 1) // 2
    assert data.interface == Interface(context=2 * pairs, vocabulary=vocabulary)
    assert len(set(known.values())) == len(known) <= keys
    for batch in (data.batch(8, generator(seed)), data.evaluation(9)[0]):
        for tokens, targets in rows(batch):
            assert tokens[1::2] == [vocabulary - 1] * pairs and max(tokens[::2]) < keys
            assert asked(targets) == list(range(1, 2 * pairs, 2))
            assert all(keys <= value < vocabulary - 1 for value in targets[1::2])
            for key, value in zip(tokens[::2], targets[1::2], strict=True):
                assert known.get(key, value) == value


def by_heart(known: dict[int, int]) -> Answer:
    return lambda tokens: known.get(tokens[-2]) if len(tokens) > 1 else None


def test_memorization_has_its_floor_and_its_ceiling() -> None:
    for task in (MadMemorization(vocabulary=32, samples=60), MadMemorization(vocabulary=64, examples=2, samples=60)):
        at_its_bounds(task, Solves(by_heart(learned(task)), 64))
    assert task.load(".").facts["ceiling_accuracy"] < 1  # two sequences do not show all keys
