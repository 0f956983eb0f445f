"""GRU and LSTM against torch's own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.flop_counter import FlopCounterMode

from ablate.slots import Given, ImpossibleError, Mixer, place
from ablate_plugins.mixer.recurrent import GRU, LSTM
from tests.ablate_plugins.mixer import promises
from tests.ablate_plugins.mixer.promises import ACROSS, AT, BOTH_WAYS, built, stream

LAYERS: list[tuple[type[GRU] | type[LSTM], type[nn.GRU] | type[nn.LSTM]]] = [(GRU, nn.GRU), (LSTM, nn.LSTM)]
KINDS: list[Mixer] = [GRU(), LSTM(), GRU(width=5, bias=False), LSTM(width=13)]
TWO_WAY: list[Mixer] = [GRU(bidirectional=True), LSTM(bidirectional=True, width=5)]


def silenced(module: nn.Module) -> nn.Module:
    """The same with an output map that changes nothing."""
    with torch.no_grad():
        module.get_parameter("o.weight").copy_(torch.eye(*module.get_parameter("o.weight").shape))
        module.get_parameter("o.bias").zero_()
    return module


@pytest.mark.parametrize(("mixer", "layer"), LAYERS)
def test_it_equals_torchs_layer(mixer: type[GRU] | type[LSTM], layer: type[nn.GRU] | type[nn.LSTM]) -> None:
    reference = layer(8, 8, batch_first=True).double()
    module = silenced(built(mixer()))
    module.get_submodule("recurrent").load_state_dict(reference.state_dict())
    torch.testing.assert_close(module(stream(), Given()), reference(stream())[0], atol=1e-12, rtol=0)


@pytest.mark.parametrize(("mixer", "layer"), LAYERS)
def test_two_ways_it_equals_torchs_packed_layer(
    mixer: type[GRU] | type[LSTM], layer: type[nn.GRU] | type[nn.LSTM]
) -> None:
    reference = layer(8, 4, batch_first=True, bidirectional=True).double()
    module = silenced(built(mixer(width=4, bidirectional=True), BOTH_WAYS))
    weights = reference.state_dict()
    module.get_submodule("recurrent").load_state_dict({n: w for n, w in weights.items() if not n.endswith("reverse")})
    module.get_submodule("backwards").load_state_dict(
        {name.removesuffix("_reverse"): weight for name, weight in weights.items() if name.endswith("_reverse")}
    )
    torch.testing.assert_close(module(stream(), Given()), reference(stream())[0], atol=1e-12, rtol=0)

    lengths = torch.tensor([11, 6, 1])
    valid = torch.arange(11) < lengths.unsqueeze(-1)
    packed, _ = reference(pack_padded_sequence(stream(), lengths, batch_first=True))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    torch.testing.assert_close(module(stream(), Given(valid=valid))[valid], expected[valid], atol=1e-12, rtol=0)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def filled(mixer: Mixer, weight: float) -> list[float]:
    """Its states on the stream 1, 1, of one value, where every weight is this and no bias is."""
    module = place(mixer, replace(AT, width=1))
    for parameter in module.parameters():
        nn.init.constant_(parameter, weight)
    with torch.no_grad():
        states: Tensor = module.get_submodule("recurrent")(torch.ones(1, 2, 1))[0]
    return states.flatten().tolist()


def test_a_gru_by_hand() -> None:
    z = sigmoid(1)
    first = (1 - z) * math.tanh(1)
    r = z = sigmoid(1 + first)
    second = (1 - z) * math.tanh(1 + r * first) + z * first
    assert filled(GRU(bias=False), 1.0) == pytest.approx([first, second], abs=1e-6)


def test_an_lstm_by_hand() -> None:
    i = o = sigmoid(1)
    cell = i * math.tanh(1)
    first = o * math.tanh(cell)
    f = i = o = sigmoid(1 + first)
    second = o * math.tanh(f * cell + i * math.tanh(1 + first))
    assert filled(LSTM(bias=False), 1.0) == pytest.approx([first, second], abs=1e-6)


@pytest.mark.parametrize("mixer", KINDS)
def test_it_keeps_what_every_mixer_promises(mixer: Mixer) -> None:
    module = built(mixer)
    promises.no_output_depends_on_a_later_token(module, stream())
    promises.padding_is_not_seen(module)
    promises.chunks_give_what_the_whole_gives(module)
    promises.a_cache_can_be_reordered(module)
    promises.every_gradient_is_finite_and_some_of_it_is_not_zero(module)
    promises.it_runs_without_values_and_in_bfloat16(mixer)
    assert mixer.traits().causal and mixer.traits().cached


@pytest.mark.parametrize("mixer", TWO_WAY)
def test_two_ways_it_keeps_what_it_can(mixer: Mixer) -> None:
    module = built(mixer, BOTH_WAYS)
    promises.the_first_output_depends_on_the_last_token(module, stream())
    promises.padding_is_not_seen(module)
    promises.a_cache_changes_nothing_where_later_tokens_are_seen(module)
    promises.every_gradient_is_finite_and_some_of_it_is_not_zero(module)
    promises.it_runs_without_values_and_in_bfloat16(mixer, BOTH_WAYS)
    assert not mixer.traits().causal and not mixer.traits().cached


@pytest.mark.parametrize("mixer", [GRU(), LSTM()])
def test_torch_neither_batches_nor_compiles_it_as_declared(mixer: Mixer) -> None:
    assert not mixer.traits().vmap and not mixer.traits().compiles
    with pytest.raises(RuntimeError, match="Batching rule not implemented"):
        promises.many_at_once_give_what_each_gives(mixer)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Dynamo does not support RNN, GRU, or LSTM"):
        promises.one_graph_gives_what_the_module_gives(built(mixer))


@pytest.mark.parametrize("mixer", [*KINDS, *TWO_WAY])
def test_it_declares_what_the_counter_finds_where_it_sees_every_product(mixer: Mixer) -> None:
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        place(mixer, BOTH_WAYS)(torch.empty(2, 5, 8), Given())
    assert mixer.flops(BOTH_WAYS, 2, 5) == counter.get_total_flops()


def test_an_lstms_products_by_hand() -> None:
    assert LSTM().flops(AT, 1, 1) == 2 * 4 * 8 * (8 + 8) + 2 * 8 * 8


@pytest.mark.parametrize("mixer", [GRU(bidirectional=True), LSTM(bidirectional=True)])
def test_impossible_sites_say_why(mixer: Any) -> None:
    reason = f"^a bidirectional `{mixer.kind}` reads later tokens, which a causal site forbids$"
    with pytest.raises(ImpossibleError, match=reason):
        mixer.build(AT)
    with pytest.raises(ImpossibleError, match=f"^`{mixer.kind}` cannot read another sequence$"):
        mixer.build(ACROSS)
