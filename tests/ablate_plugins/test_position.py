"""Identities of positions that hold exactly."""

from __future__ import annotations

import pytest
import torch

from ablate.slots import ImpossibleError, Site
from ablate_plugins.position import RotaryPosition, SinusoidalPosition

AT = Site(path="position", slot="position", width=64, depth=1, context=128)


def test_sinusoidal_products_depend_on_the_distance_alone() -> None:
    table = SinusoidalPosition().build(AT).double()(torch.zeros(1, 128, 64, dtype=torch.float64))[0]
    products = table @ table.T
    for distance in (0, 1, 7, 50):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[0].expand_as(diagonal), atol=1e-5, rtol=0)
    torch.testing.assert_close(products.diagonal(), torch.full((128,), 32.0, dtype=torch.float64), atol=1e-5, rtol=0)


def test_sinusoidal_is_vaswanis_formula() -> None:
    table = SinusoidalPosition().build(AT)(torch.zeros(1, 128, 64))[0]
    for position, i in [(0, 0), (3, 0), (17, 5), (127, 31)]:
        angle = torch.tensor(position / 10000 ** (2 * i / 64))
        assert table[position, 2 * i] == pytest.approx(float(angle.sin()), abs=1e-5)
        assert table[position, 2 * i + 1] == pytest.approx(float(angle.cos()), abs=1e-5)


def test_rotary_products_depend_on_the_distance_alone_and_norms_are_kept() -> None:
    rotate = RotaryPosition().rotation(AT).double()
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(64, generator=generator, dtype=torch.float64).expand(1, 1, 128, 64) for _ in range(2))
    turned_q, turned_k = rotate(q, k)
    torch.testing.assert_close(turned_q.norm(dim=-1), q.norm(dim=-1), atol=1e-6, rtol=0)
    products = (turned_q @ turned_k.transpose(-2, -1))[0, 0]
    for distance in (-9, 0, 1, 50):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[0].expand_as(diagonal), atol=1e-4, rtol=0)
    assert float(products[0, 5]) != pytest.approx(float(products[0, 6]))


def test_an_odd_width_is_impossible() -> None:
    at = Site(path="position", slot="position", width=7, depth=1, context=8)
    with pytest.raises(ImpossibleError, match="a width of 7 is odd"):
        SinusoidalPosition().build(at)
