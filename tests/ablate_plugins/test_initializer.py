"""Initialisers: what they draw, by role and by place."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from ablate.slots import Initializer, Parameter, Site
from ablate_plugins.initializer import DeepNorm, Gpt2, LecunNormal, Normal, Orthogonal, Small, Xavier

EVERY = [LecunNormal(), Normal(), Xavier(), Xavier(distribution="normal"), Gpt2(), DeepNorm(), Orthogonal(), Small()]


def drawn(initializer: Initializer, shape: tuple[int, ...], role: str = "q", at: Site | None = None) -> Tensor:
    tensor = torch.full(shape, torch.nan)
    layer = at.block if at else None
    initializer.fill(tensor, Parameter("x", role, layer, shape, at), torch.Generator().manual_seed(0))
    return tensor


def block(depth: int = 6, **changes: Any) -> Site:
    return Site("block.0.mixer", "mixer", width=400, depth=depth, context=8, layer=0).child("x", **changes)


def std(initializer: Initializer, shape: tuple[int, ...], role: str = "q", at: Site | None = None) -> float:
    return float(drawn(initializer, shape, role, at).std())


@pytest.mark.parametrize(("role", "expected"), [("q", 0.05), ("embed", 1.0), ("position", 1.0)])
def test_lecun_normal_keeps_the_variance_of_what_passes_through(role: str, expected: float) -> None:
    assert std(LecunNormal(), (300, 400), role) == pytest.approx(expected, rel=0.02)


def test_normal_has_its_standard_deviation() -> None:
    assert std(Normal(std=0.3), (300, 400)) == pytest.approx(0.3, rel=0.02)


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
@pytest.mark.parametrize(
    ("shape", "role", "variance"),
    [
        ((300, 400), "w1", 2 / 700),
        ((40, 50, 7), "conv", 2 / (90 * 7)),
        ((600, 200), "cell", 2 / 800),
        ((600, 200), "embed", 2 / 201),
    ],
)
def test_xavier_has_the_variance_of_both_fans(
    distribution: str, shape: tuple[int, ...], role: str, variance: float
) -> None:
    initializer = Xavier.model_validate({"distribution": distribution, "gain": 3.0})
    assert std(initializer, shape, role) == pytest.approx(3 * math.sqrt(variance), rel=0.03)


def test_xavier_is_torchs_own() -> None:
    for shape in [(30, 40), (8, 6, 5)]:
        uniform, normal = torch.empty(shape), torch.empty(shape)
        torch.nn.init.xavier_uniform_(uniform, generator=torch.Generator().manual_seed(0))
        torch.nn.init.xavier_normal_(normal, generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(drawn(Xavier(), shape), uniform)
        torch.testing.assert_close(drawn(Xavier(distribution="normal"), shape), normal)


@pytest.mark.parametrize(("role", "narrowed"), [("o", True), ("w2", True), ("q", False), ("w1", False)])
def test_gpt2_narrows_what_is_added_to_the_stream(role: str, narrowed: bool) -> None:
    for depth in (2, 8):
        expected = 0.02 / math.sqrt(2 * depth) if narrowed else 0.02
        assert std(Gpt2(), (300, 400), role, block(depth)) == pytest.approx(expected, rel=0.02)


def test_gpt2_narrows_nothing_outside_of_the_blocks() -> None:
    outside = Site("output", "head", width=400, depth=8, context=8)
    for role, at in [("o", outside), ("o", None), ("embed", outside)]:
        assert std(Gpt2(), (300, 400), role, at) == pytest.approx(0.02, rel=0.02)


@pytest.mark.parametrize(
    ("at", "beta"),
    [
        (block(6), (8 * 6) ** -0.25),
        (block(6, stack="encoder"), (8 * 6) ** -0.25),
        (block(6, stack="encoder", other_depth=3), 0.87 * (6**4 * 3) ** (-1 / 16)),
        (block(3, stack="decoder", other_depth=6), (12 * 3) ** -0.25),
    ],
)
def test_deepnorm_narrows_values_by_beta(at: Site, beta: float) -> None:
    plain = drawn(Xavier(distribution="normal"), (300, 400))
    for role in ("v", "o", "w1", "w2", "w3"):
        torch.testing.assert_close(drawn(DeepNorm(), (300, 400), role, at), beta * plain)
    for role in ("q", "k"):
        torch.testing.assert_close(drawn(DeepNorm(), (300, 400), role, at), plain)


def test_deepnorm_leaves_what_is_outside_of_the_blocks() -> None:
    outside = Site("output", "head", width=400, depth=8, context=8)
    plain = Xavier(distribution="normal")
    torch.testing.assert_close(drawn(DeepNorm(), (300, 400), "v", outside), drawn(plain, (300, 400), "v"))
    torch.testing.assert_close(drawn(DeepNorm(), (9, 4), "embed", outside), drawn(plain, (9, 4), "embed"))


@pytest.mark.parametrize("shape", [(40, 40), (30, 50), (60, 20), (50, 4, 3)])
def test_orthogonal_matrices_are_orthogonal(shape: tuple[int, ...]) -> None:
    matrix = drawn(Orthogonal(gain=2.0), shape).flatten(1)
    gram = matrix @ matrix.T if shape[0] <= matrix.shape[1] else matrix.T @ matrix
    torch.testing.assert_close(gram, 4 * torch.eye(len(gram)), atol=1e-4, rtol=0)


def test_orthogonal_draws_tables_from_the_standard_normal() -> None:
    assert std(Orthogonal(gain=2.0), (300, 400), "embed") == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize("role", ["q", "w2", "embed"])
def test_small_goes_by_the_streams_width(role: str) -> None:
    assert std(Small(), (400, 100), role, block()) == pytest.approx(math.sqrt(2 / 2000), rel=0.02)
    assert std(Small(), (400, 100), role) == pytest.approx(math.sqrt(2 / 500), rel=0.02)


def test_small_is_what_xavier_gives_a_feed_forward_network_of_ratio_4() -> None:
    small = drawn(Small(), (1600, 400), "w1", block())
    torch.testing.assert_close(small, drawn(Xavier(distribution="normal"), (1600, 400), "w1"))


@pytest.mark.parametrize("initializer", EVERY, ids=lambda each: each.kind)
@pytest.mark.parametrize("shape", [(8, 6), (8, 1, 5), (8, 6, 3), (24, 8), (1, 1), (2, 3, 4, 5)])
def test_every_shape_and_role_is_filled_from_the_given_stream_alone(
    initializer: Initializer, shape: tuple[int, ...]
) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    for role in ("q", "o", "w2", "embed", "position", "conv"):
        for at in (None, block(), block(2, stack="encoder", other_depth=4)):
            first = drawn(initializer, shape, role, at)
            assert torch.isfinite(first).all() and first.abs().sum() > 0
            assert torch.equal(first, drawn(initializer, shape, role, at))
    assert torch.equal(before, torch.get_rng_state())
