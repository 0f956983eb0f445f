"""Mean pooling, and no mixer at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from ablate.slots import Cache, Given, ImpossibleError, Site, Traits, place
from ablate_plugins.mixer.pooling import MeanPooling, NoMixer
from tests.ablate_plugins.mixer import promises
from tests.ablate_plugins.mixer.promises import ACROSS, AT, BOTH_WAYS, built, by_chunks, stream


def averaging(*, causal: bool) -> nn.Module:
    """Mean pooling of one value, whose maps change nothing."""
    module = place(MeanPooling(bias=False), replace(AT, width=1, causal=causal))
    for parameter in module.parameters():
        nn.init.ones_(parameter)
    return module


def test_means_by_hand() -> None:
    x = torch.tensor([[[1.0], [3.0], [8.0]], [[2.0], [4.0], [99.0]]])
    valid = torch.tensor([[True, True, True], [True, True, False]])
    so_far = averaging(causal=True)(x, Given(valid=valid))[..., 0]
    assert so_far[0].tolist() == [1, 2, 4] and so_far[1, :2].tolist() == [2, 3]
    of_all = averaging(causal=False)(x, Given(valid=valid))[..., 0]
    assert of_all[0].tolist() == [4, 4, 4] and of_all[1, :2].tolist() == [3, 3]


def test_the_maps_stand_around_the_mean() -> None:
    module, x = built(MeanPooling(), BOTH_WAYS), stream()
    v, o = module.get_submodule("v"), module.get_submodule("o")
    torch.testing.assert_close(module(x, Given())[:, 4], o(v(x).mean(1)), atol=1e-12, rtol=0)
    assert sum(parameter.numel() for parameter in module.parameters()) == 2 * (64 + 8)


def test_a_sequence_without_a_token_has_the_mean_zero() -> None:
    out = averaging(causal=False)(torch.ones(1, 2, 1), Given(valid=torch.zeros(1, 2, dtype=torch.bool)))
    assert out.flatten().tolist() == [0, 0]


def test_a_text_that_is_read_on_after_padding_counts_its_tokens_alone() -> None:
    module, cache = averaging(causal=True), Cache()
    valid = torch.tensor([[True, False]])
    module(torch.tensor([[[2.0], [99.0]]]), Given(valid=valid, cache=cache))
    assert module(torch.tensor([[[4.0]]]), Given(cache=cache)).item() == 3


def test_it_keeps_what_every_mixer_promises() -> None:
    mixer = MeanPooling()
    module = built(mixer)
    promises.no_output_depends_on_a_later_token(module, stream())
    promises.chunks_give_what_the_whole_gives(module)
    promises.a_cache_can_be_reordered(module)
    for at in (AT, BOTH_WAYS):
        promises.padding_is_not_seen(built(mixer, at))
        promises.every_gradient_is_finite_and_some_of_it_is_not_zero(built(mixer, at))
        promises.many_at_once_give_what_each_gives(mixer, at)
        promises.it_runs_without_values_and_in_bfloat16(mixer, at)
    promises.the_first_output_depends_on_the_last_token(built(mixer, BOTH_WAYS), stream())
    promises.a_cache_changes_nothing_where_later_tokens_are_seen(built(mixer, BOTH_WAYS))


@pytest.mark.parametrize("at", [AT, BOTH_WAYS])
def test_it_compiles_as_one_graph(at: Site) -> None:
    promises.one_graph_gives_what_the_module_gives(built(MeanPooling(), at))


def test_it_cannot_read_another_sequence() -> None:
    with pytest.raises(ImpossibleError, match=r"^`mean_pooling` cannot read another sequence$"):
        MeanPooling().build(ACROSS)


def test_no_mixer_gives_zeros_and_needs_no_state() -> None:
    module, cache = built(NoMixer()), Cache()
    assert torch.equal(by_chunks(module, stream(), [4, 7], cache), torch.zeros(3, 11, 8, dtype=torch.float64))
    assert not cache.states and not list(module.parameters())
    assert NoMixer().traits() == Traits(position_wise=True, cached=True)
    assert MeanPooling().traits() == Traits(cached=True)
    assert NoMixer.neutral == NoMixer().kind == "none"
