"""What logits are scaled by."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from ablate.model.parameters import initialise
from ablate.slots import Scale, Site, place
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.scale import (
    CosineScale,
    InverseScale,
    InverseSqrtScale,
    LearnedScale,
    LogLengthScale,
    NoScale,
    QKNormScale,
)

AT = Site(path="block.0.mixer.scale", slot="scale", width=16, depth=1, context=32, layer=0, heads=4)
ALL = [
    InverseSqrtScale(),
    NoScale(),
    InverseScale(),
    LearnedScale(),
    CosineScale(),
    QKNormScale(),
    QKNormScale(norm="layer"),
    LogLengthScale(),
]


def ready(component: Scale, at: Site = AT) -> Any:
    module = place(component, at)
    initialise(module, LecunNormal(), (0,))
    return module


def heads(*shape: int, **options: Any) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randn(*shape, generator=generator, **options) for _ in range(2))
    return first, second


def logits(module: Any, q: Tensor, k: Tensor, start: int = 0) -> Tensor:
    q, k = module(q, k, start)
    return q @ k.transpose(-2, -1)


@pytest.mark.parametrize("width", [4, 64, 256])
@pytest.mark.parametrize(
    ("component", "variance"),
    [(NoScale(), lambda d: d), (InverseSqrtScale(), lambda d: 1), (InverseScale(), lambda d: 1 / d)],
    ids=["none", "inverse_sqrt", "inverse"],
)
def test_variance_of_logits_of_unit_queries_and_keys(component: Scale, variance: Any, width: int) -> None:
    q, k = heads(8, 4, 128, width, dtype=torch.float64)
    found = logits(component.build(replace(AT, width=width)), q, k)
    assert float(found.var()) == pytest.approx(variance(width), rel=0.05)


@pytest.mark.parametrize("component", [LearnedScale(), QKNormScale(), LogLengthScale()], ids=repr)
def test_the_root_of_the_width_is_in_it(component: Scale) -> None:
    q, k = heads(8, 4, 128, 64, dtype=torch.float64)
    at = replace(AT, width=64, causal=False)
    factor = math.log(128) if component == LogLengthScale() else 1.0
    assert logits(ready(component, at).double(), q, k).std().item() == pytest.approx(factor, rel=0.05)


def test_learned_starts_as_inverse_sqrt_and_its_gain_is_of_one_head_and_positive() -> None:
    module, (q, k) = ready(LearnedScale()), heads(2, 4, 8, 16)
    plain = logits(InverseSqrtScale().build(AT), q, k)
    torch.testing.assert_close(logits(module, q, k), plain)
    with torch.no_grad():
        module.log_gain[2] = -3.0
    ratio = (logits(module, q, k) / plain).mean((0, 2, 3))
    torch.testing.assert_close(ratio, torch.tensor([1.0, 1.0, math.exp(-3), 1.0]))


@pytest.mark.parametrize(("start", "gain"), [(None, math.log2(32**2 - 32)), (5.0, 5.0)])
def test_cosine_is_the_cosine_times_its_gain(start: float | None, gain: float) -> None:
    module, (q, k) = ready(CosineScale(start=start)), heads(2, 4, 8, 16)
    by_hand = gain * torch.nn.functional.cosine_similarity(q[..., :, None, :], k[..., None, :, :], dim=-1)
    torch.testing.assert_close(logits(module, q, k), by_hand)
    torch.testing.assert_close(logits(module, 100 * q, 0.01 * k), by_hand)
    logits(module, q, k).sum().backward()
    assert float(module.gain.grad) == pytest.approx(float(by_hand.sum().detach()) / gain, rel=1e-4)


def test_cosine_has_a_gain_for_a_context_of_one_token() -> None:
    assert CosineScale().build(replace(AT, context=1)).get_parameter("gain").item() == 1.0


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_qk_norm_bounds_the_logits_and_learns_a_gain_for_each_side(norm: str) -> None:
    module, (q, k) = ready(QKNormScale.model_validate({"norm": norm})), heads(2, 4, 8, 16)
    if norm == "layer":
        q, k = (x - x.mean(-1, keepdim=True) for x in (q, k))
    unit_q, unit_k = (x / x.square().mean(-1, keepdim=True).sqrt() for x in (q, k))
    by_hand = unit_q @ unit_k.transpose(-2, -1) / 4
    torch.testing.assert_close(logits(module, 50 * q + (norm == "layer"), k), by_hand, atol=1e-4, rtol=1e-4)
    assert float(by_hand.abs().max()) <= 4  # √d_k, by Cauchy and Schwarz
    assert {name: tuple(value.shape) for name, value in module.named_parameters()} == {
        "q_norm.weight": (16,),
        "k_norm.weight": (16,),
    }


def test_log_length_counts_the_keys_that_a_causal_query_may_see() -> None:
    q, k = heads(2, 4, 8, 16)
    scaled, same = LogLengthScale().build(AT)(q, k, 5)
    assert torch.equal(same, k)
    for index in range(8):
        torch.testing.assert_close(scaled[..., index, :], q[..., index, :] * math.log(5 + index + 1) / 4)
    assert torch.equal(LogLengthScale().build(AT)(q, k)[0][..., 0, :], torch.zeros(2, 4, 16))


@pytest.mark.parametrize("change", [{"causal": False}, {"causal": True, "cross": True}])
def test_log_length_counts_all_keys_elsewhere(change: Any) -> None:
    module, (q, _), (k, _) = LogLengthScale().build(replace(AT, **change)), heads(2, 4, 3, 16), heads(2, 4, 9, 16)
    torch.testing.assert_close(module(q, k, 2)[0], q * math.log(9) / 4)


@pytest.mark.parametrize("component", ALL, ids=repr)
def test_chunks_are_scaled_as_the_whole(component: Scale) -> None:
    module, (q, k) = ready(component), heads(2, 4, 8, 16)
    whole_q, whole_k = module(q, k)
    chunks = [module(q[..., a:b, :], k[..., a:b, :], a) for a, b in ((0, 3), (3, 4), (4, 8))]
    torch.testing.assert_close(torch.cat([chunk[0] for chunk in chunks], -2), whole_q)
    torch.testing.assert_close(torch.cat([chunk[1] for chunk in chunks], -2), whole_k)


@pytest.mark.parametrize("component", ALL, ids=repr)
def test_shapes_and_types_are_kept(component: Scale) -> None:
    module = ready(component)
    q, k = heads(2, 4, 8, 16)[0], heads(2, 2, 9, 16)[1]  # fewer key heads than heads, and more keys than queries
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        module = module.double() if dtype == torch.float64 else module
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            scaled = module(q.to(dtype), k.to(dtype))
        assert [(x.shape, x.dtype) for x in scaled] == [(q.shape, dtype), (k.shape, dtype)]
    with torch.device("meta"):
        scaled = component.build(AT)(torch.empty(2, 4, 8, 16), torch.empty(2, 4, 8, 16))
    assert [x.shape for x in scaled] == [(2, 4, 8, 16), (2, 4, 8, 16)]


@pytest.mark.parametrize("component", ALL, ids=repr)
def test_it_runs_as_is_declared(component: Scale) -> None:
    module, (q, k) = ready(component), heads(3, 2, 4, 8, 16)
    traits = component.traits()
    assert traits.needs_attention and traits.vmap and traits.compiles
    one_by_one = [torch.stack(parts) for parts in zip(*(module(*each) for each in zip(q, k, strict=True)), strict=True)]
    together: Any = torch.func.vmap(module)
    torch.testing.assert_close(list(together(q, k)), one_by_one)
    compiled: Any = torch.compile(module, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(q[0], k[0], 2), module(q[0], k[0], 2))


@pytest.mark.parametrize("component", [LearnedScale(), CosineScale(), QKNormScale(), QKNormScale(norm="layer")])
def test_what_it_learns_has_one_axis_and_so_keeps_its_start(component: Scale) -> None:
    built, drawn = component.build(AT), ready(component)
    for (name, value), other in zip(built.named_parameters(), drawn.parameters(), strict=True):
        assert value.dim() == 1 and not name.endswith("bias")
        assert torch.equal(value, other)


@pytest.mark.parametrize("start", [0.0, -1.0])
def test_a_cosines_gain_is_positive(start: float) -> None:
    with pytest.raises(ValidationError, match="greater than 0"):
        CosineScale(start=start)
