"""Initialisers, optimizers and schedules."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from ablate.slots import Parameter
from ablate_plugins.initializer import LecunNormal, Normal
from ablate_plugins.optimizer import AdamW
from ablate_plugins.schedule import ConstantSchedule, CosineSchedule


@pytest.mark.parametrize(("role", "std"), [("q", 0.05), ("embed", 1.0), ("position", 1.0)])
def test_lecun_normal_keeps_the_variance_of_what_passes_through(role: str, std: float) -> None:
    tensor = torch.empty(300, 400)
    LecunNormal().fill(tensor, Parameter("x", role, 0, (300, 400)), torch.Generator().manual_seed(0))
    assert float(tensor.std()) == pytest.approx(std, rel=0.02)


def test_normal_has_its_standard_deviation() -> None:
    tensor = torch.empty(300, 400)
    Normal(std=0.3).fill(tensor, Parameter("x", "q", 0, (300, 400)), torch.Generator().manual_seed(0))
    assert float(tensor.std()) == pytest.approx(0.3, rel=0.02)


def test_adams_first_step_is_the_learning_rate_in_size() -> None:
    value = nn.Parameter(torch.zeros(4, 4))
    optimizer = AdamW(lr=0.01, weight_decay=0.5).build([(Parameter("x", "q", 0, (4, 4)), value)])
    value.grad = torch.linspace(-3, 5, 16).view(4, 4)
    optimizer.step()
    torch.testing.assert_close(value.detach(), -0.01 * value.grad.sign(), atol=1e-6, rtol=0)


def test_gains_and_biases_are_not_decayed() -> None:
    matrix, gain = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(2))
    named = [(Parameter("w", "q", 0, (2, 2)), matrix), (Parameter("g", "norm", 0, (2,)), gain)]
    optimizer = AdamW(lr=0.1, weight_decay=0.5).build(named)
    for value in (matrix, gain):
        value.grad = torch.zeros_like(value)
    optimizer.step()
    torch.testing.assert_close(matrix.detach(), torch.full((2, 2), 0.95))
    assert torch.equal(gain, torch.ones(2))


def test_cosine_warms_up_peaks_and_ends_at_its_floor() -> None:
    schedule = CosineSchedule(warmup=10, floor=0.1)
    factors = [schedule.factor(step, 101) for step in range(101)]
    assert factors[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert factors[10] == pytest.approx(1.0)
    assert factors[55] == pytest.approx(0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * 45 / 90)))
    assert factors[100] == pytest.approx(0.1)


def test_a_warm_up_with_a_decimal_point_is_a_share() -> None:
    assert CosineSchedule(warmup=0.1).factor(4, 100) == CosineSchedule(warmup=10).factor(4, 100) == pytest.approx(0.5)


def test_constant_is_constant_after_its_warm_up() -> None:
    assert [ConstantSchedule(warmup=2).factor(step, 9) for step in range(4)] == [0.5, 1.0, 1.0, 1.0]
    assert ConstantSchedule().factor(0, 1) == 1.0


def test_schedules_have_no_step_that_is_missing() -> None:
    for steps in (1, 2, 3):
        for step in range(steps):
            assert 0 < CosineSchedule().factor(step, steps) <= 1
