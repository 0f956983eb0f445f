"""How updates join the stream: formulas, and what a gate is when training starts."""

from __future__ import annotations

import math
from typing import Any, Literal

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from ablate.model.parameters import initialise
from ablate.slots import Residual, Site, place
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.residual import (
    AddResidual,
    DeepNormResidual,
    HighwayResidual,
    LayerScaleResidual,
    NoResidual,
    ReZeroResidual,
    WeightedResidual,
)

AT = Site(path="block.0.mixer.residual", slot="residual", width=3, depth=6, context=2, layer=0)
X, UPDATE = torch.tensor([[[1.0, 2.0, -4.0]]]), torch.tensor([[[10.0, -20.0, 40.0]]])


def started(residual: Residual, at: Site = AT) -> nn.Module:
    """As it is when training starts."""
    module = place(residual, at)
    initialise(module, LecunNormal(), (0,))
    return module


@pytest.mark.parametrize(
    ("residual", "expected"),
    [
        (AddResidual(), [11.0, -18.0, 36.0]),
        (NoResidual(), [10.0, -20.0, 40.0]),
        (WeightedResidual(), [11.0, -18.0, 36.0]),
        (WeightedResidual(skip=0.5, branch=0.25), [3.0, -4.0, 8.0]),
        (WeightedResidual(skip=0.0, branch=2.0), [20.0, -40.0, 80.0]),
        (ReZeroResidual(), [1.0, 2.0, -4.0]),
        (LayerScaleResidual(start=0.5), [6.0, -8.0, 16.0]),
        (LayerScaleResidual(start=0.0), [1.0, 2.0, -4.0]),
    ],
)
def test_residuals_at_the_start_by_hand(residual: Residual, expected: list[float]) -> None:
    assert started(residual)(X, UPDATE).flatten().tolist() == expected


# --- deepnorm ---


@pytest.mark.parametrize(
    ("depth", "other", "stack", "alpha"),
    [
        (6, None, "decoder", 12**0.25),
        (6, None, "encoder", 12**0.25),
        (8, None, "decoder", 2.0),
        (6, 6, "encoder", 0.81 * (6**4 * 6) ** (1 / 16)),
        (6, 6, "decoder", 18**0.25),
        (2, 16, "encoder", 0.81 * 2**0.5),
        (16, 2, "encoder", 0.81 * 2 ** (17 / 16)),
        (27, 3, "decoder", 3.0),
    ],
)
def test_deepnorm_scales_the_skip_by_depth(
    depth: int, other: int | None, stack: Literal["encoder", "decoder"], alpha: float
) -> None:
    at = Site(path="r", slot="residual", width=3, depth=depth, context=2, layer=0, stack=stack, other_depth=other)
    module = started(DeepNormResidual(), at)
    torch.testing.assert_close(module(X, torch.zeros_like(X)), alpha * X)
    assert torch.equal(module(torch.zeros_like(X), UPDATE), UPDATE)
    assert not list(module.parameters())


# --- rezero and layer scale ---


def test_a_stack_of_rezero_blocks_is_the_identity_at_the_start_and_its_gates_learn() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, 3, generator=generator, requires_grad=True)
    direction = torch.randn(2, 5, 3, generator=generator)
    joins = [started(ReZeroResidual()) for _ in range(8)]
    y: Tensor = x
    for join in joins:
        y = join(y, torch.tanh(3 * y) + 1)  # what a branch without a norm may do
    y.backward(direction)
    assert torch.equal(y, x)
    assert x.grad is not None and torch.equal(x.grad, direction)
    expected = (direction * (torch.tanh(3 * x) + 1)).sum()
    for join in joins:
        (gate,) = join.parameters()
        assert gate.numel() == 1
        assert gate.grad is not None
        torch.testing.assert_close(gate.grad, expected.detach())


def test_only_rezero_does_without_a_final_norm() -> None:
    others = (AddResidual, NoResidual, WeightedResidual, DeepNormResidual, LayerScaleResidual, HighwayResidual)
    assert not ReZeroResidual.final_norm
    assert all(other.final_norm for other in others)


def test_layer_scale_has_a_gain_for_each_feature_that_training_starts_small() -> None:
    module = started(LayerScaleResidual())
    (gain,) = module.parameters()
    assert torch.equal(gain, torch.full((3,), 1e-4))
    with torch.no_grad():
        gain.copy_(torch.tensor([1.0, 0.1, 0.0]))
    torch.testing.assert_close(module(X, UPDATE), torch.tensor([[[11.0, 0.0, -4.0]]]))


# --- highway ---


def test_highway_is_its_formula() -> None:
    module = started(HighwayResidual())
    weight, bias = module.get_parameter("gate.weight"), module.get_parameter("gate.bias")
    with torch.no_grad():
        weight.copy_(torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]))
        bias.copy_(torch.tensor([0.0, 0.5, -1.0]))
    opened = [1 / (1 + math.exp(-logit)) for logit in (1.0 - 2, 4.0 + 0.5 - 2, -1.0 - 2)]
    by_hand = [
        t * update + (1 - t) * x
        for t, x, update in zip(opened, X.flatten().tolist(), UPDATE.flatten().tolist(), strict=True)
    ]
    assert module(X, UPDATE).flatten().tolist() == pytest.approx(by_hand, rel=1e-6)


def test_highways_gate_reads_the_stream_and_not_the_update() -> None:
    module = started(HighwayResidual())
    at_zero = module(X, torch.zeros_like(X))
    torch.testing.assert_close(module(X, UPDATE) - at_zero, UPDATE * (1 - at_zero / X))


@pytest.mark.parametrize("start", [-2.0, 0.0, 1.5])
def test_highways_gate_starts_where_it_is_told_although_biases_start_at_zero(start: float) -> None:
    module = started(HighwayResidual(start=start))
    assert not module.get_parameter("gate.bias").any()
    nothing = torch.zeros(1, 1, 3)
    torch.testing.assert_close(module(nothing, torch.ones(1, 1, 3)), torch.full((1, 1, 3), 1 / (1 + math.exp(-start))))


def test_a_closed_highway_passes_the_stream_and_an_open_one_the_update() -> None:
    gates = {start: started(HighwayResidual(start=start)) for start in (-20.0, 20.0)}
    for module in gates.values():
        module.get_parameter("gate.weight").data.zero_()
    torch.testing.assert_close(gates[-20.0](X, UPDATE), X, atol=1e-6, rtol=0)
    torch.testing.assert_close(gates[20.0](X, UPDATE), UPDATE, atol=1e-6, rtol=0)


# --- all of them ---

EVERY = [
    AddResidual(),
    NoResidual(),
    WeightedResidual(skip=0.5),
    DeepNormResidual(),
    ReZeroResidual(),
    LayerScaleResidual(),
    HighwayResidual(),
]


@pytest.mark.parametrize("residual", EVERY, ids=lambda residual: residual.kind)
def test_every_residual_treats_each_token_alone(residual: Residual) -> None:
    generator = torch.Generator().manual_seed(0)
    x, update = torch.randn(2, 5, 3, generator=generator), torch.randn(2, 5, 3, generator=generator)
    module = started(residual)
    torch.testing.assert_close(module(x, update)[:, 2:3], module(x[:, 2:3], update[:, 2:3]), atol=1e-6, rtol=0)
    assert residual.traits().position_wise and residual.traits().causal


@pytest.mark.parametrize("residual", EVERY, ids=lambda residual: residual.kind)
def test_every_residual_keeps_float64_and_runs_under_autocast(residual: Residual) -> None:
    module = started(residual)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = module(X, UPDATE.bfloat16())
    torch.testing.assert_close(mixed.float(), module(X, UPDATE), atol=0.2, rtol=0.02)
    assert module.double()(X.double(), UPDATE.double()).dtype == torch.float64


@pytest.mark.parametrize(
    ("residual", "options"),
    [
        (WeightedResidual, {"skip": -1.0}),
        (WeightedResidual, {"branch": 0.0}),
        (LayerScaleResidual, {"start": -1e-4}),
        (HighwayResidual, {"start": -21.0}),
        (HighwayResidual, {"start": 21.0}),
    ],
)
def test_options_have_bounds(residual: type[Residual], options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValidationError, match=name):
        residual.model_validate(options)
