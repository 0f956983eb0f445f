"""The task of modular arithmetic: right by trying every number, and with two halves that never meet."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ablate.model.keys import generator
from ablate.slots import Interface
from ablate_plugins.task.arithmetic import ModularArithmetic
from tests.ablate_plugins.task.judging import Answer, Solves, answered, asked, at_its_bounds, rows

OPERATIONS: list[Literal["+", "-", "*", "/"]] = ["+", "-", "*", "/"]


def computed(operation: str, modulus: int) -> Answer:
    def answer(tokens: list[int]) -> int | None:
        if len(tokens) < 4:
            return None
        a, b = tokens[0], tokens[2]
        if operation == "/":
            return next(c for c in range(modulus) if c * b % modulus == a)
        if operation == "-":
            return next(c for c in range(modulus) if (c + b) % modulus == a)
        return (a + b if operation == "+" else a * b) % modulus

    return answer


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(OPERATIONS), st.sampled_from([5, 7, 11]), st.floats(0.1, 0.9), st.integers(0, 10**6))
def test_every_pair_is_right_and_is_on_one_side(operation: Any, modulus: int, share: float, seed: int) -> None:
    data = ModularArithmetic(operation=operation, modulus=modulus, train_share=share).load(".")
    assert data.interface == Interface(context=4, vocabulary=modulus + 2)
    trained = data.batch(1500, generator(seed))
    (evaluated,) = data.evaluation(1500)
    sides = []
    for batch in (trained, evaluated):
        answered(batch, computed(operation, modulus))
        for tokens, targets in rows(batch):
            assert tokens[1::2] == [modulus, modulus + 1] and asked(targets) == [3]
        sides.append({(tokens[0], tokens[2]) for tokens, _ in rows(batch)})
    assert not sides[0] & sides[1]
    least = 1 if operation == "/" else 0
    every = {(a, b) for a in range(modulus) for b in range(least, modulus)}
    assert len(evaluated.targets) == len(sides[1]) == len(every) - round(share * len(every))
    assert sides[0] | sides[1] == every  # 1,500 draws of at most 109 pairs leave none out
    assert data.facts["pairs"] == len(sides[0])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_arithmetic_has_its_floor_and_its_ceiling(operation: Any) -> None:
    at_its_bounds(ModularArithmetic(operation=operation, modulus=23), Solves(computed(operation, 23), 25))


def test_half_of_the_papers_pairs_are_for_training() -> None:
    for operation, pairs in (("+", 97 * 97), ("/", 97 * 96)):
        data = ModularArithmetic.model_validate({"operation": operation}).load(".")
        assert data.facts["pairs"] == round(pairs / 2)
        assert sum(len(batch.targets) for batch in data.evaluation(512)) == pairs - round(pairs / 2)
        assert data.facts["chance_accuracy"] == 1 / 97


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operation": "/", "modulus": 91}, "not every number has an inverse modulo 91, which is no prime"),
        ({"modulus": 2, "train_share": 0.01}, "`train_share: 0.01` leaves none of 4 pairs on one side"),
        ({"modulus": 5, "samples": 14}, "`samples` is 14, and 13 pairs are not for training"),
    ],
)
def test_what_cannot_be_computed_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ModularArithmetic(**options)
