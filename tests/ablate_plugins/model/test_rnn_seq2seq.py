"""The recurrent sequence-to-sequence model against torch's layers and the papers' formulas."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch._dynamo.exc import Unsupported
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ablate.model.parameters import named_parameters, root_site
from ablate.slots import ImpossibleError, Interface
from ablate_plugins.model.rnn_seq2seq import RnnSeq2Seq
from ablate_plugins.output import TiedOutput
from tests.ablate_plugins.model import promises
from tests.ablate_plugins.model.promises import LENGTHS, TASK, built, inputs, same

MODELS = [
    RnnSeq2Seq(width=6),
    RnnSeq2Seq(width=6, cell="lstm", depth=2, bidirectional=True),
    RnnSeq2Seq(width=6, attention="bahdanau"),
    RnnSeq2Seq(width=6, attention="bahdanau", cell="lstm", depth=2, bidirectional=True),
    RnnSeq2Seq(width=6, attention="luong"),
    RnnSeq2Seq(width=6, attention="luong", cell="lstm", depth=2, bidirectional=True, output=TiedOutput()),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.attention}-{model.cell}")


def called(module: nn.Module, **logical: str) -> dict[str, Tensor]:
    """The parameters under logical paths, each by its own name."""
    found = {parameter.name: value for parameter, value in named_parameters(module)}
    return {name: found[path] for name, path in logical.items()}


@pytest.mark.parametrize(("cell", "layer"), [("gru", nn.GRU), ("lstm", nn.LSTM)])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_encoder_is_torchs_on_packed_sequences(cell: Any, layer: Any, bidirectional: bool) -> None:
    network = built(RnnSeq2Seq(width=6, depth=2, cell=cell, bidirectional=bidirectional, attention="luong"))
    reference = layer(6, 6, 2, batch_first=True, bidirectional=bidirectional).double()
    found = {parameter.name: value for parameter, value in named_parameters(network)}
    with torch.no_grad():
        for name, parameter in reference.named_parameters():
            kind, _, rest = name.partition("_l")  # weight_ih, 1_reverse
            way = "backward" if rest.endswith("_reverse") else "forward"
            parameter.copy_(found[f"encoder.layer.{rest[0]}.{way}.recurrent.{kind}_l0"])
    source, valid, _ = inputs()
    packed = pack_padded_sequence(
        network.encoder.embed(source), torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False
    )
    states, last = reference(packed)
    memory, ends = network.encoder(source, valid)
    same(memory, pad_packed_sequence(states, batch_first=True)[0])
    h = last[0] if cell == "lstm" else last
    same(ends, torch.cat([*h[-2:]] if bidirectional else [h[-1]], -1))


def gru(network: Any, inputs: int) -> nn.GRUCell:
    """The decoder's first layer as a cell."""
    cell = nn.GRUCell(inputs, 6).double()
    cell.load_state_dict({name[:-3]: value for name, value in network.layers[0].recurrent.state_dict().items()})
    return cell


def test_the_fixed_vector_starts_the_decoder_and_enters_with_every_token() -> None:
    network = built(RnnSeq2Seq(width=6))
    source, valid, tokens = inputs()
    _, context = network.encoder(source, valid)
    cell, state = gru(network, 12), torch.tanh(network.start(context))
    logits = network(source, valid, tokens)
    for place in range(9):
        state = cell(torch.cat([network.embed(tokens[:, place]), context], -1), state)
        same(logits[:, place], network.head(state))


@pytest.mark.parametrize(("cell", "parts"), [("gru", 1), ("lstm", 2)])
def test_without_attention_all_that_is_known_of_the_source_has_the_size_of_one_state(cell: Any, parts: int) -> None:
    network = built(RnnSeq2Seq(width=6, depth=2, cell=cell))
    source, valid, tokens = inputs()
    cache = network.begin(source, valid)
    assert [state.shape for state in cache.states["source"]] == [(3, 6)]
    assert [state.shape for state in cache.states["decoder"]] == [(3, 6)] * 2 * parts
    # And the first states are of that vector alone: with it, nothing of another source is left.
    other = network.begin(source.flip(0), valid)
    context = cache.states["source"][0]
    other.states["source"] = (context,)
    other.states["decoder"] = tuple(torch.tanh(network.start(context)).chunk(2 * parts, -1))
    same(network.decode(tokens, other), network(source, valid, tokens))


def test_bahdanau_looks_by_the_previous_state_and_feeds_the_cell() -> None:
    network = built(RnnSeq2Seq(width=6, attention="bahdanau", bidirectional=True))
    source, valid, tokens = inputs()
    memory, last = network.encoder(source, valid)
    logits = network(source, valid, tokens)
    w, u, v = called(network, w="attention.q.weight", u="attention.k.weight", v="attention.score.weight").values()
    cell = gru(network, 18)
    for row, length in enumerate(LENGTHS):
        state = torch.tanh(network.start(last[row]))
        for place in range(9):
            energies = [v[0] @ torch.tanh(w @ state + u @ memory[row, j]) for j in range(length)]
            weights = torch.stack(energies).softmax(0)
            context = sum((weights[j] * memory[row, j] for j in range(length)), torch.zeros(12))
            state = cell(torch.cat([network.embed(tokens[row, place]), context])[None], state[None])[0]
            same(logits[row, place], network.head(state))


def test_luong_looks_by_the_current_state_and_joins_what_it_finds() -> None:
    network = built(RnnSeq2Seq(width=6, attention="luong"))
    source, valid, tokens = inputs()
    memory, last = network.encoder(source, valid)
    logits = network(source, valid, tokens)
    w, c = called(network, w="attention.k.weight", c="attention.combine.weight").values()
    cell = gru(network, 6)
    for row, length in enumerate(LENGTHS):
        state = torch.tanh(network.start(last[row]))
        for place in range(9):
            state = cell(network.embed(tokens[row, place])[None], state[None])[0]
            weights = torch.stack([state @ w @ memory[row, j] for j in range(length)]).softmax(0)
            context = sum((weights[j] * memory[row, j] for j in range(length)), torch.zeros(6))
            same(logits[row, place], network.head(torch.tanh(c @ torch.cat([context, state]))))


@every_model
def test_it_keeps_the_promises_of_its_form(model: RnnSeq2Seq) -> None:
    network = built(model)
    promises.padding_is_not_seen(network)
    promises.a_source_without_tokens_gives_numbers(network)
    promises.no_output_depends_on_a_later_token(network)
    promises.chunks_give_what_the_whole_gives(network)
    promises.a_cache_can_be_reordered(network)
    promises.every_gradient_is_finite_and_some_of_it_is_not_zero(network)
    promises.it_runs_without_values_and_in_bfloat16(model)


def test_dropout_is_on_embeddings_and_between_layers_alone() -> None:
    def sites(depth: int) -> set[str]:
        network = built(RnnSeq2Seq(width=6, depth=depth, bidirectional=True, dropout=0.5))
        return {module.path for module in network.modules() if hasattr(module, "path")}

    embeddings = {"dropout", "encoder.dropout"}
    between = {"decoder.layer.1.dropout", "encoder.layer.1.forward.dropout", "encoder.layer.1.backward.dropout"}
    assert sites(1) == embeddings
    assert sites(2) == embeddings | between


def test_its_parameters_have_logical_names_roles_and_layers() -> None:
    network = built(RnnSeq2Seq(width=6, depth=2, attention="luong"))
    found = {parameter.name: (parameter.role, parameter.layer) for parameter, _ in named_parameters(network)}
    assert found["embed.weight"] == found["encoder.embed.weight"] == ("embed", None)
    assert found["encoder.layer.1.forward.recurrent.bias_hh_l0"] == ("recurrent", 1)
    assert found["decoder.layer.1.recurrent.weight_ih_l0"] == ("recurrent", 3)
    assert found["attention.k.weight"] == ("k", None)
    assert found["head.weight"] == ("head", None)


def test_what_it_declares_is_so() -> None:
    network = built(MODELS[0])
    traits = MODELS[0].traits()
    assert (traits.cached, traits.vmap, traits.compiles) == (True, False, False)
    source, valid, tokens = inputs()
    with pytest.raises(RuntimeError, match="Batching rule not implemented"):
        torch.func.vmap(lambda text: network(source, valid, text))(tokens[None])
    compiled: Any = torch.compile(network, fullgraph=True, backend="eager")
    with pytest.raises(Unsupported):
        compiled(source, valid, tokens)


def test_it_needs_a_source() -> None:
    with pytest.raises(ImpossibleError) as error:
        RnnSeq2Seq().build(root_site(Interface(context=8, vocabulary=5)))
    assert str(error.value) == "an `rnn_seq2seq` needs a task that has a source and a target"
    for wrong in ({"depth": 0}, {"width": 0}, {"dropout": 1.0}, {"attention": "dot"}, {"cell": "rnn"}):
        with pytest.raises(ValidationError):
            RnnSeq2Seq.model_validate(wrong)
    assert RnnSeq2Seq.forms == {TASK.form}


@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
def test_with_attention_it_learns_to_copy(attention: Any) -> None:
    model = RnnSeq2Seq(width=64, attention=attention)
    assert promises.accuracy_after_copying(model, length=6, steps=150) > 0.9
