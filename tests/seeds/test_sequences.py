"""Recurrent, convolutional and attending models on sequences of random symbols: what length and distance cost each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.functional import pad

from ablate.data.transduction import BEGIN, END
from ablate.model.generation import generate
from ablate_plugins.decoding import Beam, Greedy
from ablate_plugins.task import Text
from ablate_plugins.task.copying import Copy
from tests.seeds.training import judged, model, right, trained


def copied(length: int, training: dict[str, Any], **options: Any) -> float:
    """Share of the tokens right after training to copy ten symbols."""
    task = Copy(symbols=10, length=length)
    return judged(trained(model(width=64, **options), task, **training), task)["val/accuracy"]


def rnn(length: int, attention: str, training: dict[str, Any]) -> float:
    return copied(length, training, kind="rnn_seq2seq", attention=attention)


def test_one_fixed_vector_cannot_hold_sixteen_symbols_and_attention_can_after_the_same_training() -> None:
    training = {"steps": 120, "lr": 6e-3, "batch": 64}
    assert rnn(16, "none", training) < 0.6
    assert rnn(16, "luong", training) > 0.95


@pytest.mark.slow
def test_the_fixed_vector_loses_accuracy_as_sequences_grow_and_attention_does_not() -> None:
    found = {
        attention: [rnn(length, attention, {"steps": 400}) for length in (4, 8, 16)]
        for attention in ("none", "bahdanau", "luong")
    }
    four, eight, sixteen = found.pop("none")
    assert four > 0.95
    assert 0.7 < eight < 0.9
    assert sixteen < 0.6
    for accuracies in found.values():
        assert min(accuracies) > 0.95
    transformer = [copied(length, {"steps": 100}, kind="encoder_decoder", depth=1) for length in (4, 8, 16)]
    assert min(transformer) > 0.95


REVERSED = Copy(symbols=10, length=12, reverse=True)
DEPTH, KERNEL = 2, 3


def accuracy_by_distance(steps: int, **options: Any) -> dict[int, float]:
    """Share right, by how far behind (or, below 0, ahead) the symbol to be written stands in the source."""
    network = trained(model(width=48, **options), REVERSED, steps=steps, lr=6e-3)
    shares = right(network, REVERSED)[0][:, :12].float().mean(0).tolist()
    return {place - (11 - place): share for place, share in enumerate(shares)}


def test_convolutions_write_backwards_only_what_is_in_their_receptive_field() -> None:
    convolutions = {"kind": "conv_seq2seq", "depth": DEPTH, "kernel": KERNEL}
    found = accuracy_by_distance(100, attention=False, **convolutions)
    back = (DEPTH - 1) * (KERNEL - 1) + DEPTH * (KERNEL // 2)  # of the decoder below its top, and of the encoder
    ahead = DEPTH * (KERNEL // 2)
    for distance, share in found.items():
        if -ahead <= distance <= back:
            assert share > 0.95, distance
        else:
            assert share < 0.2, distance  # a guess among ten
    assert min(accuracy_by_distance(60, **convolutions).values()) > 0.95  # the same with attention


@pytest.mark.slow
def test_depth_widens_what_convolutions_see_and_attention_needs_none() -> None:
    def seen(depth: int) -> int:
        options = {"kind": "conv_seq2seq", "depth": depth, "attention": False}
        return sum(share > 0.95 for share in accuracy_by_distance(300, **options).values())

    assert [seen(1), seen(2)] == [2, 3]
    assert 3 < seen(4) <= 7  # of the seven in its field, the outermost take longest to learn
    assert min(accuracy_by_distance(60, kind="encoder_decoder", depth=1).values()) > 0.95


def test_a_trained_transformer_writes_what_it_was_taught_and_no_beam_scores_lower_than_greedy() -> None:
    task = Copy(symbols=10, length=8, samples=64)
    (batch,) = task.load(".").evaluation(64)
    source, valid, _ = batch.inputs
    begin, exact = torch.full((64, 1), BEGIN), {}
    for steps in (15, 80):  # half taught, and taught
        network = trained(model(kind="encoder_decoder", width=48, depth=1), task, steps=steps, lr=5e-3)
        greedy, beam = (
            generate(network, (source, valid), decoding=each, most=9, end=END, prompt=begin)
            for each in (Greedy(), Beam(width=4, length_penalty=0.0))
        )
        assert (beam.scores >= greedy.scores - 1e-4).all()
        written = pad(greedy.tokens, (0, 9 - greedy.tokens.shape[1]), value=END)[:, :8]
        exact[steps] = float((written == source).all(-1).float().mean())
        if steps == 15:
            assert (beam.scores > greedy.scores + 1e-3).any()
    assert exact[80] > 0.9 > exact[15]


@pytest.mark.slow
def test_a_wider_feed_forward_network_reaches_a_lower_loss() -> None:
    task = Text(source="python-docs", context=32, windows=64)

    def loss(inner: int) -> float:
        feed_forward = {"kind": "mlp", "width": inner, "activation": "relu"}
        mixer = {"kind": "attention", "heads": 2}
        made = model(kind="decoder", width=32, depth=2, mixer=mixer, feed_forward=feed_forward)
        return judged(trained(made, task, steps=400, batch=16), task)["val/loss"]

    narrow, middle, wide = (loss(inner) for inner in (4, 64, 512))
    assert narrow > middle > wide
