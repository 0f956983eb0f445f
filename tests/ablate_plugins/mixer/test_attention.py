"""Attention against the formula, option by option, and what every mixer promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from ablate.model.dropout import dropouts, set_dropout
from ablate.slots import Cache, Given, ImpossibleError, Mixer, Site, place
from ablate_plugins.mixer import Attention
from ablate_plugins.position import AlibiPosition, RelativeBiasPosition, RotaryPosition
from ablate_plugins.scale import NoScale
from tests.ablate_plugins.mixer import promises
from tests.ablate_plugins.mixer.promises import ACROSS, AT, BOTH_WAYS, stream

OPTIONS: list[dict[str, Any]] = [
    {"heads": 2},
    {"heads": 4, "kv_heads": 2, "bias": False},
    {"heads": 4, "kv_heads": 1, "key_width": 3},
    {"heads": 2, "soft_cap": 0.5},
    {"heads": 1, "key_width": 2, "scale": NoScale()},
]
every_option = pytest.mark.parametrize("options", OPTIONS, ids=str)


def built(mixer: Mixer, at: Site = AT) -> Any:
    return promises.built(mixer, at)


def by_hand(module: Any, options: Attention, x: Tensor, keep: Tensor | None = None) -> Tensor:
    """Head by head, query by query, over the keys up to its own; ``keep`` multiplies the weights (B, H, T, T)."""
    heads = options.heads
    group = heads // (options.kv_heads or heads)
    width = 8 // heads
    key_width = options.key_width or width
    factor = 1.0 if options.scale == NoScale() else key_width**-0.5
    q, k, v = (map_(x) for map_ in (module.q, module.k, module.v))
    rows = []
    for b in range(len(x)):
        for t in range(x.shape[1]):
            mixed = []
            for h in range(heads):
                query = q[b, t, h * key_width : (h + 1) * key_width]
                pair = h // group
                keys = k[b, : t + 1, pair * key_width : (pair + 1) * key_width]
                values = v[b, : t + 1, pair * width : (pair + 1) * width]
                logits = keys @ query * factor
                if options.soft_cap is not None:
                    logits = options.soft_cap * torch.tanh(logits / options.soft_cap)
                weights = logits.exp() / logits.exp().sum()
                if keep is not None:
                    weights = weights * keep[b, h, t, : t + 1]
                mixed.append(weights @ values)
            rows.append(module.o(torch.cat(mixed)))
    return torch.stack(rows).view_as(x)


@every_option
def test_it_is_the_formula(options: dict[str, Any]) -> None:
    attention = Attention(**options)
    module, x = built(attention), stream()
    torch.testing.assert_close(module(x, Given()), by_hand(module, attention, x), atol=1e-12, rtol=0)


def test_dropped_weights_are_those_of_a_mask_keyed_by_place_and_step() -> None:
    attention = Attention(heads=2, dropout=0.4)
    module, x = built(attention).train(), stream()
    outputs = []
    for step in (7, 8, 7):
        set_dropout(dropouts(module), (3,), step)
        outputs.append(module(x, Given()))
    keep = module.attend.dropout(torch.ones(3, 2, 11, 11, dtype=torch.float64))
    assert keep.unique().tolist() == pytest.approx([0, 1 / 0.6])
    torch.testing.assert_close(outputs[0], by_hand(module, attention, x, keep), atol=1e-12, rtol=0)
    assert torch.equal(outputs[0], outputs[2])
    assert not torch.allclose(outputs[0], outputs[1])
    torch.testing.assert_close(module.eval()(x, Given()), by_hand(module, attention, x), atol=1e-12, rtol=0)


def test_a_cap_bounds_every_logit_and_a_large_one_changes_nothing() -> None:
    x = 30 * stream()
    capped, free, loose = (built(Attention(heads=2, soft_cap=cap)) for cap in (2.0, None, 1e9))
    q, k = (each(x).unflatten(-1, (2, 4)).transpose(1, 2) for each in (capped.q, capped.k))
    assert free.attend.logits(q, k).abs().max() > 100
    assert 1.9 < capped.attend.logits(q, k).abs().max() <= 2
    torch.testing.assert_close(loose(x, Given()), free(x, Given()), atol=1e-6, rtol=0)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch batches the fused kernel one by one
@every_option
def test_it_keeps_what_every_mixer_promises(options: dict[str, Any]) -> None:
    mixer = Attention(**options)
    promises.no_output_depends_on_a_later_token(built(mixer), stream())
    promises.the_first_output_depends_on_the_last_token(built(mixer, BOTH_WAYS), stream())
    promises.chunks_give_what_the_whole_gives(built(mixer))
    promises.a_cache_can_be_reordered(built(mixer))
    for at in (AT, BOTH_WAYS):
        promises.padding_is_not_seen(built(mixer, at))
        promises.it_runs_without_values_and_in_bfloat16(mixer, at)
        promises.many_at_once_give_what_each_gives(mixer, at)


def test_every_parameter_learns_but_the_keys_bias() -> None:
    """A key's bias adds one number to all logits of a query, which the softmax takes no notice of."""
    module = built(Attention(heads=2))
    module(stream(), Given()).square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all()
        assert (float(parameter.grad.abs().max()) < 1e-12) is (name == "k.bias"), name


def test_it_compiles_as_one_graph() -> None:
    module = built(Attention(heads=4, kv_heads=1))
    torch.compiler.reset()
    compiled: Any = torch.compile(module, fullgraph=True, backend="eager")
    for given in (Given(), Given(valid=torch.arange(11) < torch.tensor([[11], [6], [1]]))):
        torch.testing.assert_close(compiled(stream(), given), module(stream(), given), atol=1e-12, rtol=0)


@pytest.mark.parametrize("position", [RotaryPosition(), AlibiPosition(), RelativeBiasPosition()], ids=repr)
@pytest.mark.parametrize("soft_cap", [None, 1.0])
def test_positions_act_in_it_and_not_across_sequences(position: Any, soft_cap: float | None) -> None:
    def out(at: Any, **given: Any) -> Tensor:
        mixed: Tensor = built(Attention(heads=2, soft_cap=soft_cap), replace(at, position=position))(
            stream(), Given(**given)
        )
        return mixed

    attention, memory = Attention(heads=2, soft_cap=soft_cap), stream(seed=9)
    assert not torch.allclose(out(AT), built(attention)(stream(), Given()))
    promises.chunks_give_what_the_whole_gives(built(attention, replace(AT, position=position)))
    across = built(attention, ACROSS)(stream(), Given(memory=memory))
    assert torch.equal(out(ACROSS, memory=memory), across)


def test_across_it_reads_the_other_sequence_once_and_keeps_its_keys_and_values() -> None:
    module, x, memory = built(Attention(heads=2), ACROSS), stream(tokens=4), stream(tokens=9, seed=9)
    valid = torch.arange(9) < torch.tensor([[9], [4], [1]])
    whole = module(x, Given(memory=memory, memory_valid=valid))
    for row, length in enumerate((9, 4, 1)):
        one = module(x[row : row + 1], Given(memory=memory[row : row + 1, :length]))
        torch.testing.assert_close(whole[row : row + 1], one, atol=1e-12, rtol=0)
    cache = Cache()
    first = module(x[:, :1], Given(memory=memory, memory_valid=valid, cache=cache))
    kept = cache.states["block.0.mixer"]
    rest = module(x[:, 1:], Given(memory=memory, memory_valid=valid, cache=cache))
    torch.testing.assert_close(torch.cat([first, rest], 1), whole, atol=1e-12, rtol=0)
    assert cache.states["block.0.mixer"][0] is kept[0]
    cache.select(torch.tensor([2, 0]))
    chosen = module(x[[2, 0]], Given(memory=memory[[2, 0]], memory_valid=valid[[2, 0]], cache=cache))
    torch.testing.assert_close(chosen, whole[[2, 0]], atol=1e-12, rtol=0)
    with pytest.raises(ValueError, match=r"^cross-attention was given no memory to read$"):
        module(x, Given())


def test_a_sequence_without_tokens_gives_numbers_and_gradients() -> None:
    for options in ({"heads": 2}, {"heads": 2, "soft_cap": 1.0}):
        module = built(Attention(**options))
        out = module(stream(), Given(valid=torch.zeros(3, 11, dtype=torch.bool)))
        out.sum().backward()
        assert out.isfinite().all()
        assert all(parameter.grad.isfinite().all() for parameter in module.parameters())


def test_causal_false_sees_the_future_at_a_causal_site_and_declares_it() -> None:
    mixer = Attention(heads=2, causal=False)
    promises.the_first_output_depends_on_the_last_token(built(mixer), stream())
    promises.no_output_depends_on_a_later_token(built(Attention(heads=2, causal=True), BOTH_WAYS), stream())
    assert (mixer.traits().causal, mixer.traits().cached) == (False, False)
    assert [Attention(causal=c).traits().causal for c in (True, None)] == [True, True]


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, {"q": (8, 8), "k": (8, 8), "v": (8, 8), "o": (8, 8)}),
        ({"kv_heads": 2}, {"q": (8, 8), "k": (4, 8), "v": (4, 8), "o": (8, 8)}),
        ({"kv_heads": 1, "key_width": 5}, {"q": (20, 8), "k": (5, 8), "v": (2, 8), "o": (8, 8)}),
    ],
)
def test_its_parameters(options: dict[str, Any], sizes: dict[str, tuple[int, int]]) -> None:
    module = place(Attention(bias=False, **options), AT)
    assert {name: tuple(value.shape) for name, value in module.named_parameters()} == {
        f"{name}.weight": shape for name, shape in sizes.items()
    }


def test_the_fused_kernel_is_left_where_that_is_declared() -> None:
    for options in ({}, {"dropout": 0.1}, {"soft_cap": 30.0}, {"kv_heads": 1}):
        mixer = Attention.model_validate(options)
        assert built(mixer).attend.explicit is not mixer.traits().fused


def test_as_many_key_heads_as_heads_is_said_in_one_way() -> None:
    assert Attention(heads=4, kv_heads=4).effective() == Attention(heads=4)
    assert Attention(heads=4, kv_heads=2).effective() == Attention(heads=4, kv_heads=2)


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(ImpossibleError, match=r"^3 heads do not divide a width of 8$"):
        Attention(heads=3).build(AT)
    with pytest.raises(ValidationError, match="3 `kv_heads` do not divide 4 heads"):
        Attention(heads=4, kv_heads=3)
    wrong: list[dict[str, Any]] = [
        {"heads": 0}, {"kv_heads": 0}, {"key_width": 0}, {"soft_cap": 0.0}, {"dropout": 1.0}, {"dropout": -0.1}
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(ValidationError):
            Attention.model_validate(options)
