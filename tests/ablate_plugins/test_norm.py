"""Identities of norms that hold exactly."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.functional import jacobian

from ablate.slots import Site
from ablate_plugins.norm import LayerNorm, NoNorm, RMSNorm

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
