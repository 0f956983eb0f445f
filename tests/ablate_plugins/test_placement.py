"""Where the norm sits in each block."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ablate.slots import Placement, Site, Wiring
from ablate_plugins.placement import MixNorm, NoPlacement, PostNorm, PreNorm, ResidualPostNorm, SandwichNorm

PRE, POST = Wiring(before=True), Wiring(stream=True)


def at(layer: int | None, depth: int) -> Site:
    return Site(path="here", slot="mixer", width=8, depth=depth, context=4, layer=layer)


def wirings(placement: Placement, depth: int) -> list[Wiring]:
    return [placement.wiring(at(layer, depth)) for layer in range(depth)]


@pytest.mark.parametrize(
    ("placement", "wiring"),
    [
        (PreNorm(), Wiring(before=True)),
        (PostNorm(), Wiring(stream=True)),
        (ResidualPostNorm(), Wiring(after=True)),
        (SandwichNorm(), Wiring(before=True, after=True)),
        (NoPlacement(), Wiring()),
    ],
)
def test_a_placement_is_the_same_in_every_block(placement: Placement, wiring: Wiring) -> None:
    assert wirings(placement, 3) == [wiring] * 3


@pytest.mark.parametrize(
    ("depth", "post"),
    [(1, 0), (2, 1), (4, 1), (5, 1), (6, 2), (10, 3), (12, 3)],
)
def test_a_quarter_of_the_blocks_is_post_norm_from_the_lowest_and_a_half_rounds_up(depth: int, post: int) -> None:
    assert wirings(MixNorm(), depth) == [POST] * post + [PRE] * (depth - post)


@pytest.mark.parametrize("depth", [1, 4, 12])
def test_a_mix_of_nothing_is_pre_norm_and_of_all_is_post_norm(depth: int) -> None:
    assert wirings(MixNorm(post_share=0.0), depth) == wirings(PreNorm(), depth)
    assert wirings(MixNorm(post_share=1.0), depth) == wirings(PostNorm(), depth)


@pytest.mark.parametrize(("share", "post"), [(0.5, 1), (0.49, 0)])
def test_in_one_block_the_larger_share_decides(share: float, post: int) -> None:
    assert wirings(MixNorm(post_share=share), 1) == ([POST] if post else [PRE])


def test_a_mix_counts_the_blocks_of_its_own_stack() -> None:
    second_stack = Site(
        path="decoder.block.0.mixer", slot="mixer", width=8, depth=4, context=4, layer=0, first=12, other_depth=12
    )
    assert MixNorm().wiring(second_stack) == POST


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_outside_of_the_blocks_a_mix_is_pre_norm(share: float) -> None:
    assert MixNorm(post_share=share).wiring(at(None, 4)) == PRE


@pytest.mark.parametrize("share", [-0.01, 1.01])
def test_a_share_is_between_nothing_and_all(share: float) -> None:
    with pytest.raises(ValidationError, match="post_share"):
        MixNorm(post_share=share)
