"""The encoder-decoder Transformer: depths, tables, overrides in both stacks, and what it declares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from ablate.experiment.identity import digest
from ablate.model.parameters import build, build_shape, named_parameters, root_site
from ablate.slots import ImpossibleError
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.mixer import Attention
from ablate_plugins.mixer.recurrent import GRU
from ablate_plugins.model.encoder_decoder import EncoderDecoder
from ablate_plugins.model.layers import LayerOverride
from ablate_plugins.norm import BatchNorm
from tests.ablate.experiment.maker import problems, write
from tests.ablate.model.drawn import PAIRS, model, network
from tests.ablate_plugins.model import promises

ALIKE = replace(PAIRS, source_vocabulary=11)
"""A task whose source and target have the same tokens."""


def made(**options: Any) -> Any:
    return model(kind="encoder_decoder", **options)


def sizes(each: Any, task: Any = PAIRS) -> dict[str, tuple[int, ...]]:
    return {parameter.name: parameter.shape for parameter, _ in named_parameters(network(each, task))}


MODELS = [
    made(),
    made(depth=1, encoder_depth=3, output="tied", placement="post", norm="rms"),
    made(depth=3, encoder_depth=1, position="rotary", mixer={"kind": "attention", "kv_heads": 2}),
    made(parallel=True, position="alibi", residual="rezero"),
    made(
        encoder_layers=[{"range": [0, 1], "mixer": {"kind": "gru", "bidirectional": True}}],
        layers=[{"range": [1, 2], "mixer": "convolution"}],
    ),
]


@pytest.mark.parametrize("each", MODELS, ids=range(len(MODELS)))
def test_it_keeps_the_promises_of_its_form(each: Any) -> None:
    built = promises.built(each)
    promises.padding_is_not_seen(built)
    promises.a_source_without_tokens_gives_numbers(built)
    promises.no_output_depends_on_a_later_token(built)
    promises.chunks_give_what_the_whole_gives(built)
    promises.a_cache_can_be_reordered(built)
    promises.it_runs_without_values_and_in_bfloat16(each)


def test_every_parameter_learns_but_the_keys_biases() -> None:
    """A key's bias adds one number to all logits of a query, which the softmax takes no notice of."""
    built = promises.built(made(dropout=0.1)).train()
    built(*promises.inputs()).square().sum().backward()
    for parameter, value in named_parameters(built):
        assert value.grad is not None and value.grad.isfinite().all(), parameter.name
        assert bool(value.grad.abs().max() < 1e-9) is parameter.name.endswith("k.bias"), parameter.name


@pytest.mark.parametrize(("depth", "encoder_depth"), [(1, 3), (3, 1), (2, None)])
def test_its_stacks_have_their_own_depths(depth: int, encoder_depth: int | None) -> None:
    built = network(made(depth=depth, encoder_depth=encoder_depth), PAIRS)
    assert (len(built.encoder.blocks), len(built.decoder.blocks)) == (encoder_depth or depth, depth)
    layers = {parameter.layer for parameter, _ in named_parameters(built)}
    assert layers == {None, *range((encoder_depth or depth) + depth)}


def test_its_parameters_have_logical_names_and_roles() -> None:
    found = {parameter.name: parameter.role for parameter, _ in named_parameters(network(made(), PAIRS))}
    assert {name: role for name, role in found.items() if ".block." not in name and not name.startswith("block.")} == {
        "encoder.embed.weight": "embed",
        "encoder.position.table": "position",
        "encoder.final_norm.weight": "norm",
        "encoder.final_norm.bias": "norm",
        "embed.weight": "embed",
        "position.table": "position",
        "final_norm.weight": "norm",
        "final_norm.bias": "norm",
        "head.weight": "head",
    }
    assert found["block.1.cross.k.weight"] == "k" and found["encoder.block.1.mixer.k.weight"] == "k"
    assert not [name for name in found if "cross" in name and name.startswith("encoder")]


def test_tables_are_as_large_as_each_sides_tokens_and_contexts() -> None:
    found = sizes(made())
    assert (found["encoder.embed.weight"], found["embed.weight"]) == ((7, 8), (11, 8))
    assert (found["encoder.position.table"], found["position.table"]) == ((8, 8), (9, 8))
    assert found["head.weight"] == (11, 8)


def test_one_table_may_be_shared_by_source_target_and_output_and_counts_once() -> None:
    apart, shared = sizes(made(), ALIKE), sizes(made(share_embeddings=True), ALIKE)
    assert apart.keys() - shared.keys() == {"encoder.embed.weight"}
    all_three = made(share_embeddings=True, output="tied")
    assert shared.keys() - sizes(all_three, ALIKE).keys() == {"head.weight"}
    built = network(all_three, ALIKE)
    assert built.encoder.embed is built.decoder.embed
    assert built.head.weight is built.decoder.embed.weight
    tables = [value for value in built.parameters() if value.shape == (11, 8)]
    assert len(tables) == 1
    built(*promises.inputs(ALIKE)).square().sum().backward()
    assert tables[0].grad is not None and tables[0].grad.abs().sum() > 0


def test_tables_of_different_tokens_cannot_be_shared() -> None:
    message = "^embeddings cannot be shared: the source has 7 tokens, the target 11$"
    with pytest.raises(ImpossibleError, match=message):
        network(made(share_embeddings=True), PAIRS)


@pytest.mark.parametrize("cross", ["convolution", "gru", "linear_attention", "mean_pooling"])
def test_what_reads_one_sequence_alone_cannot_be_across(cross: str) -> None:
    with pytest.raises(ImpossibleError, match=f"^mixer `{cross}` cannot read another sequence$"):
        network(made(cross=cross), PAIRS)


def test_what_reads_backwards_is_for_the_encoder_alone() -> None:
    both_ways = {"kind": "gru", "bidirectional": True}
    with pytest.raises(ImpossibleError, match="a bidirectional `gru` reads later tokens, which a causal site forbids"):
        network(made(mixer=both_ways), PAIRS)
    only = made(encoder_layers=[{"range": [0, 2], "mixer": both_ways}])
    network(only, PAIRS)
    assert only.traits().causal


def test_what_it_declares_is_what_its_parts_are() -> None:
    assert made().traits() == model(kind="decoder").traits()
    assert (made().traits().causal, made().traits().cached) == (True, True)
    assert EncoderDecoder(cross=Attention(causal=False)).traits().causal
    assert not EncoderDecoder(mixer=Attention(causal=False)).traits().causal
    encoder = [LayerOverride(range=[0, 1], norm=BatchNorm())]
    leaking = EncoderDecoder(encoder_layers=encoder).traits()
    assert (leaking.causal, leaking.batch_dependent) == (True, True)
    assert not EncoderDecoder(encoder_layers=[LayerOverride(range=[0, 1], mixer=GRU())]).traits().vmap
    assert EncoderDecoder.forms == {"sequence_to_sequence"}


def test_its_shape_alone_has_the_same_parameters() -> None:
    shared = made(depth=3, encoder_depth=1, share_embeddings=True, output="tied")
    shape: Any = build_shape(shared, root_site(ALIKE))
    assert {name: value.shape for name, value in shape.named_parameters()} == {
        name: value.shape for name, value in network(shared, ALIKE).named_parameters()
    }


# --- overrides, and models that are spelled in several ways ---


def initial(each: Any) -> nn.Module:
    return build(each, root_site(PAIRS), stream=(0,), initializer=LecunNormal())


NOTHING: dict[str, Any] = {"mixer": "none", "feed_forward": "none"}
SPELLINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"encoder_depth": 2}),
    ({"placement": "post"}, {s: [{"range": [0, 2], "placement": "post"}] for s in ("layers", "encoder_layers")}),
    (
        {"mixer": "gru", "encoder_layers": [{"range": [0, 2], "mixer": "attention"}]},
        {"layers": [{"range": [0, 2], "mixer": "gru"}]},
    ),
    ({"norm": "none"}, {"norm": "none", "placement": "post"}),
    ({"parallel": True, "mixer": "none", "cross": "none"}, {"mixer": "none", "cross": "none"}),
    ({**NOTHING, "cross": "none", "residual": "layer_scale"}, {**NOTHING, "cross": "none"}),
    ({**NOTHING, "position": "rotary"}, {**NOTHING, "position": "none"}),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_what_computes_the_same_is_the_same_however_it_is_spelled(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert digest(made(**one)) == digest(made(**other))
    logits = [initial(made(**each))(*promises.inputs(PAIRS)) for each in (one, other)]
    assert torch.equal(*logits)


def test_what_differs_in_either_stack_or_across_differs_in_identity() -> None:
    models: list[dict[str, Any]] = [
        {},
        {"encoder_depth": 1},
        {"depth": 1, "encoder_depth": 2},
        {"encoder_layers": [{"range": [0, 1], "norm": "rms"}]},
        {"layers": [{"range": [0, 1], "norm": "rms"}]},
        {"share_embeddings": True},
        {"cross": "none"},
        {"cross": {"kind": "attention", "heads": 2}},
        {"mixer": "none"},
        {"mixer": "none", "parallel": True},  # what reads the encoder stands beside the feed-forward
        NOTHING,
        {**NOTHING, "placement": "post"},  # what reads the encoder is a sublayer of its own
        {**NOTHING, "residual": "none"},
    ]
    assert len({digest(made(**options)) for options in models}) == len(models)


@pytest.mark.parametrize(
    "options",
    [
        *[one for one, _ in SPELLINGS],
        {"mixer": "none", "parallel": True},
        {**NOTHING, "placement": "post"},
        {**NOTHING, "residual": "rezero"},
        {**NOTHING, "cross": "none", "residual": "rezero"},
        {"parallel": True, "mixer": "none", "encoder_layers": [{"range": [1, 2], "mixer": "gru"}]},
    ],
    ids=str,
)
def test_said_in_the_one_way_it_is_still_the_same_network(options: dict[str, Any]) -> None:
    each = made(**options)
    assert each.effective().effective() == each.effective()
    written, said = initial(each), initial(each.effective())
    assert list(dict(written.named_parameters())) == list(dict(said.named_parameters()))
    assert torch.equal(written(*promises.inputs(PAIRS)), said(*promises.inputs(PAIRS)))


def test_layers_that_do_not_fit_are_refused_at_their_place(tmp_path: Path) -> None:
    task = ("{kind: text, source: python-docs, context: 16}", "{kind: copy, length: 8}")
    kind = ("kind: decoder", "kind: encoder_decoder\n  encoder_depth: 3")
    wrong = "[{range: [0, 4], norm: rms}, {range: [0, 1], norm: layer}]"
    found = problems(write(tmp_path, task, kind, ("  mixer:", f"  encoder_layers: {wrong}\n  mixer:")))
    assert found == [
        "S103 10:28 `range: [0, 4]` ends at 4, and the encoder has 3 blocks | None",
        "S103 10:70 `norm` of block 0 is already set by `encoder_layers[0]` | None",
    ]
    found = problems(write(tmp_path, task, kind, ("  mixer:", "  layers: [{range: [0, 3], norm: rms}]\n  mixer:")))
    assert found == ["S103 10:20 `range: [0, 3]` ends at 3, and the decoder has 2 blocks | None"]
    found = problems(write(tmp_path, task, kind, ("  mixer:", "  encoder_layers: [{range: [0, 3]}]\n  mixer:")))
    assert [each.split(" an override")[0] for each in found] == ["S103 10:20"]


@pytest.mark.parametrize("wrong", [{"depth": 0}, {"encoder_depth": 0}, {"encoder_depth": 5000}, {"width": 0}])
def test_options_out_of_bounds_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        made(**wrong)
