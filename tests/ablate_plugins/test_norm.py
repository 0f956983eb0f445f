"""Identities of norms that hold exactly."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.autograd.functional import jacobian

from ablate.model.parameters import initialise
from ablate.slots import Norm, Site, place
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.norm import BatchNorm, DynamicTanh, LayerNorm, NoNorm, RMSNorm, ScaleNorm

AT = Site(path="norm", slot="norm", width=16, depth=1, context=8)


def x() -> Tensor:
    return torch.randn(5, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_layer_norm_ignores_shift_and_scale() -> None:
    norm = LayerNorm(eps=1e-12).build(AT).double()
    torch.testing.assert_close(norm(3 * x() + 7), norm(x()), atol=1e-9, rtol=0)


def test_rms_norm_ignores_scale_but_not_shift() -> None:
    norm = RMSNorm(eps=1e-12).build(AT).double()
    torch.testing.assert_close(norm(3 * x()), norm(x()), atol=1e-9, rtol=0)
    assert not torch.allclose(norm(x() + 7), norm(x()))


def test_layer_norm_is_the_formula_with_biased_variance_and_eps_inside_the_root() -> None:
    centred = x() - x().mean(-1, keepdim=True)
    by_hand = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(LayerNorm().build(AT).double()(x()), by_hand, atol=1e-12, rtol=0)


def test_layer_norms_gradient_is_orthogonal_to_ones_and_to_its_output() -> None:
    norm = LayerNorm(eps=1e-12).build(AT).double()
    row = x()[0]
    matrix = jacobian(norm, row)
    centred = row - row.mean()
    assert float((matrix @ torch.ones(16, dtype=torch.float64)).norm()) < 1e-9
    assert float((matrix @ centred).norm()) < 1e-9
    largest = torch.linalg.matrix_norm(matrix, 2)
    torch.testing.assert_close(largest, 16**0.5 / centred.norm(), atol=1e-9, rtol=0)


def test_no_norm_changes_nothing() -> None:
    assert torch.equal(NoNorm().build(AT)(x()), x())


# --- batch norm ---


def batches() -> Tensor:
    """Three batches: (3, B, T, D)."""
    return 3 * torch.randn(3, 4, 8, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 1


def test_batch_norm_is_torchs_over_all_tokens_in_training_and_in_evaluation() -> None:
    ours, torchs = BatchNorm(momentum=0.3, eps=1e-3).build(AT).double(), nn.BatchNorm1d(16, 1e-3, 0.3).double()
    for batch in batches():
        assert torch.equal(ours(batch), torchs(batch.flatten(0, 1)).unflatten(0, (4, 8)))
    ours.eval(), torchs.eval()
    assert torch.equal(ours(batches()), torchs(batches().flatten(0, 2)).unflatten(0, (3, 4, 8)))
    assert {name: value.tolist() for name, value in ours.state_dict().items()} == {
        name: value.tolist() for name, value in torchs.state_dict().items()
    }


def test_batch_norm_by_hand() -> None:
    norm = BatchNorm(eps=1e-12).build(Site(path="norm", slot="norm", width=1, depth=1, context=3)).double()
    tokens = torch.tensor([[[1.0], [3.0]], [[5.0], [7.0]]], dtype=torch.float64)  # mean 4, variance 5, unbiased 20/3
    assert norm(tokens).flatten().tolist() == pytest.approx([value / 5**0.5 for value in (-3, -1, 1, 3)])
    norm.eval()  # mean 0.4, variance 0.9 + 2/3
    assert norm(tokens).flatten().tolist() == pytest.approx([(v - 0.4) / (0.9 + 2 / 3) ** 0.5 for v in (1, 3, 5, 7)])


def test_batch_norm_in_training_gives_each_feature_zero_mean_and_unit_variance() -> None:
    y = BatchNorm(eps=1e-12).build(AT).double()(batches()[0]).flatten(0, 1)
    torch.testing.assert_close(y.mean(0), torch.zeros(16, dtype=torch.float64), atol=1e-9, rtol=0)
    torch.testing.assert_close(y.var(0, correction=0), torch.ones(16, dtype=torch.float64), atol=1e-9, rtol=0)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_leaks_the_future_and_the_other_sequences_in_training_alone(training: bool) -> None:
    norm = BatchNorm().build(AT).double()
    norm(batches()[1])  # so that the running statistics are not those of the start
    norm.train(training)
    x, later, other = (batches()[0] for _ in range(3))
    later[:, 5:] += 10
    other[1:] += 10
    past, first = norm(x)[:, :5], norm(x)[0]
    assert torch.equal(norm(later)[:, :5], past) is not training
    assert torch.equal(norm(other)[0], first) is not training


def test_batch_norm_declares_what_it_leaks() -> None:
    assert list(BatchNorm().traits().notes()) == [
        "a token sees later ones of its sequence",
        "in training a sequence sees the others of its batch",
    ]
    assert not BatchNorm().traits().position_wise


# --- scale norm ---


def test_scale_norm_gives_every_token_the_length_root_of_width() -> None:
    lengths = ScaleNorm().build(AT).double()(x()).norm(dim=-1)
    torch.testing.assert_close(lengths, torch.full((5,), 4.0, dtype=torch.float64), atol=1e-9, rtol=0)


def test_scale_norm_by_hand() -> None:
    norm = ScaleNorm(eps=1.0).build(Site(path="norm", slot="norm", width=2, depth=1, context=3))
    (gain,) = norm.parameters()
    assert gain.numel() == 1 and gain.item() == pytest.approx(2**0.5)
    with torch.no_grad():
        gain.fill_(10.0)
    tokens = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])  # the last two are shorter than eps
    torch.testing.assert_close(norm(tokens), torch.tensor([[6.0, 8.0], [3.0, 4.0], [0.0, 0.0]]))


def test_scale_norm_ignores_scale_but_not_shift() -> None:
    norm = ScaleNorm().build(AT).double()
    torch.testing.assert_close(norm(3 * x()), norm(x()), atol=1e-9, rtol=0)
    assert not torch.allclose(norm(x() + 7), norm(x()))


def test_scale_norms_gradient_is_orthogonal_to_its_output_and_has_the_norm_of_gain_over_length() -> None:
    row = x()[0]
    matrix = jacobian(ScaleNorm().build(AT).double(), row)
    assert float((matrix @ row).norm()) < 1e-9
    torch.testing.assert_close(torch.linalg.matrix_norm(matrix, 2), 4 / row.norm(), atol=1e-9, rtol=0)


def test_at_the_start_scale_norm_is_rms_norm() -> None:
    scale, rms = ScaleNorm().build(AT).double(), RMSNorm(eps=1e-12).build(AT).double()
    torch.testing.assert_close(scale(x()), rms(x()), atol=1e-9, rtol=0)


# --- dynamic tanh ---


@pytest.mark.parametrize(("options", "alpha"), [({}, 0.5), ({"start": 2.0}, 2.0)])
def test_dynamic_tanh_starts_as_a_tanh(options: dict[str, float], alpha: float) -> None:
    norm = DynamicTanh.model_validate(options).build(AT).double()
    torch.testing.assert_close(norm(x()), torch.tanh(alpha * x()), atol=1e-12, rtol=0)


def test_dynamic_tanh_is_its_formula() -> None:
    norm = DynamicTanh().build(AT).double()
    gamma, beta = torch.linspace(-1, 1, 16, dtype=torch.float64), torch.linspace(0, 3, 16, dtype=torch.float64)
    with torch.no_grad():
        norm.get_parameter("alpha").fill_(1.5)
        norm.get_parameter("weight").copy_(gamma)
        norm.get_parameter("bias").copy_(beta)
    torch.testing.assert_close(norm(x()), gamma * torch.tanh(1.5 * x()) + beta, atol=1e-12, rtol=0)
    assert norm.get_parameter("alpha").numel() == 1


# --- all of them ---

EVERY = [LayerNorm(), RMSNorm(), BatchNorm(), ScaleNorm(), DynamicTanh(), NoNorm()]


@pytest.mark.parametrize("norm", EVERY, ids=lambda norm: norm.kind)
def test_initialising_leaves_every_norm_as_it_was_built(norm: Norm) -> None:
    built, initialised = norm.build(AT), place(norm, AT)
    initialise(initialised, LecunNormal(), (0,))
    assert torch.equal(initialised(x().float()), built(x().float()))


@pytest.mark.parametrize("norm", EVERY, ids=lambda norm: norm.kind)
def test_every_norm_takes_any_leading_axes(norm: Norm) -> None:
    module = norm.build(AT).eval()
    tokens = x().float()
    for shape in ((1, 5, 16), (5, 1, 16), (5, 1, 1, 16)):
        torch.testing.assert_close(module(tokens.view(shape)), module(tokens).view(shape))
    torch.testing.assert_close(module(tokens[2]), module(tokens)[2])


@pytest.mark.parametrize("norm", EVERY, ids=lambda norm: norm.kind)
def test_a_token_of_zeros_has_a_finite_gradient(norm: Norm) -> None:
    tokens = torch.zeros(2, 3, 16, requires_grad=True)
    module = norm.build(AT)
    module(tokens).sum().backward()
    for value in (tokens, *module.parameters()):
        assert value.grad is not None and bool(value.grad.isfinite().all())


@pytest.mark.parametrize("norm", EVERY, ids=lambda norm: norm.kind)
def test_every_norm_keeps_float64_and_runs_under_autocast(norm: Norm) -> None:
    module, tokens = norm.build(AT), x()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = module(tokens.float())
    torch.testing.assert_close(mixed.float(), module(tokens.float()), atol=0.05, rtol=0.02)
    assert module.double()(tokens).dtype == torch.float64


@pytest.mark.parametrize("norm", [BatchNorm(), ScaleNorm(), DynamicTanh()], ids=lambda norm: norm.kind)
def test_what_autocast_has_rounded_can_be_normalised(norm: Norm) -> None:
    module, tokens = norm.build(AT), x()
    with torch.autocast("cpu", torch.bfloat16):
        rounded = module(tokens.bfloat16())
    torch.testing.assert_close(rounded.float(), module(tokens.float()), atol=0.05, rtol=0.02)


@pytest.mark.parametrize(
    ("norm", "options"),
    [
        (BatchNorm, {"momentum": 0.0}),
        (BatchNorm, {"momentum": 1.1}),
        (BatchNorm, {"eps": 0.0}),
        (ScaleNorm, {"eps": 0.0}),
        (DynamicTanh, {"start": 0.0}),
    ],
)
def test_options_have_bounds(norm: type[Norm], options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValidationError, match=name):
        norm.model_validate(options)
