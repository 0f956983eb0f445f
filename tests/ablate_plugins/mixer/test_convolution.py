"""The convolution over time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ablate.slots import Given, ImpossibleError, Traits
from ablate_plugins.mixer.convolution import Convolution
from tests.ablate_plugins.mixer import promises
from tests.ablate_plugins.mixer.promises import ACROSS, AT, BOTH_WAYS, built, stream

KINDS: list[dict[str, Any]] = [
    {},
    {"kernel": 1},
    {"kernel": 4, "bias": False},
    {"kernel": 5, "depthwise": True},
    {"kernel": 20},
]


def weighing(weights: list[float], *, causal: bool = True) -> nn.Module:
    """A depthwise convolution of these weights, oldest first, whose maps change nothing."""
    module = built(Convolution(kernel=len(weights), depthwise=True, bias=False), AT if causal else BOTH_WAYS)
    with torch.no_grad():
        module.get_parameter("v.weight").copy_(torch.eye(8))
        module.get_parameter("o.weight").copy_(torch.eye(8))
        module.get_parameter("conv.weight").copy_(torch.tensor(weights).expand(8, 1, -1))
    return module


def count() -> Tensor:
    return torch.tensor([1.0, 2, 3, 4], dtype=torch.float64).view(1, 4, 1).expand(1, 4, 8)


@pytest.mark.parametrize(
    ("weights", "causal", "by_hand"),
    [
        ([100.0, 10.0, 1.0], True, [1.0, 12, 123, 234]),
        ([10.0, 1.0], True, [1.0, 12, 23, 34]),
        ([100.0, 10.0, 1.0], False, [12.0, 123, 234, 340]),
        ([10.0, 1.0], False, [1.0, 12, 23, 34]),
        ([1000.0, 100.0, 10.0, 1.0], False, [12.0, 123, 1234, 2340]),
    ],
)
def test_a_window_ends_with_its_token_or_is_around_it(weights: list[float], causal: bool, by_hand: list[float]) -> None:
    out = weighing(weights, causal=causal)(count(), Given())
    assert out[0, :, 3].tolist() == by_hand


def test_without_depthwise_every_channel_sees_every_other() -> None:
    x = stream()
    changed = x.clone()
    changed[:, :, 0] += 1
    for depthwise in (True, False):
        conv = built(Convolution(depthwise=depthwise)).get_submodule("conv")
        moved = (conv(changed.mT) - conv(x.mT)).abs().amax((0, 2)) > 1e-9
        assert moved.tolist() == [True] + [not depthwise] * 7


@pytest.mark.parametrize(("options", "size"), [({}, 8 * 8 * 3 + 72 + 8), ({"depthwise": True}, 8 * 3 + 8 + 2 * 72)])
def test_its_parameters(options: dict[str, Any], size: int) -> None:
    assert sum(parameter.numel() for parameter in built(Convolution(**options)).parameters()) == size


@pytest.mark.parametrize("options", KINDS)
def test_it_keeps_what_every_mixer_promises(options: dict[str, Any]) -> None:
    mixer = Convolution(**options)
    module = built(mixer)
    promises.no_output_depends_on_a_later_token(module, stream())
    promises.chunks_give_what_the_whole_gives(module)
    promises.a_cache_can_be_reordered(module)
    promises.a_cache_changes_nothing_where_later_tokens_are_seen(built(mixer, BOTH_WAYS))
    for at in (AT, BOTH_WAYS):
        promises.padding_is_not_seen(built(mixer, at))
        promises.every_gradient_is_finite_and_some_of_it_is_not_zero(built(mixer, at))
        promises.many_at_once_give_what_each_gives(mixer, at)
        promises.it_runs_without_values_and_in_bfloat16(mixer, at)


@pytest.mark.parametrize("at", [AT, BOTH_WAYS])
def test_it_compiles_as_one_graph(at: Any) -> None:
    promises.one_graph_gives_what_the_module_gives(built(Convolution(kernel=4), at))
    assert Convolution().traits() == Traits(cached=True)


def test_both_ways_it_sees_a_later_token_within_its_window_alone() -> None:
    promises.the_first_output_depends_on_the_last_token(built(Convolution(), BOTH_WAYS), stream(tokens=2))
    with pytest.raises(AssertionError):
        promises.the_first_output_depends_on_the_last_token(built(Convolution(), BOTH_WAYS), stream(tokens=3))


def test_a_depthwise_one_declares_what_the_counter_gets_wrong() -> None:
    assert Convolution(kernel=3).flops(AT, 2, 5) is None
    assert Convolution(kernel=3, depthwise=True).flops(AT, 2, 5) == 2 * 10 * (8 * 8 + 8 * 3 + 8 * 8)


def test_it_cannot_read_another_sequence() -> None:
    with pytest.raises(ImpossibleError, match=r"^`convolution` cannot read another sequence$"):
        Convolution().build(ACROSS)
