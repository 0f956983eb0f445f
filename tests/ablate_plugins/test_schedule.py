"""Schedules: their corners, and what lies between."""

from __future__ import annotations

import math

import pytest

from ablate.slots import Schedule
from ablate_plugins.schedule import ConstantSchedule, CosineSchedule, InverseSqrtSchedule, LinearSchedule, WsdSchedule

EVERY = [ConstantSchedule(), CosineSchedule(), LinearSchedule(), InverseSqrtSchedule(), WsdSchedule()]


def course(schedule: Schedule, steps: int) -> list[float]:
    return [schedule.factor(step, steps) for step in range(steps)]


def test_cosine_warms_up_peaks_and_ends_at_its_floor() -> None:
    factors = course(CosineSchedule(warmup=10, floor=0.1), 101)
    assert factors[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert factors[10] == pytest.approx(1.0)
    assert factors[55] == pytest.approx(0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * 45 / 90)))
    assert factors[100] == pytest.approx(0.1)


@pytest.mark.parametrize("schedule", [CosineSchedule, LinearSchedule, InverseSqrtSchedule, WsdSchedule])
def test_a_warm_up_with_a_decimal_point_is_a_share(schedule: type[CosineSchedule]) -> None:
    assert course(schedule(warmup=0.1), 100) == course(schedule(warmup=10), 100)
    assert schedule(warmup=0.1).factor(4, 100) == pytest.approx(0.5)


def test_constant_is_constant_after_its_warm_up() -> None:
    assert [ConstantSchedule(warmup=2).factor(step, 9) for step in range(4)] == [0.5, 1.0, 1.0, 1.0]
    assert ConstantSchedule().factor(0, 1) == 1.0


def test_linear_is_straight_from_its_peak_to_its_floor() -> None:
    expected = [0.5, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2]
    assert course(LinearSchedule(warmup=2, floor=0.2), 7) == pytest.approx(expected)
    assert course(LinearSchedule(warmup=0, floor=0.0), 3) == pytest.approx([1.0, 0.5, 0.0])


def test_inverse_sqrt_is_the_papers_up_to_its_peak() -> None:
    width, warmup = 512, 40
    factors = course(InverseSqrtSchedule(warmup=warmup), 400)
    paper = [width**-0.5 * min(step**-0.5, step * warmup**-1.5) for step in range(1, 401)]
    assert [factor * (width * warmup) ** -0.5 for factor in factors] == pytest.approx(paper)
    assert factors[warmup - 1] == max(factors) == 1.0
    assert factors[4 * warmup - 1] == pytest.approx(0.5)


def test_inverse_sqrt_without_a_warm_up_falls_at_once() -> None:
    assert course(InverseSqrtSchedule(warmup=0), 4) == pytest.approx([1.0, 0.5**0.5, 3**-0.5, 0.5])


def test_wsd_is_at_its_peak_until_the_last_steps() -> None:
    factors = course(WsdSchedule(warmup=2, decay=0.4, floor=0.2), 10)
    assert factors == pytest.approx([0.5, 1, 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2])
    assert course(WsdSchedule(warmup=0, decay=0.0), 3) == [1.0, 1.0, 1.0]


def test_wsd_whose_warm_up_meets_its_decay_stops_there() -> None:
    factors = course(WsdSchedule(warmup=4, decay=1.0, floor=0.0), 4)
    assert factors == pytest.approx([0.25, 0.5, 0.25, 0.0])


@pytest.mark.parametrize("schedule", EVERY, ids=lambda each: each.kind)
def test_no_schedule_has_a_step_that_is_missing_or_above_the_peak(schedule: Schedule) -> None:
    for steps in (1, 2, 3, 17):
        assert all(0 < factor <= 1 for factor in course(schedule, steps))
