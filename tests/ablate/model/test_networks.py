"""What the three skeletons see: no padding, no future, and in a decoder all of the source."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from ablate.model.networks import POOLING
from tests.ablate.model.drawn import (
    LABELS,
    LANGUAGE,
    LENGTHS,
    PAIRS,
    REGISTRY,
    model,
    network,
    same,
    stream,
    tokens,
    valid,
)

MIXERS = [kind for kind in REGISTRY.kinds("mixer") if kind != "none"]
POSITIONS = REGISTRY.kinds("position")
IN_ATTENTION = {"rotary", "alibi", "relative_bias"}
every_mixer = pytest.mark.parametrize("mixer", MIXERS)
every_position = pytest.mark.parametrize("position", POSITIONS)


def another(ids: Tensor, vocabulary: int) -> Tensor:
    return (ids + 1) % vocabulary


# --- the classifier ---


@pytest.mark.parametrize("pooling", list(POOLING))
@every_mixer
def test_padding_changes_no_label_and_no_token(mixer: str, pooling: str) -> None:
    made = network(model(kind="encoder", mixer=mixer, pooling=pooling), LABELS).train()
    ids, seen = tokens(), valid()
    logits = made(ids, seen)
    assert logits.shape == (3, 5)
    assert torch.equal(made(torch.where(seen, ids, another(ids, 11)), seen), logits)
    for row, length in enumerate(LENGTHS):
        same(made(ids[row : row + 1, :length], seen[row : row + 1, :length]), logits[row : row + 1])


@every_position
def test_padding_moves_no_position(position: str) -> None:
    made = network(model(kind="encoder", position=position), LABELS)
    logits = made(tokens(), valid())
    for row, length in enumerate(LENGTHS):
        same(made(tokens()[row : row + 1, :length], valid()[row : row + 1, :length]), logits[row : row + 1])


def test_poolings_by_hand() -> None:
    x, seen = stream(), valid()
    cut = [x[row, :length] for row, length in enumerate(LENGTHS)]
    by_hand: dict[str, list[Tensor]] = {
        "mean": [each.mean(0) for each in cut],
        "max": [each.amax(0) for each in cut],
        "first": [each[0] for each in cut],
        "last": [each[-1] for each in cut],
    }
    assert by_hand.keys() == POOLING.keys()
    for name, expected in by_hand.items():
        same(POOLING[name](x, seen), torch.stack(expected), 1e-14)


@pytest.mark.parametrize("pooling", list(POOLING))
def test_a_sequence_without_tokens_gives_numbers_and_gradients(pooling: str) -> None:
    made = network(model(kind="encoder", pooling=pooling), LABELS).float()
    logits = made(tokens(), valid((8, 0, 1)))
    logits.square().sum().backward()
    assert logits.isfinite().all()
    assert all(value.grad is None or value.grad.isfinite().all() for value in made.parameters())


def test_an_encoder_sees_both_ways() -> None:
    made = network(model(kind="encoder", pooling="first"), LABELS)
    ids, whole = tokens(), torch.ones(3, 8, dtype=torch.bool)
    changed = ids.clone()
    changed[:, -1] = another(ids[:, -1], 11)
    assert ((made(changed, whole) - made(ids, whole)).abs().amax(-1) > 1e-6).all()


# --- the language model ---


@pytest.mark.parametrize("parallel", [False, True])
@every_mixer
def test_no_logits_depend_on_a_later_token(mixer: str, parallel: bool) -> None:
    made = network(model(kind="decoder", mixer=mixer, parallel=parallel), LANGUAGE).train()
    the_past_stays(made, tokens())


@every_position
def test_no_logits_depend_on_a_later_token_by_any_position(position: str) -> None:
    the_past_stays(network(model(kind="decoder", position=position), LANGUAGE).train(), tokens())


def the_past_stays(made: Any, ids: Tensor, *before: Tensor) -> None:
    logits = made(*before, ids)
    for place in range(ids.shape[1]):
        changed = ids.clone()
        changed[:, place] = another(ids[:, place], 11)
        after = made(*before, changed)
        same(after[:, :place], logits[:, :place], 1e-13)
        assert ((after[:, place] - logits[:, place]).abs().amax(-1) > 1e-9).all()


# --- the encoder with a decoder ---


@every_mixer
def test_a_decoder_beside_an_encoder_is_causal_and_sees_no_padding(mixer: str) -> None:
    made = network(model(kind="encoder_decoder", mixer=mixer, encoder_depth=1), PAIRS).train()
    source, text = tokens(7), tokens(length=9)
    the_past_stays(made, text, source, valid())
    logits = made(source, valid(), text)
    assert torch.equal(made(torch.where(valid(), source, another(source, 7)), valid(), text), logits)
    for row, length in enumerate(LENGTHS):
        one = slice(row, row + 1)
        same(made(source[one, :length], valid()[one, :length], text[one]), logits[one])


@every_position
def test_every_output_moves_with_every_token_of_the_source(position: str) -> None:
    made = network(model(kind="encoder_decoder", position=position), PAIRS)
    source, text, whole = tokens(7), tokens(length=9), torch.ones(3, 8, dtype=torch.bool)
    logits = made(source, whole, text)
    for place in range(8):
        changed = source.clone()
        changed[:, place] = another(source[:, place], 7)
        assert ((made(changed, whole, text) - logits).abs().amax(-1) > 1e-9).all()


def test_without_cross_attention_nothing_is_known_of_the_source() -> None:
    made = network(model(kind="encoder_decoder", cross="none"), PAIRS)
    source, text = tokens(7), tokens(length=9)
    assert torch.equal(made(source, valid(), text), made(another(source, 7), valid(), text))


def test_a_source_without_tokens_gives_numbers() -> None:
    made = network(model(kind="encoder_decoder"), PAIRS)
    assert made(tokens(7), torch.zeros(3, 8, dtype=torch.bool), tokens(length=9)).isfinite().all()
