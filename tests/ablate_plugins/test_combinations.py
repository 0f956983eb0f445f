"""Whatever can stand together in a block works together: finite, causal as declared, and every parameter learns."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from ablate.slots import Norm, Site, Traits
from ablate_plugins.mixer.attention import Attention
from ablate_plugins.model.decoder import Decoder
from ablate_plugins.norm import BatchNorm
from ablate_plugins.placement import NoPlacement
from ablate_plugins.residual import ReZeroResidual
from tests.ablate_plugins.combinations import (
    REGISTRY,
    VARIED,
    Combination,
    combinations,
    faults,
    forbidden,
    judged,
    network_of,
)

PAIRS = list(itertools.product(REGISTRY.kinds("mixer"), REGISTRY.kinds("position")))
SHOWN = 20


@pytest.fixture(autouse=True)
def nothing_for_nothing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread, since the models are too small for more; and torch draws no values that are drawn anew at once."""
    monkeypatch.setattr(nn.Linear, "reset_parameters", lambda self: None)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def told(found: list[str]) -> str:
    """The first faults, a line each, and how many there are."""
    return "\n".join([f"{len(found)} faults", *found[:SHOWN]])


@pytest.mark.slow
@pytest.mark.parametrize(("mixer", "position"), PAIRS)
def test_every_combination_is_as_its_components_declare(mixer: str, position: str) -> None:
    found = faults(combinations(mixer=mixer, position=position))
    assert not found, told(found)


def test_a_sample_in_which_every_two_that_can_meet_do_is_as_declared() -> None:
    sample = pairwise(random.Random(0))
    assert {(slot, kind) for each in sample for slot, kind in each.items()} == {
        (slot, kind) for slot in VARIED for kind in REGISTRY.kinds(slot)
    }
    found = faults(sample, depth=2)
    assert not found, told(found)


def pairwise(stream: random.Random) -> list[Combination]:
    """Legal combinations drawn at random, in which every two components that can meet do; few, so the richest first."""
    legal = [each for each in combinations() if forbidden(each) is None]
    stream.shuffle(legal)
    met: set[tuple[tuple[str, str], ...]] = set()
    sample = []
    for fewest_new, drawn in ((16, legal[:2000]), (8, legal[:2000]), (4, legal[:2000]), (1, legal)):
        for each in drawn:
            pairs = set(itertools.combinations(each.items(), 2))
            if len(pairs - met) >= fewest_new:
                met |= pairs
                sample.append(each)
    return sample


def test_what_is_refused_is_what_needs_attention_beside_a_mixer_that_has_none() -> None:
    every = {slot: REGISTRY.kinds(slot)[0] for slot in ("feed_forward", "placement", "norm", "residual")}
    chosen = [next(combinations(mixer=mixer, position=position, **every)) for mixer, position in PAIRS]
    assert faults(chosen) == []
    reasons = {reason for each in chosen if (reason := forbidden(each)) is not None}
    assert {
        f"position `{position}` acts on queries and keys, and mixer `{mixer}` has none for it"
        for position in ("rotary", "alibi", "relative_bias")
        for mixer in ("convolution", "gru", "lstm", "linear_attention", "mean_pooling")
    } == reasons


class _Reversed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + x.flip(-2)


class Peeking(Norm):
    """Add each token's counterpart from the other end, and say nothing of it."""

    kind: Literal["peeking"] = "peeking"

    def build(self, at: Site) -> nn.Module:
        return _Reversed()


class Shy(Norm):
    """Leave the stream as it is, and say that a token sees later ones."""

    kind: Literal["shy"] = "shy"

    def build(self, at: Site) -> nn.Module:
        return nn.Identity()

    def traits(self) -> Traits:
        return Traits(causal=False)


class _Idle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return x


class Idle(Norm):
    """Have a gain, and do not use it."""

    kind: Literal["idle"] = "idle"

    def build(self, at: Site) -> nn.Module:
        return _Idle()


class _Root(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + (x - x).sqrt()


class Root(Norm):
    """Add a root of zero, whose slope is not finite."""

    kind: Literal["root"] = "root"

    def build(self, at: Site) -> nn.Module:
        return _Root()


@pytest.mark.parametrize(
    ("norm", "fault"),
    [
        (Peeking(), "in training a token sees later ones, and nothing declares it"),
        (Shy(), "in training no token sees later ones, and a component declares that it does"),
        (Idle(), "`stack.final_norm.gain` has no gradient"),
        (Root(), "the gradient of `stack.embed.weight` is not finite"),
    ],
)
def test_a_component_that_is_not_as_it_declares_is_told(norm: Norm, fault: str) -> None:
    model = Decoder(width=8, depth=1, mixer=Attention(heads=2), norm=norm)
    assert fault in judged(model, network_of(model))[1]


def test_a_norm_that_looks_ahead_in_evaluation_too_is_told() -> None:
    class Open(Peeking):
        """Look ahead always, and say so."""

        kind: Literal["open"] = "open"  # type: ignore[assignment]

        def traits(self) -> Traits:
            return Traits(causal=False)

    model = Decoder(width=8, depth=1, mixer=Attention(heads=2), norm=Open())
    assert judged(model, network_of(model))[1] == ["in evaluation a token sees later ones"]


def test_a_norm_for_which_there_is_no_place_is_no_part_of_a_model() -> None:
    nowhere = Decoder(placement=NoPlacement(), residual=ReZeroResidual())
    assert nowhere.effective() == nowhere.model_copy(update={"norm": BatchNorm()}).effective()
    assert nowhere.model_copy(update={"norm": BatchNorm()}).traits().causal
    somewhere = Decoder(placement=NoPlacement())  # a final norm follows
    assert somewhere.effective() != somewhere.model_copy(update={"norm": BatchNorm()}).effective()
    assert not somewhere.model_copy(update={"norm": BatchNorm()}).traits().causal
