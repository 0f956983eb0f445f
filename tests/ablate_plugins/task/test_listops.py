"""The task of nested lists: parsed and evaluated anew, and never the same expression twice."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor, nn

from ablate.errors import InputError
from ablate.model.keys import generator
from ablate.slots import Batch, Interface
from ablate_plugins.task.listops import ListOps, draw
from tests.ablate_plugins.task.judging import at_its_bounds

CLOSE = 15
OPERATIONS: dict[int, Callable[[list[int]], int]] = {
    11: min,
    12: max,
    13: lambda values: int(statistics.median(values)),
    14: lambda values: sum(values) % 10,
}
Tree = int | tuple[int, list[Any]]


def parsed(tokens: list[int]) -> Tree:
    """The one expression that the tokens are."""
    waiting = list(reversed(tokens))

    def read() -> Tree:
        token = waiting.pop()
        if token < 11:
            return token - 1
        arguments = []
        while waiting[-1] != CLOSE:
            arguments.append(read())
        waiting.pop()
        return token, arguments

    tree = read()
    assert not waiting
    return tree


def value(tree: Tree) -> int:
    if isinstance(tree, int):
        return tree
    return OPERATIONS[tree[0]]([value(each) for each in tree[1]])


def levels(tree: Tree) -> int:
    return 1 if isinstance(tree, int) else 1 + max(levels(each) for each in tree[1])


def widths(tree: Tree) -> list[int]:
    return [] if isinstance(tree, int) else [len(tree[1]), *(width for each in tree[1] for width in widths(each))]


class _Evaluates(nn.Module):
    def forward(self, tokens: Tensor, valid: Tensor) -> Tensor:
        read = [row[: sum(real)] for row, real in zip(tokens.tolist(), valid.tolist(), strict=True)]
        return 50.0 * nn.functional.one_hot(torch.tensor([value(parsed(row)) for row in read]), 10)


def expressions(batch: Batch) -> list[tuple[list[int], int]]:
    tokens, valid = batch.inputs
    assert tokens.dtype == batch.targets.dtype == torch.int64 and valid.dtype == torch.bool
    assert torch.equal(valid, tokens != 0) and bool((valid[:, 1:] <= valid[:, :-1]).all())
    return [
        (row[: sum(real)], label)
        for row, real, label in zip(tokens.tolist(), valid.tolist(), batch.targets.tolist(), strict=True)
    ]


@settings(max_examples=15, deadline=None)
@given(
    st.integers(3, 6),
    st.integers(3, 6),
    st.integers(10, 30),
    st.just(0) | st.integers(6, 20),
    st.integers(0, 10**6),
)
def test_values_are_right_and_expressions_as_large_as_they_may_be(
    depth: int, arguments: int, length: int, longer: int, seed: int
) -> None:
    task = ListOps(
        depth=depth, arguments=arguments, length=length, test_length=length + longer, shortest=5, examples=40, samples=5
    )
    data = task.load(".")
    assert data.interface == Interface(
        form="classification", context=length + longer, vocabulary=16, classes=10, trained=length
    )
    tested = (length + 1, length + longer) if longer else (5, length)
    for batch, (least, most) in ((data.batch(60, generator(seed)), (5, length)), (data.evaluation(5)[0], tested)):
        for tokens, label in expressions(batch):
            tree = parsed(tokens)
            assert label == value(tree)
            assert least <= len(tokens) <= most and not isinstance(tree, int)
            assert levels(tree) <= depth
            assert all(2 <= width <= arguments for width in widths(tree))


def test_no_expression_comes_twice_or_on_both_sides() -> None:
    data = ListOps(examples=500, samples=300, length=8).load(".")
    trained = {tuple(tokens) for tokens, _ in expressions(data.batch(10_000, generator(0)))}
    evaluated = [tuple(tokens) for batch in data.evaluation(64) for tokens, _ in expressions(batch)]
    assert len(trained) == 500
    assert len(set(evaluated)) == len(evaluated) == 300
    assert not trained & set(evaluated)


def test_operations_arguments_and_nesting_are_drawn_as_in_the_paper() -> None:
    tokens, values = draw(8192, 3, 4, 200, generator(0))
    assert len(tokens) == 8192  # with three levels and four arguments, none is longer
    trees = [parsed([token for token in row if token]) for row in tokens.tolist()]
    assert values.tolist() == [value(tree) for tree in trees]
    tops = [tree for tree in trees if not isinstance(tree, int)]
    for operation in OPERATIONS:
        assert sum(top[0] == operation for top in tops) / len(tops) == pytest.approx(0.25, abs=0.025)
    for width in (2, 3, 4):
        assert sum(len(top[1]) == width for top in tops) / len(tops) == pytest.approx(1 / 3, abs=0.025)
    below = [each for top in tops for each in top[1]]
    assert sum(not isinstance(each, int) for each in below) / len(below) == pytest.approx(0.25, abs=0.02)
    digits = torch.tensor([each for each in below if isinstance(each, int)]).bincount() / len(below)
    assert digits.tolist() == pytest.approx([0.075] * 10, abs=0.01)


def test_listops_have_their_floor_and_their_ceiling() -> None:
    task = ListOps(examples=200, samples=900)
    at_its_bounds(task, _Evaluates())
    data = task.load(".")
    labels = torch.cat([batch.targets for batch in data.evaluation(999)])
    commonest = data.batch(20_000, generator(0)).targets.bincount().argmax()
    assert data.facts["commonest_accuracy"] == pytest.approx(float((labels == commonest).double().mean()))
    lengths = torch.tensor([len(tokens) for tokens, _ in expressions(data.batch(20_000, generator(1)))])
    assert data.facts["mean_length"] == pytest.approx(float(lengths.double().mean()), rel=0.02)


def test_too_few_expressions_are_one_clear_error() -> None:
    # One operation on two digits: 400 expressions.
    with pytest.raises(InputError) as caught:
        ListOps(depth=2, arguments=2, examples=400, samples=1).load(".")
    assert str(caught.value) == (
        "error[S340]: only 399 of the 400 expressions for training were found, of 4 to 100 tokens\n"
        "  = help: ask for fewer, allow longer ones, or more `arguments` and `depth`"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 10, "shortest": 11}, "`shortest` is 11, and `length` is 10"),
        ({"test_length": 99}, "`test_length` is 99, and is no longer than `length: 100`"),
    ],
)
def test_lengths_are_in_order(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ListOps(**options)
