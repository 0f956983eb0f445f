"""The convolutional sequence-to-sequence model against the paper's formulas, and its receptive field."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor
from torch.func import functional_call, vmap

from ablate.model.parameters import named_parameters, root_site
from ablate.slots import ImpossibleError, Interface
from ablate_plugins.model.conv_seq2seq import ConvSeq2Seq
from ablate_plugins.output import TiedOutput
from tests.ablate_plugins.model import promises
from tests.ablate_plugins.model.promises import LENGTHS, TASK, built, inputs, same

MODELS = [
    ConvSeq2Seq(width=6, depth=2),
    ConvSeq2Seq(width=6, depth=1, encoder_depth=3, kernel=4, output=TiedOutput()),
    ConvSeq2Seq(width=6, depth=2, kernel=1),
    ConvSeq2Seq(width=6, depth=3, encoder_depth=2, attention=False),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.attention}-{model.kernel}")


def glu(x: Tensor) -> Tensor:
    return x[:6] * torch.sigmoid(x[6:])


def convolved(block: Any, window: list[Tensor]) -> Tensor:
    kernel = block.convolution.kernel
    summed: Tensor = sum((kernel.weight[:, :, i] @ x for i, x in enumerate(window)), kernel.bias)
    return glu(summed)


@pytest.mark.parametrize("attention", [True, False])
def test_it_is_the_papers_formula(attention: bool) -> None:
    network = built(ConvSeq2Seq(width=6, depth=1, kernel=3, attention=attention))
    source, valid, tokens = inputs()
    logits = network(source, valid, tokens)
    half, nothing = 0.5**0.5, torch.zeros(6, dtype=torch.float64)
    (encoder,), (decoder,) = network.encoder, network.blocks
    for row, length in enumerate(LENGTHS):
        e = [network.reading.embed(source[row, j]) + network.reading.position.weight[j] for j in range(length)]
        around = [nothing, *e, nothing]
        z = [(convolved(encoder, around[j : j + 3]) + e[j]) * half for j in range(length)]
        g = [network.writing.embed(tokens[row, i]) + network.writing.position.weight[i] for i in range(9)]
        behind = [nothing, nothing, *g]
        for i in range(9):
            h = convolved(decoder, behind[i : i + 3])
            if attention:
                d = (decoder.attention.q(h) + g[i]) * 6**-0.5
                a = torch.stack([d @ z[j] for j in range(length)]).softmax(0)
                c = length**0.5 * sum((a[j] * (z[j] + e[j]) * half for j in range(length)), nothing)
            else:
                c = z[i] if i < length else nothing
            same(logits[row, i], network.head(((h + c) * half + g[i]) * half))


@pytest.mark.parametrize(("depth", "encoder_depth", "kernel"), [(1, 1, 3), (3, 1, 3), (2, 3, 2), (2, 1, 5), (3, 3, 1)])
def test_without_attention_the_source_is_known_within_the_receptive_field_and_not_outside(
    depth: int, encoder_depth: int, kernel: int
) -> None:
    task = Interface(form="sequence_to_sequence", context=16, vocabulary=7, source_context=16, source_vocabulary=6)
    model = ConvSeq2Seq(width=6, depth=depth, encoder_depth=encoder_depth, kernel=kernel, attention=False)
    network = built(model, task)
    source = torch.arange(16)[None] % 6
    valid, tokens = torch.ones_like(source, dtype=torch.bool), torch.arange(16)[None] % 7
    before = network(source, valid, tokens)
    back = (depth - 1) * (kernel - 1) + encoder_depth * ((kernel - 1) // 2)
    ahead = encoder_depth * (kernel // 2)
    for place in range(16):
        changed = source.clone()
        changed[:, place] = (changed[:, place] + 1) % 6
        moved = (network(changed, valid, tokens) - before)[0].abs().amax(-1)
        for output in range(16):
            assert bool(moved[output] > 1e-12) == (output - back <= place <= output + ahead), (output, place)


def test_with_attention_every_output_knows_every_token_of_the_source() -> None:
    network = built(ConvSeq2Seq(width=6, depth=1, kernel=1))
    source, _, tokens = inputs()
    valid = torch.ones_like(source, dtype=torch.bool)
    before = network(source, valid, tokens)
    for place in range(8):
        changed = source.clone()
        changed[:, place] = (changed[:, place] + 1) % 6
        assert ((network(changed, valid, tokens) - before).abs().amax(-1) > 1e-9).all()


@every_model
def test_it_keeps_the_promises_of_its_form(model: ConvSeq2Seq) -> None:
    network = built(model)
    promises.padding_is_not_seen(network)
    promises.a_source_without_tokens_gives_numbers(network)
    promises.no_output_depends_on_a_later_token(network)
    promises.chunks_give_what_the_whole_gives(network)
    promises.a_cache_can_be_reordered(network)
    promises.every_gradient_is_finite_and_some_of_it_is_not_zero(network)
    promises.it_runs_without_values_and_in_bfloat16(model)


@every_model
def test_it_runs_under_vmap_and_compile_as_declared(model: ConvSeq2Seq) -> None:
    network, given = built(model), inputs()
    traits = model.traits()
    assert (traits.cached, traits.vmap, traits.compiles) == (True, True, True)
    parameters = {name: torch.stack([value, value * 0.5]).detach() for name, value in network.named_parameters()}

    def run(values: dict[str, Tensor]) -> Tensor:
        logits: Tensor = functional_call(network, values, given)
        return logits

    both = vmap(run)(parameters)
    same(both[0], network(*given))
    same(both[1], run({name: value[1] for name, value in parameters.items()}))
    torch.compiler.reset()
    compiled: Any = torch.compile(network, fullgraph=True, backend="eager")
    same(compiled(*given), network(*given))


def test_its_parameters_have_logical_names_roles_and_layers() -> None:
    network = built(ConvSeq2Seq(width=6, depth=2, encoder_depth=3))
    found = {parameter.name: (parameter.role, parameter.layer) for parameter, _ in named_parameters(network)}
    assert found["embed.weight"] == found["encoder.embed.weight"] == ("embed", None)
    assert found["position.weight"] == found["encoder.position.weight"] == ("position", None)
    assert found["encoder.block.2.convolution.kernel.weight"] == ("kernel", 2)
    assert found["block.1.convolution.kernel.bias"] == ("kernel", 4)
    assert found["block.1.attention.q.weight"] == ("q", 4)
    blocks = [site for each in network.modules() if (site := getattr(each, "site", None)) and site.slot == "block"]
    assert [(site.stack, site.layer, site.block) for site in blocks] == [
        ("encoder", 0, 0), ("encoder", 1, 1), ("encoder", 2, 2), ("decoder", 0, 3), ("decoder", 1, 4)
    ]  # fmt: skip


def test_as_many_blocks_on_both_sides_are_said_in_one_way() -> None:
    assert ConvSeq2Seq(depth=3, encoder_depth=3).effective() == ConvSeq2Seq(depth=3)
    assert ConvSeq2Seq(depth=3, encoder_depth=2).effective() == ConvSeq2Seq(depth=3, encoder_depth=2)


def test_it_needs_a_source() -> None:
    with pytest.raises(ImpossibleError) as error:
        ConvSeq2Seq().build(root_site(Interface(context=8, vocabulary=5)))
    assert str(error.value) == "a `conv_seq2seq` needs a task that has a source and a target"
    for wrong in ({"depth": 0}, {"encoder_depth": 0}, {"width": 0}, {"kernel": 0}, {"dropout": 1.0}):
        with pytest.raises(ValidationError):
            ConvSeq2Seq.model_validate(wrong)
    assert ConvSeq2Seq.forms == {TASK.form}


def test_with_attention_it_learns_to_copy() -> None:
    model = ConvSeq2Seq(width=64, depth=2)
    assert promises.accuracy_after_copying(model, length=6, steps=60) > 0.9
