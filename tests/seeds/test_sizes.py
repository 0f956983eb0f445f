"""Vaswani's sizes (2017, table 3): one thing is changed at a time, and the parameters differ from base's as printed."""

from __future__ import annotations

from typing import Any

import pytest

from ablate.model.parameters import build_shape, named_parameters, root_site
from ablate.slots import Interface
from tests.seeds.training import model

VOCABULARY = 37_000
WMT = Interface(
    form="sequence_to_sequence",
    context=512,
    vocabulary=VOCABULARY,
    source_context=512,
    source_vocabulary=VOCABULARY,
)


def transformer(*, depth: int = 6, inner: int = 2048, heads: int = 8, key_width: int | None = None) -> Any:
    attention = {"kind": "attention", "heads": heads, "key_width": key_width}
    return model(
        kind="encoder_decoder",
        width=512,
        depth=depth,
        mixer=attention,
        cross=attention,
        feed_forward={"kind": "mlp", "width": inner, "activation": "relu"},
        position="sinusoidal",
        placement="post",
        dropout=0.1,
        share_embeddings=True,
        output="tied",
        scale_embedding=True,
    )


def sizes(**changes: Any) -> dict[str, int]:
    shape = build_shape(transformer(**changes), root_site(WMT))
    assert all(value.is_meta for value in shape.parameters())
    return {parameter.name: value.numel() for parameter, value in named_parameters(shape)}


def total(**changes: Any) -> int:
    return sum(sizes(**changes).values())


ATTENTION, FEED_FORWARD, NORM = 1_050_624, 2_099_712, 1024


def test_base_is_its_table_and_its_blocks() -> None:
    encoder, decoder = ATTENTION + FEED_FORWARD + 2 * NORM, 2 * ATTENTION + FEED_FORWARD + 3 * NORM
    assert total() == VOCABULARY * 512 + 6 * (encoder + decoder) == 63_082_496


def test_a_feed_forward_network_has_twice_the_parameters_of_attention_but_for_biases() -> None:
    found = sizes()

    def under(place: str, *names: str) -> int:
        return sum(found[f"{place}.{name}.{kind}"] for name in names for kind in ("weight", "bias"))

    for stack in ("encoder.", ""):
        for layer in range(6):
            block = f"{stack}block.{layer}"
            assert under(f"{block}.mixer", "q", "k", "v", "o") == ATTENTION
            assert under(f"{block}.feed_forward", "w1", "w2") == FEED_FORWARD
    assert under("block.5.cross", "q", "k", "v", "o") == ATTENTION
    assert ATTENTION - 4 * 512 == (FEED_FORWARD - 2048 - 512) / 2


@pytest.mark.parametrize(
    ("changes", "millions"),
    [
        ({"inner": 1024}, "-12.6"),
        ({"inner": 4096}, "+25.2"),
        ({"depth": 2}, "-29.4"),
        ({"depth": 4}, "-14.7"),
        ({"depth": 8}, "+14.7"),
        ({"key_width": 16}, "-7.1"),
        ({"key_width": 32}, "-4.7"),
    ],
)
def test_one_change_from_base_changes_the_parameters_as_the_paper_prints_it(
    changes: dict[str, int], millions: str
) -> None:
    assert f"{(total(**changes) - total()) / 1e6:+.1f}" == millions


@pytest.mark.parametrize("heads", [1, 4, 16, 32])
def test_the_number_of_heads_changes_no_parameter(heads: int) -> None:
    assert sizes(heads=heads) == sizes()


@pytest.mark.parametrize("inner", [1, 64, 512, 3000])
def test_a_feed_forward_networks_parameters_by_its_width(inner: int) -> None:
    found = sizes(inner=inner, depth=1)
    (w1, w2) = (found[f"block.0.feed_forward.{name}.weight"] for name in ("w1", "w2"))
    assert w1 == w2 == 512 * inner
    changed = total(inner=inner, depth=1) - total(depth=1)
    assert changed == 2 * (inner - 2048) * (2 * 512 + 1)  # in the encoder's block and in the decoder's
