"""The encoder-only Transformer: its options, its parameters, what it declares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch.func import functional_call, vmap

from ablate.experiment.identity import digest
from ablate.model.parameters import build, build_shape, named_parameters, root_site
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.mixer import Attention
from ablate_plugins.model.encoder import Encoder
from ablate_plugins.norm import BatchNorm
from tests.ablate.model.drawn import LABELS, model, network, same, tokens, valid


def encoder(**options: Any) -> Any:
    return model(kind="encoder", **options)


def test_it_has_a_head_of_as_many_rows_as_there_are_labels_and_nothing_else_of_that_size() -> None:
    made = network(encoder(), LABELS)
    sizes = {parameter.name: parameter.shape for parameter, _ in named_parameters(made)}
    assert sizes["head.weight"] == (5, 8) and sizes["head.bias"] == (5,)
    assert sizes["embed.weight"] == (11, 8) and sizes["position.table"] == (12, 8)
    assert made(tokens(), valid()).shape == (3, 5)
    assert {parameter.role for parameter, _ in named_parameters(made)} == {
        "embed", "position", "norm", "q", "k", "v", "o", "w1", "w2", "head"
    }  # fmt: skip


def test_its_shape_alone_has_the_same_parameters() -> None:
    made: Any = build_shape(encoder(depth=3), root_site(LABELS))
    assert all(value.is_meta for value in made.parameters())
    real = network(encoder(depth=3), LABELS)
    assert list(dict(made.named_parameters())) == list(dict(real.named_parameters()))
    assert made(tokens().to("meta"), valid().to("meta")).shape == (3, 5)


def test_what_it_declares_is_what_its_parts_are() -> None:
    traits = encoder().traits()
    assert (traits.causal, traits.batch_dependent, traits.attends) == (False, False, True)
    assert (traits.vmap, traits.compiles) == (True, True)
    assert (encoder(mixer="gru").traits().vmap, encoder(mixer="gru").traits().attends) == (False, False)
    assert encoder(layers=[{"range": [1, 2], "mixer": "lstm"}]).traits().compiles is False
    assert Encoder(norm=BatchNorm()).traits().batch_dependent is True
    assert encoder(dropout=0.1).traits().vmap is False
    assert Encoder.forms == {"classification"}


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch batches the fused kernel one by one
def test_many_at_once_give_what_each_gives() -> None:
    made = network(encoder(pooling="max"), LABELS)
    stacked = {name: torch.stack([value, value * 0.5]).detach() for name, value in made.named_parameters()}

    given = (tokens(), valid())

    def run(values: dict[str, Any]) -> Any:
        return functional_call(made, values, given)

    for row, found in enumerate(vmap(run)(stacked)):
        same(found, run({name: value[row] for name, value in stacked.items()}))


@pytest.mark.parametrize("options", [{}, {"pooling": "first"}, {"mixer": "gru"}], ids=str)
def test_every_gradient_is_finite_and_some_of_it_is_not_zero(options: dict[str, Any]) -> None:
    made = network(encoder(**options), LABELS).train()
    made(tokens(length=12), valid((12, 7, 1), 12)).square().sum().backward()
    unused = {"block.0.mixer.k.bias", "block.1.mixer.k.bias"}  # the softmax takes no notice of them
    for parameter, value in named_parameters(made):
        assert value.grad is not None and value.grad.isfinite().all(), parameter.name
        assert value.grad.abs().max() > 1e-12 or parameter.name in unused, parameter.name


def test_a_pooling_is_one_of_four() -> None:
    with pytest.raises(ValidationError, match="pooling"):
        encoder(pooling="middle")
    assert len({digest(encoder(pooling=pooling)) for pooling in ("mean", "max", "first", "last")}) == 4


def test_what_computes_the_same_is_the_same_however_it_is_spelled() -> None:
    one = encoder(placement="post", layers=[{"range": [0, 2], "mixer": "gru"}])
    other = encoder(placement="sandwich", mixer="gru", layers=[{"range": [0, 2], "placement": "post"}])
    assert digest(one) == digest(other) != digest(encoder(mixer="gru"))
    first, second = (
        build(each, root_site(LABELS), stream=(0,), initializer=LecunNormal())(tokens(), valid())
        for each in (one, other)
    )
    assert torch.equal(first, second)


def test_layers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValidationError) as caught:
        encoder(layers=[{"range": [1, 3], "norm": "rms"}])
    (error,) = caught.value.errors()
    assert (error["loc"], error["msg"]) == (
        ("layers", 0, "range"),
        "`range: [1, 3]` ends at 3, and the model has 2 blocks",
    )


def test_attention_in_it_sees_both_ways_unless_it_is_told_otherwise() -> None:
    ids, whole = tokens(), torch.ones(3, 8, dtype=torch.bool)
    changed = ids.clone()
    changed[:, -1] = (ids[:, -1] + 1) % 11
    for causal, moves in ((None, True), (False, True), (True, False)):
        made = network(Encoder(width=8, depth=2, pooling="first", mixer=Attention(heads=2, causal=causal)), LABELS)
        assert torch.allclose(made(ids, whole), made(changed, whole)) is not moves


def test_without_an_interface_it_has_as_many_labels_as_tokens() -> None:
    at = replace(root_site(LABELS), interface=None)
    assert encoder().build(at).head.out_features == 11


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_tokens_that_are_values_are_mapped_to_its_width(precision: torch.dtype) -> None:
    task = replace(LABELS, vocabulary=0, features=3)
    made: Any = build(encoder(), root_site(task), stream=(0,), initializer=LecunNormal()).to(precision)
    (embed,) = [(each, value) for each, value in named_parameters(made) if each.name == "embed.weight"]
    # It is a matrix that values pass through: drawn by its fan-in of 3, where a looked-up table's would be 1.
    assert (embed[0].role, embed[1].shape) == ("projection", (8, 3)) and embed[1].std() < 0.9
    values, whole = torch.randn(4, 6, 3, generator=torch.Generator().manual_seed(0)), torch.ones(4, 6, dtype=torch.bool)
    given: list[torch.Tensor] = []
    made.stack.position.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    logits = made(values, whole)
    assert logits.shape == (4, 5) and logits.dtype == precision
    by_hand = values.to(precision) @ embed[1].T + made.stack.embed.bias
    same(given[0], by_hand, atol=1e-6)
    with torch.autocast("cpu", torch.bfloat16):
        made.float()(values, whole)
    assert given[1].dtype == torch.float32  # the stream is no narrower than with a table
