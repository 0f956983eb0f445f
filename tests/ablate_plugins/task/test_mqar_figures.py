"""What solves multi-query associative recall, and what does not, in so many steps: a figure of the literature."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from ablate.model.keys import generator
from ablate.model.parameters import build, named_parameters, root_site
from ablate.registry import Registry
from ablate.slots import IGNORED, Initializer
from ablate_plugins.initializer import LecunNormal, Normal, Xavier
from ablate_plugins.model.decoder import Decoder
from ablate_plugins.optimizer import AdamW
from ablate_plugins.task.recall import Mqar
from tests.ablate_plugins.task.judging import judged

pytestmark = pytest.mark.slow
ATTENTION = {"kind": "attention", "heads": 1}
CONVOLUTION = {"kind": "convolution", "kernel": 3}
TWICE: dict[str, Any] = {"depth": 2, "mixer": ATTENTION}
MIXED: dict[str, Any] = {**TWICE, "layers": [{"range": [0, 1], "mixer": CONVOLUTION}]}
SMALL = Normal(std=0.02)


@cache
def _registry() -> Registry:
    return Registry.installed()


def accuracy(
    layers: dict[str, Any], steps: int, *, lr: float = 3e-3, initializer: Initializer | None = None, seed: int = 0
) -> float:
    """The share of right answers after so many steps, each of 64 sequences of 32 tokens, 4 pairs and 64 in all."""
    options = {"kind": "decoder", "width": 64, "feed_forward": "none", "position": "sinusoidal", **layers}
    model = Decoder.model_validate(options, context={"registry": _registry()})
    task = Mqar(samples=512)
    data = task.load(".")
    network = build(model, root_site(data.interface), stream=(seed, "init"), initializer=initializer or LecunNormal())
    optimizer = AdamW(lr=lr).build(list(named_parameters(network)))
    for step in range(steps):
        batch = data.batch(64, generator(seed, "data", step))
        logits = network(*batch.inputs)
        loss = cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    network.eval()
    with torch.no_grad():
        return judged(task, data, network)["val/accuracy"]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("layers", [TWICE, MIXED], ids=["attention twice", "convolution then attention"])
def test_two_layers_that_find_what_came_before_recall_nearly_all(layers: dict[str, Any], seed: int) -> None:
    assert accuracy(layers, 600, seed=seed) >= 0.99


@pytest.mark.parametrize(
    "layers", [{"depth": 1, "mixer": ATTENTION}, {"depth": 1, "mixer": "gru"}], ids=["attention once", "recurrent once"]
)
def test_one_layer_knows_no_more_than_which_values_are_there(layers: dict[str, Any]) -> None:
    # One of four values that the sequence has is right as often as `in_context_accuracy`, 0.25.
    assert 0.2 < accuracy(layers, 700) < 0.35


def test_two_convolutions_see_five_tokens_and_hardly_a_pair() -> None:
    assert accuracy({"depth": 2, "mixer": CONVOLUTION}, 700) < 0.15


def test_matrices_that_begin_small_do_not_find_it_in_that_time() -> None:
    assert accuracy(TWICE, 600, initializer=SMALL) < 0.35
    assert accuracy(TWICE, 600, lr=1e-3, initializer=SMALL) < 0.35


def test_at_a_third_of_the_rate_it_takes_longer() -> None:
    assert accuracy(TWICE, 250) >= 0.99
    assert accuracy(TWICE, 250, lr=1e-3) < 0.8


def test_from_narrower_matrices_the_rate_decides() -> None:
    assert accuracy(TWICE, 600, initializer=Xavier()) >= 0.99
    assert accuracy(TWICE, 600, initializer=Xavier(), lr=1e-3) < 0.7
