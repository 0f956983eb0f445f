"""Linear attention against its quadratic formula."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ablate.slots import Cache, Given, ImpossibleError, Site, Traits, place
from ablate_plugins.mixer.linear_attention import LinearAttention
from tests.ablate_plugins.mixer import promises
from tests.ablate_plugins.mixer.promises import ACROSS, AT, BOTH_WAYS, built, by_chunks, stream


def quadratic(module: nn.Module, x: Tensor, heads: int, *, causal: bool) -> Tensor:
    """The formula of Katharopoulos et al., equation 7, with every weight written out."""
    q, k, v = (module.get_submodule(name)(x).unflatten(-1, (heads, -1)).transpose(1, 2) for name in "qkv")
    weights = (F.elu(q) + 1) @ (F.elu(k) + 1).transpose(-2, -1)
    weights = weights.tril() if causal else weights
    mixed = (weights / weights.sum(-1, keepdim=True)) @ v
    out: Tensor = module.get_submodule("o")(mixed.transpose(1, 2).flatten(2))
    return out


@pytest.mark.parametrize("at", [AT, BOTH_WAYS])
@pytest.mark.parametrize("heads", [1, 4, 8])
@pytest.mark.parametrize("tokens", [1, 11, 64, 65, 200])
def test_it_equals_the_quadratic_formula(at: Site, heads: int, tokens: int) -> None:
    module = built(LinearAttention(heads=heads), at)
    x = stream(tokens=tokens)
    expected = quadratic(module, x, heads, causal=at.causal)
    torch.testing.assert_close(module(x, Given()), expected, atol=1e-12, rtol=1e-12)


def test_two_tokens_by_hand() -> None:
    at = replace(AT, width=1)
    module = place(LinearAttention(heads=1, bias=False), at).double()
    for parameter in module.parameters():
        nn.init.ones_(parameter)
    out = module(torch.tensor([[[1.0], [-1.0]]], dtype=torch.float64), Given())
    # Features are 2 and 1/e; the query's own cancels out of the second token's mean of 1 and -1.
    assert out.flatten().tolist() == pytest.approx([1.0, (2 - math.exp(-1)) / (2 + math.exp(-1))], abs=1e-15)


def test_the_state_has_one_size_whatever_the_length() -> None:
    module = built(LinearAttention(heads=2))
    sizes = set()
    for tokens in (1, 70, 200):
        cache = Cache()
        by_chunks(module, stream(tokens=tokens), [tokens], cache)
        sizes.add(tuple(state.shape for state in cache.states["block.0.mixer"]))
    assert sizes == {(torch.Size([3, 2, 4, 5]),)}, "keys by values, and the keys' sum beside them"


def test_weights_that_underflow_give_no_nan() -> None:
    module = built(LinearAttention()).float()
    with torch.no_grad():
        module.get_parameter("k.bias").fill_(-200)
    x = stream().float().requires_grad_()
    out = module(x, Given())
    out.sum().backward()
    assert out.isfinite().all() and x.grad is not None and x.grad.isfinite().all()


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_small_features_keep_their_precision(precision: torch.dtype) -> None:
    """Keys of -10 and -8: their features, 0.00005 and 0.0003, weigh the values 10 and 8 one to e squared."""
    module = place(LinearAttention(heads=1, bias=False), replace(AT, width=1)).to(precision)
    for name, weight in (("q", 1.0), ("k", -1.0), ("v", 1.0), ("o", 1.0)):
        nn.init.constant_(module.get_parameter(f"{name}.weight"), weight)
    out = module(torch.tensor([[[10.0], [8.0]]], dtype=precision), Given())[0, 1, 0]
    error = 1e-6 if precision == torch.float32 else 2**-8
    assert out.item() == pytest.approx((10 + 8 * math.exp(2)) / (1 + math.exp(2)), rel=error)


def test_it_keeps_what_every_mixer_promises() -> None:
    mixer = LinearAttention()
    module = built(mixer)
    promises.no_output_depends_on_a_later_token(module, stream())
    promises.chunks_give_what_the_whole_gives(module)
    promises.chunks_give_what_the_whole_gives(module, tokens=150)
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
    promises.one_graph_gives_what_the_module_gives(built(LinearAttention(), at))
    assert LinearAttention().traits() == Traits(cached=True)


def test_impossible_sites_say_why() -> None:
    with pytest.raises(ImpossibleError, match=r"^`linear_attention` cannot read another sequence$"):
        LinearAttention().build(ACROSS)
    with pytest.raises(ImpossibleError, match=r"^3 heads do not divide a width of 8$"):
        LinearAttention(heads=3).build(AT)
