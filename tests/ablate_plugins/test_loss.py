"""Losses: torch's own cross-entropy as a reference, and formulas by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from ablate.slots import IGNORED, Loss
from ablate_plugins.loss import CrossEntropy, Focal

EVERY = [
    CrossEntropy(),
    CrossEntropy(label_smoothing=0.1, z_loss=0.01),
    Focal(),
    Focal(gamma=0.5),
    Focal(gamma=0),
]  # fmt: skip


def named(loss: Loss) -> str:
    return str(loss.model_dump())


def sample(rows: int = 37, vocabulary: int = 11, ignored: bool = True) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rows)
    logits = 3 * torch.randn(rows, vocabulary, generator=generator)
    targets = torch.randint(vocabulary, (rows,), generator=generator)
    if ignored:
        targets[::3] = IGNORED
    return logits.requires_grad_(), targets


def gradient(value: Tensor, logits: Tensor) -> Tensor:
    return torch.autograd.grad(value, logits)[0]


@pytest.mark.parametrize("rows", [1, 2, 37, 4096])
@pytest.mark.parametrize("ignored", [False, True])
def test_by_default_it_is_torchs_cross_entropy_bit_for_bit(rows: int, ignored: bool) -> None:
    logits, targets = sample(rows, ignored=ignored and rows > 1)
    mine, torchs = CrossEntropy().measure(logits, targets), cross_entropy(logits, targets, ignore_index=IGNORED)
    assert torch.equal(mine, torchs)
    assert torch.equal(gradient(mine, logits), gradient(torchs, logits))


def test_smoothing_is_torchs() -> None:
    logits, targets = sample()
    mine = CrossEntropy(label_smoothing=0.2).measure(logits, targets)
    torch.testing.assert_close(mine, cross_entropy(logits, targets, label_smoothing=0.2))


def test_smoothing_spreads_a_share_evenly() -> None:
    logits, targets = sample(ignored=False)
    wanted = 0.7 * one_hot(targets, 11) + 0.3 / 11
    by_hand = -(wanted * logits.log_softmax(-1)).sum(-1).mean()
    torch.testing.assert_close(CrossEntropy(label_smoothing=0.3).measure(logits, targets), by_hand)


def test_z_loss_adds_the_mean_square_of_log_z() -> None:
    logits = torch.tensor([[0.0, 0.0], [math.log(3), math.log(5)], [50.0, 50.0]])
    targets = torch.tensor([0, 1, IGNORED])
    nats = (math.log(2) + math.log(8 / 5)) / 2
    squares = (math.log(2) ** 2 + math.log(8) ** 2) / 2
    assert float(CrossEntropy(z_loss=0.25).measure(logits, targets)) == pytest.approx(nats + 0.25 * squares)


def test_focal_weighs_by_what_is_missing() -> None:
    logits = torch.tensor([[math.log(3), 0.0], [0.0, 0.0], [9.0, 0.0]])
    targets = torch.tensor([0, 1, IGNORED])
    by_hand = (0.25**2 * math.log(4 / 3) + 0.5**2 * math.log(2)) / 2
    assert float(Focal().measure(logits, targets)) == pytest.approx(by_hand)


def test_focal_without_focus_is_cross_entropy() -> None:
    logits, targets = sample()
    torch.testing.assert_close(Focal(gamma=0).measure(logits, targets), CrossEntropy().measure(logits, targets))


def test_focal_has_the_slope_of_its_formula() -> None:
    logits, targets = sample(ignored=False)
    p = logits.softmax(-1).gather(1, targets[:, None])
    by_hand = ((1 - p) ** 1.5 * -p.log()).mean()
    mine = Focal(gamma=1.5).measure(logits, targets)
    torch.testing.assert_close(gradient(mine, logits), gradient(by_hand, logits))


@pytest.mark.parametrize("loss", EVERY, ids=named)
def test_a_certain_prediction_has_a_finite_gradient(loss: Loss) -> None:
    logits = torch.tensor([[200.0, 0.0], [0.0, 1.0]], requires_grad=True)
    assert torch.isfinite(gradient(loss.measure(logits, torch.tensor([0, 1])), logits)).all()


@pytest.mark.parametrize("loss", EVERY, ids=named)
def test_an_ignored_target_takes_no_part(loss: Loss) -> None:
    logits, targets = sample()
    kept = targets != IGNORED
    value = loss.measure(logits, targets)
    torch.testing.assert_close(value, loss.measure(logits[kept], targets[kept]))
    slope = gradient(value, logits)
    assert torch.equal(slope[~kept], torch.zeros_like(slope[~kept]))
    assert (slope[kept].abs().sum(-1) > 0).all()


@pytest.mark.parametrize("loss", EVERY, ids=named)
@pytest.mark.parametrize("rows", [0, 5])
def test_where_nothing_counts_loss_and_gradient_are_zero(loss: Loss, rows: int) -> None:
    logits = torch.randn(rows, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    value = loss.measure(logits, torch.full((rows,), IGNORED))
    assert float(value.detach()) == 0.0
    assert torch.equal(gradient(value, logits), torch.zeros(rows, 3))
