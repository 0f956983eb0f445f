"""Residuals on and off: tokens that collapse to one, and gradients that go on past a sublayer that does nothing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from ablate.model.parameters import build, root_site
from ablate.slots import Given, Interface
from ablate_plugins.initializer import LecunNormal
from tests.seeds.training import model

TASK = Interface(context=32, vocabulary=100, form="classification", classes=2)
TOKENS = torch.randint(100, (8, 32), generator=torch.Generator().manual_seed(0))
DEPTH = 8


def encoder(**options: Any) -> Any:
    """In float64."""
    mixer = {"kind": "attention", "heads": 4}
    made = model(**{"kind": "encoder", "width": 64, "depth": DEPTH, "mixer": mixer, **options})
    return build(made, root_site(TASK), stream=(0,), initializer=LecunNormal()).double()


def relative_residual(x: Tensor) -> Tensor:
    """How far the tokens are from being one, of (..., T, D): ‖X - 1x̄ᵀ‖/‖X‖, ‖·‖ = √(‖·‖₁‖·‖∞) (Dong et al. 2021)."""

    def size(matrix: Tensor) -> Tensor:
        columns, rows = matrix.abs().sum(-2).amax(-1), matrix.abs().sum(-1).amax(-1)
        return (columns * rows).sqrt()

    return size(x - x.mean(-2, keepdim=True)) / size(x)


def by_depth(network: Any) -> list[float]:
    """Of the tokens after each block, the mean over sequences."""
    found: list[float] = []
    for block in network.stack.blocks:
        block.register_forward_hook(lambda _, inputs, output: found.append(float(relative_residual(output).mean())))
    with torch.no_grad():
        network.stack(TOKENS, Given())
    return found


def test_relative_residual_by_hand() -> None:
    same, apart = torch.ones(3, 2), torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    assert relative_residual(same) == 0 and relative_residual(apart) == 1
    uneven = torch.tensor([[3.0, 0.0], [1.0, 0.0]])  # the mean is (2, 0): √(2·1) over √(4·3)
    assert float(relative_residual(uneven)) == pytest.approx((2 / 12) ** 0.5)


@pytest.mark.parametrize(
    "options",
    [
        {"feed_forward": "none", "norm": "none"},
        {"feed_forward": "none"},
        {"norm": "none"},
        {},
        {"placement": "post"},
    ],
    ids=str,
)
def test_without_a_residual_tokens_collapse_to_rank_one_with_depth(options: dict[str, Any]) -> None:
    off, on = by_depth(encoder(residual="none", **options)), by_depth(encoder(**options))
    assert off[-1] < 1e-14
    assert on[-1] > 0.25
    # Once it is small, a block leaves less than the square of it: the fall is doubly exponential.
    small = [(before, after) for before, after in pairwise(off) if 1e-8 < before < 0.3]
    assert len(small) >= 2
    assert all(after < before**2 * 10 for before, after in small)


def silenced(network: Any) -> Any:
    """The last matrices of every sublayer at zero: F(x) = 0."""
    with torch.no_grad():
        for name, value in network.named_parameters():
            if name.split(".")[-2] in {"o", "w2"}:
                value.zero_()
    return network


def gradients(network: Any) -> list[float]:
    """Of the stream at each block's input and after the last."""
    streams: list[Tensor] = []

    def keep(x: Tensor) -> None:
        x.retain_grad()
        streams.append(x)

    for block in network.stack.blocks:
        block.register_forward_pre_hook(lambda _, inputs: keep(inputs[0]))
    network.stack.blocks[-1].register_forward_hook(lambda _, inputs, output: keep(output))
    out = network.stack(TOKENS, Given())
    (out * torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=out.dtype)).sum().backward()
    return [0.0 if x.grad is None else float(x.grad.norm()) for x in streams]


def test_gradient_goes_on_where_sublayers_give_nothing_and_stops_without_a_residual() -> None:
    with_residual = gradients(silenced(encoder()))
    assert with_residual[0] > 0.1
    assert with_residual == pytest.approx([with_residual[-1]] * (DEPTH + 1), rel=1e-12)
    without = gradients(silenced(encoder(residual="none", norm="none")))
    assert without[-1] > 0.1
    assert without[:-1] == [0.0] * DEPTH


def test_a_block_of_small_sublayers_is_nearly_the_identity_with_a_residual_alone() -> None:
    def change(residual: str) -> float:
        network = encoder(residual=residual, depth=1)
        with torch.no_grad():
            for name, value in network.named_parameters():
                if name.split(".")[-2] in {"o", "w2"}:
                    value.mul_(1e-3)
        (block,) = network.stack.blocks
        x = torch.randn(4, 32, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        with torch.no_grad():
            return float((block(x, Given()) - x).norm() / x.norm())

    assert change("add") < 2e-3
    assert change("none") > 0.99


@pytest.mark.parametrize("placement", ["pre", "none", "res_post", "sandwich"])
def test_a_rezero_model_is_its_embeddings_and_its_head_at_the_start(placement: str) -> None:
    network = encoder(residual="rezero", placement=placement, position="sinusoidal")
    x = network.stack.position(network.stack.embed(TOKENS), 0)
    assert torch.equal(network.stack(TOKENS, Given()), x)
    valid = torch.ones_like(TOKENS, dtype=torch.bool)
    torch.testing.assert_close(network(TOKENS, valid), network.head(x.mean(1)), atol=1e-13, rtol=0)
