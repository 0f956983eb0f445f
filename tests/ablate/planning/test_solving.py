"""The matching solver against brute force."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.planning.solving import Insensitive, Solution, solve
from ablate.slots import ImpossibleError

Number = int | float
STEPS = st.builds(
    lambda offset, slope, step, square: lambda value: offset + slope * (value // step) + square * value * value,
    offset=st.integers(0, 100_000),
    slope=st.integers(1, 1000),
    step=st.integers(1, 9),
    square=st.sampled_from([0, 0, 1, 12]),
)
"""Counts that rise by steps: affine or quadratic."""


class Counted:
    """A count that remembers how often it was asked."""

    def __init__(self, count: Callable[[Number], int]) -> None:
        self.count = count
        self.asked: list[Number] = []

    def __call__(self, value: Number) -> int:
        self.asked.append(value)
        return self.count(value)


def only(allowed: Callable[[Number], bool], count: Callable[[Number], int]) -> Callable[[Number], int]:
    def counted(value: Number) -> int:
        if not allowed(value):
            raise ImpossibleError(f"{value} is not allowed")
        return count(value)

    return counted


@given(count=STEPS, start=st.integers(1, 2000), aim=st.integers(1, 2000), beside=st.integers(0, 1000))
def test_whole_numbers_are_as_good_as_brute_force(
    count: Callable[[int], int], start: int, aim: int, beside: int
) -> None:
    target = max(1, count(aim) + beside)
    asked = Counted(count)  # type: ignore[arg-type]
    found = solve(asked, start, target, within=0, multiple_of=None)
    best = min(abs(count(value) - target) for value in range(1, 12_000))
    assert abs(found.count - target) == best
    assert found == Solution(found.value, count(int(found.value)), best / target)
    assert isinstance(found.value, int)
    assert len(asked.asked) <= 30


@given(start=st.integers(1, 500), target=st.integers(1, 100_000), top=st.integers(1000, 100_000))
def test_a_count_may_fall(start: int, target: int, top: int) -> None:
    found = solve(lambda value: int(top // value), start, target, within=0, multiple_of=None)
    assert abs(found.count - target) == min(abs(top // value - target) for value in range(1, 100_001))


@given(
    heads=st.sampled_from([2, 3, 4, 8, 12, 16, 64]),
    start=st.integers(1, 30),
    aim=st.integers(1, 3000),
    count=STEPS,
)
def test_values_that_are_refused_are_passed_over(
    heads: int, start: int, aim: int, count: Callable[[Number], int]
) -> None:
    target = max(1, count(aim))
    asked = Counted(only(lambda value: value % heads == 0, count))
    found = solve(asked, heads * start, target, within=0, multiple_of=None)
    assert found.value % heads == 0
    assert abs(found.count - target) == min(abs(count(value) - target) for value in range(heads, 8000, heads))
    assert len(asked.asked) <= 60


@pytest.mark.parametrize(("start", "target", "value"), [(100, 8000, 400), (100, 3996, 400), (500, 3000, 300)])
def test_a_bound_is_met_and_not_passed(start: int, target: int, value: int) -> None:
    count = only(lambda value: value <= 400, lambda value: int(10 * value))
    assert solve(count, start, target, within=0, multiple_of=None).value == value


def test_a_start_that_is_refused_is_left_for_what_is_allowed() -> None:
    count = only(lambda value: value % 8 == 0, int)
    assert solve(count, 100, 161, within=0, multiple_of=None).value == 160


def test_a_value_error_refuses_as_well() -> None:
    def count(value: Number) -> int:
        if value > 4:
            raise ValueError("too large")
        return int(value)

    assert solve(count, 2, 9, within=0, multiple_of=None) == Solution(4, 4, 5 / 9)


def test_where_nothing_is_allowed_the_starts_reason_is_raised() -> None:
    with pytest.raises(ImpossibleError, match=r"^5 is not allowed$"):
        solve(only(lambda _: False, lambda _: 1), 5, 10, within=0.01, multiple_of=None)


def test_any_other_error_is_the_callers() -> None:
    def count(value: Number) -> int:
        if value != 4:
            raise KeyError(value)
        return 1

    with pytest.raises(KeyError):
        solve(count, 4, 10, within=0.01, multiple_of=None)


@pytest.mark.parametrize("start", [4, 4.25, 7])
def test_a_start_that_is_near_enough_stays_though_it_is_no_multiple(start: Number) -> None:
    asked = Counted(lambda value: int(100 * value))
    found = solve(asked, start, int(101 * start), within=0.01, multiple_of=64)
    assert (found.value, asked.asked) == (start, [start])


@given(count=STEPS, start=st.integers(1, 2000), aim=st.integers(1, 2000), multiple=st.integers(1, 64))
def test_multiples_are_as_good_as_brute_force(count: Callable[[int], int], start: int, aim: int, multiple: int) -> None:
    target = max(1, count(aim))
    found = solve(count, start, target, within=0, multiple_of=multiple)  # type: ignore[arg-type]
    allowed = {start, *range(multiple, 5000, multiple)}
    assert found.value in allowed
    assert abs(found.count - target) == min(
        abs(count(value) - target) for value in (allowed if found.value == start else allowed - {start})
    )


@given(start=st.sampled_from([1.0, 2.5, 4.0]), aim=st.integers(1, 80), multiple=st.sampled_from([0.1, 0.25, 0.5, 1]))
def test_multiples_of_a_decimal_number_are_plain_numbers(start: float, aim: int, multiple: float) -> None:
    found = solve(lambda value: round(1000 * value), start, 100 * aim, within=0, multiple_of=multiple)
    assert isinstance(found.value, float)
    assert len(repr(found.value)) <= 5
    best = min(abs(round(1000 * step * multiple) - 100 * aim) for step in range(1, 1000))
    assert abs(found.count - 100 * aim) == (0 if 1000 * start == 100 * aim else best)


def widths(width: int, per_unit: int, others: int) -> Callable[[Number], int]:
    """Parameters of feed-forwards of this stream width, against the ratio."""
    return lambda ratio: others + per_unit * max(1, round(ratio * width))


@given(
    width=st.sampled_from([16, 64, 100, 512, 4096]),
    start=st.sampled_from([1.0, 2.0, 4.0, 8 / 3]),
    inner=st.integers(1, 20_000),
    beside=st.integers(-300, 300),
    others=st.integers(0, 100_000),
)
def test_a_ratio_gives_the_best_inner_width(width: int, start: float, inner: int, beside: int, others: int) -> None:
    inner = min(inner, 16 * width)
    count = widths(width, 700, others)
    target = max(1, others + 700 * inner + beside)
    asked = Counted(count)
    found = solve(asked, start, target, within=0, multiple_of=None)
    nearest = min((max(1, inner + step) for step in (-1, 0, 1)), key=lambda each: abs(others + 700 * each - target))
    assert abs(found.count - target) == abs(others + 700 * nearest - target)
    assert len(asked.asked) <= 40


@given(width=st.sampled_from([16, 64, 100, 512]), inner=st.integers(1, 5000))
def test_a_decimal_number_is_the_shortest_of_its_count(width: int, inner: int) -> None:
    inner = min(inner, 16 * width)
    count = widths(width, 700, 1000)
    value = solve(count, 4.0, 1000 + 700 * inner, within=0, multiple_of=None).value
    places = len(repr(value).partition(".")[2].rstrip("0"))
    shorter = 10 ** (places - 1)
    assert round(value * width) == inner
    if places and value != 4.0:
        near = int(value * shorter)
        assert all(round(each / shorter * width) != inner for each in range(max(1, near - 1), near + 3))


def test_swiglu_is_matched_to_gelu_in_few_calls() -> None:
    """Three matrices in place of two at a width of 64: two thirds of the ratio, 171 units of 64, 2.67."""
    swiglu = Counted(lambda ratio: 3 * 64 * round(ratio * 64))
    assert solve(swiglu, 4.0, 2 * 64 * 256, within=0.01, multiple_of=None).value == 2.67
    assert len(swiglu.asked) <= 25


@pytest.mark.parametrize("start", [1, 4, 512, 4.0, 0.5])
def test_a_value_that_changes_nothing_is_told(start: Number) -> None:
    asked = Counted(lambda _: 5000)
    with pytest.raises(Insensitive, match=r"^no value changes the count of 5,000$"):
        solve(asked, start, 7000, within=0.01, multiple_of=None)
    assert len(asked.asked) <= 15


def test_what_cannot_be_reached_is_told_by_its_error() -> None:
    found = solve(lambda value: min(int(value), 50), 40, 100, within=0.01, multiple_of=None)
    assert (found.count, found.error) == (50, 0.5)


def test_calls_end() -> None:
    asked = Counted(only(lambda value: value in (1_000_003, 2_000_003), int))
    found = solve(asked, 1_000_003, 1_600_000, within=0, multiple_of=None)
    assert found.value in (1_000_003, 2_000_003)
    assert len(asked.asked) <= 200
