"""Identities of positions that hold exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from ablate.model.parameters import initialise, named_parameters
from ablate.slots import ImpossibleError, Position, Site, mark
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.position import (
    AlibiPosition,
    LearnedPosition,
    NoPosition,
    RelativeBiasPosition,
    RotaryPosition,
    SinusoidalPosition,
)

AT = Site(path="position", slot="position", width=64, depth=1, context=128, heads=4)
ALL = [
    NoPosition(),
    SinusoidalPosition(),
    LearnedPosition(),
    RotaryPosition(),
    RotaryPosition(share=0.5),
    AlibiPosition(),
    RelativeBiasPosition(),
]
ROTARY = [RotaryPosition(), RotaryPosition(share=0.5)]
BIASES = [AlibiPosition(), RelativeBiasPosition()]
WITHOUT = [each for each in ALL if each not in ROTARY and each not in BIASES]


def ready(module: nn.Module | None, at: Site = AT) -> Any:
    assert module is not None
    initialise(mark(module, at), LecunNormal(), (0,))
    return module


def random(*shape: int, **options: Any) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), **options)


def test_sinusoidal_products_depend_on_the_distance_alone() -> None:
    table = SinusoidalPosition().build(AT).double()(torch.zeros(1, 128, 64, dtype=torch.float64))[0]
    products = table @ table.T
    for distance in (0, 1, 7, 50):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[0].expand_as(diagonal), atol=1e-5, rtol=0)
    torch.testing.assert_close(products.diagonal(), torch.full((128,), 32.0, dtype=torch.float64), atol=1e-5, rtol=0)


def test_sinusoidal_is_vaswanis_formula() -> None:
    table = SinusoidalPosition().build(AT)(torch.zeros(1, 128, 64))[0]
    for position, i in [(0, 0), (3, 0), (17, 5), (127, 31)]:
        angle = torch.tensor(position / 10000 ** (2 * i / 64))
        assert table[position, 2 * i] == pytest.approx(float(angle.sin()), abs=1e-5)
        assert table[position, 2 * i + 1] == pytest.approx(float(angle.cos()), abs=1e-5)


def test_rotary_products_depend_on_the_distance_alone_and_norms_are_kept() -> None:
    rotate = RotaryPosition().rotation(AT).double()
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(64, generator=generator, dtype=torch.float64).expand(1, 1, 128, 64) for _ in range(2))
    turned_q, turned_k = rotate(q, k)
    torch.testing.assert_close(turned_q.norm(dim=-1), q.norm(dim=-1), atol=1e-6, rtol=0)
    products = (turned_q @ turned_k.transpose(-2, -1))[0, 0]
    for distance in (-9, 0, 1, 50):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[0].expand_as(diagonal), atol=1e-4, rtol=0)
    assert float(products[0, 5]) != pytest.approx(float(products[0, 6]))


@pytest.mark.parametrize(("share", "turned"), [(0.5, 32), (0.25, 16), (0.001, 2), (0.999, 64)])
def test_a_share_of_a_rotary_head_is_turned_as_a_head_of_that_width_and_the_rest_is_left(
    share: float, turned: int
) -> None:
    x = random(2, 4, 10, 64)
    q, k = RotaryPosition(share=share).rotation(AT)(x, x)
    assert torch.equal(q, k)
    assert torch.equal(q[..., turned:], x[..., turned:])
    narrow = RotaryPosition().rotation(replace(AT, width=turned))
    assert torch.equal(q[..., :turned], narrow(x[..., :turned], x[..., :turned])[0])
    assert bool((q[..., 1:, :turned] != x[..., 1:, :turned]).any(-2).all())


def test_an_odd_width_is_impossible() -> None:
    at = Site(path="position", slot="position", width=7, depth=1, context=8)
    with pytest.raises(ImpossibleError, match="a width of 7 is odd"):
        SinusoidalPosition().build(at)
    with pytest.raises(ImpossibleError, match="a width of 7 is odd"):
        RotaryPosition().rotation(at)
    with pytest.raises(ImpossibleError, match="a head's width of 1 has no pair to rotate"):
        RotaryPosition(share=0.5).rotation(replace(at, width=1))


@pytest.mark.parametrize(
    ("heads", "powers"),
    [
        (1, [8]),
        (2, [4, 8]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (16, [i / 2 for i in range(1, 17)]),
        (3, [4, 8, 2]),
        (6, [2, 4, 6, 8, 1, 3]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
    ],
)
def test_alibi_has_press_slopes(heads: int, powers: list[float]) -> None:
    bias = AlibiPosition().bias(replace(AT, heads=heads))(0, 6, 6)
    assert bias.shape == (heads, 6, 6)
    assert (-bias[:, 3, 2]).tolist() == pytest.approx([2**-power for power in powers])


def test_alibi_falls_with_the_distance_in_both_directions() -> None:
    bias = AlibiPosition().bias(AT)(2, 3, 5)
    distances = torch.tensor([[2, 1, 0, 1, 2], [3, 2, 1, 0, 1], [4, 3, 2, 1, 0]])
    torch.testing.assert_close(bias[1], -distances / 16)


def buckets(at: Site, offsets: list[int], **options: int) -> list[int]:
    """The bucket of keys that stand so much later than their query."""
    component = RelativeBiasPosition.model_validate(options)
    module: Any = component.bias(at)
    with torch.no_grad():
        module.by_bucket.weight.copy_(torch.arange(component.buckets).expand(at.heads, -1))
    bias = module(2000, 1, 4000)
    assert torch.equal(bias[0], bias[3])
    return [int(bias[0, 0, 2000 + offset].item()) for offset in offsets]


def test_causal_buckets_are_t5s() -> None:
    before = [0, 1, 15, 16, 20, 32, 64, 100, 113, 128, 129, 2000]
    found = buckets(AT, [-distance for distance in before])
    assert found == [0, 1, 15, 16, 17, 21, 26, 30, 31, 31, 31, 31]


def test_buckets_in_both_directions_are_t5s() -> None:
    at = replace(AT, causal=False)
    assert buckets(at, [0, -1, -5, -7, -8, -16, -32, -64, -127, -1000]) == [0, 1, 5, 7, 8, 10, 12, 14, 15, 15]
    assert buckets(at, [1, 5, 7, 8, 16, 32, 64, 128, 1000]) == [17, 21, 23, 24, 26, 28, 30, 31, 31]


@pytest.mark.parametrize("causal", [True, False])
def test_a_longer_distance_has_no_lower_bucket_and_none_is_left_out(causal: bool) -> None:
    found = buckets(replace(AT, causal=causal), [-distance for distance in range(100)], buckets=12, max_distance=40)
    assert found == sorted(found)
    assert set(found) == set(range(12 if causal else 6))


def test_relative_buckets_are_drawn_small_and_are_no_table_of_embeddings() -> None:
    module = ready(RelativeBiasPosition().bias(replace(AT, heads=64)))
    ((parameter, value),) = named_parameters(module)
    assert (parameter.role, parameter.shape) == ("by_bucket", (64, 32))
    assert float(value.std().detach()) == pytest.approx(32**-0.5, rel=0.05)


def test_relative_buckets_have_a_gradient() -> None:
    module = ready(RelativeBiasPosition().bias(AT))
    module(0, 10, 10).tril().sum().backward()
    counts = torch.tensor([10.0 - distance for distance in range(10)] + [0.0] * 22)
    torch.testing.assert_close(module.by_bucket.weight.grad, counts.expand(4, -1))


def test_the_last_bucket_begins_after_those_of_one_distance() -> None:
    expected = "`max_distance` must be more than half of `buckets`, 16, not 16"
    with pytest.raises(ValidationError, match=expected):
        RelativeBiasPosition(max_distance=16)
    with pytest.raises(ValidationError, match="multiple of 2"):
        RelativeBiasPosition(buckets=5)


@pytest.mark.parametrize("component", ALL, ids=repr)
def test_embeddings_in_chunks_are_those_of_the_whole(component: Position) -> None:
    module, x = ready(component.build(AT)), random(2, 128, 64)
    chunks = [module(x[:, a:b], a) for a, b in ((0, 5), (5, 6), (6, 128))]
    assert torch.equal(torch.cat(chunks, 1), module(x))
    assert torch.equal(module(x), x) == (component not in (SinusoidalPosition(), LearnedPosition()))


@pytest.mark.parametrize("component", ROTARY, ids=repr)
def test_rotation_in_chunks_is_that_of_the_whole(component: Position) -> None:
    module, q, k = ready(component.rotation(AT)), random(2, 4, 128, 64), random(2, 2, 128, 64)
    whole = module(q, k)
    chunks = [module(q[:, :, a:b], k[:, :, a:b], a) for a, b in ((0, 5), (5, 6), (6, 128))]
    for index in range(2):
        assert torch.equal(torch.cat([chunk[index] for chunk in chunks], -2), whole[index])


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("component", BIASES, ids=repr)
def test_a_bias_in_chunks_is_that_of_the_whole_and_depends_on_the_distance_alone(
    component: Position, causal: bool
) -> None:
    module = ready(component.bias(replace(AT, causal=causal)))
    whole = module(0, 20, 20)
    assert torch.equal(torch.cat([module(0, 5, 20), module(5, 1, 20), module(6, 14, 20)], 1), whole)
    assert torch.equal(module(7, 1, 8), whole[:, 7:8, :8])
    for distance in (-9, 0, 1, 5):
        diagonal = whole.diagonal(distance, 1, 2)
        assert torch.equal(diagonal, diagonal[:, :1].expand_as(diagonal))


@pytest.mark.parametrize("component", [SinusoidalPosition(), LearnedPosition(), *ROTARY], ids=repr)
def test_a_text_beyond_the_context_is_an_error(component: Position) -> None:
    rotation = component.rotation(AT)
    module = ready(rotation or component.build(AT))
    x = random(1, 1, 28, 64) if rotation else random(1, 28, 64)
    inputs = [x] * (2 if rotation else 1)
    module(*inputs, 100)
    with pytest.raises(ValueError, match=r"^a text of 129 tokens is longer than the context of 128$"):
        module(*inputs, 101)


@pytest.mark.parametrize("component", ALL, ids=repr)
def test_what_it_has_is_as_declared(component: Position) -> None:
    rotation, bias, traits = component.rotation(AT), component.bias(AT), component.traits()
    assert (rotation is not None, bias is not None) == (component in ROTARY, component in BIASES)
    assert traits.needs_attention == (component not in WITHOUT)
    assert traits.fused == (component != RelativeBiasPosition())
    assert any(value.requires_grad for value in (bias or nn.Identity()).parameters()) != traits.fused


@pytest.mark.parametrize("component", ALL, ids=repr)
def test_shapes_and_types_are_kept(component: Position) -> None:
    for dtype, rough in ((torch.float32, False), (torch.float32, True), (torch.float64, False)):
        with torch.autocast("cpu", torch.bfloat16, enabled=rough):
            x = ready(component.build(AT)).to(dtype)(random(2, 9, 64, dtype=dtype), 3)
            assert (x.shape, x.dtype) == ((2, 9, 64), dtype)
            if component in ROTARY:
                q = random(2, 4, 9, 64, dtype=torch.bfloat16 if rough else dtype)
                for turned in ready(component.rotation(AT)).to(dtype)(q, q, 3):
                    assert (turned.shape, turned.dtype) == (q.shape, q.dtype)
            if component in BIASES:
                bias = ready(component.bias(AT)).to(dtype)(3, 9, 12)
                assert (bias.shape, bias.dtype) == ((4, 9, 12), dtype)


@pytest.mark.parametrize("component", ALL, ids=repr)
def test_it_is_built_without_memory(component: Position) -> None:
    with torch.device("meta"):
        module, rotation, bias = component.build(AT), component.rotation(AT), component.bias(AT)
        assert module(torch.empty(2, 9, 64), 3).shape == (2, 9, 64)
        if rotation is not None:
            assert rotation(torch.empty(2, 4, 9, 64), torch.empty(2, 4, 9, 64), 3)[0].shape == (2, 4, 9, 64)
        if bias is not None:
            assert bias(3, 9, 12).is_meta and bias(3, 9, 12).shape == (4, 9, 12)


@pytest.mark.parametrize("component", ALL, ids=repr)
def test_it_runs_as_is_declared(component: Position) -> None:
    assert component.traits().vmap and component.traits().compiles
    parts: list[tuple[nn.Module | None, tuple[Any, ...]]] = [
        (component.build(AT), (random(2, 9, 64), 3)),
        (component.rotation(AT), (random(2, 4, 9, 64), random(2, 4, 9, 64), 3)),
        (component.bias(AT), (3, 9, 12)),
    ]
    for part, inputs in parts:
        if part is not None:
            module = ready(part)
            compiled: Any = torch.compile(module, backend="eager", fullgraph=True)
            torch.testing.assert_close(compiled(*inputs), module(*inputs))
            torch.testing.assert_close(*under_vmap(module, inputs))


def under_vmap(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, Any]:
    """What the module gives for its state and for twice its state, in one call and in two."""
    state = {name: value.detach() for name, value in module.state_dict(keep_vars=True).items()}
    twice = {name: 2 * value for name, value in state.items()}
    stacked = {name: torch.stack([value, twice[name]]) for name, value in state.items()}

    def run(values: dict[str, Tensor], row: Tensor) -> Any:
        return torch.func.functional_call(module, values, inputs)

    together: Any = torch.func.vmap(run)
    alone = [torch.func.functional_call(module, values, inputs) for values in (state, twice)]
    if isinstance(alone[0], tuple):
        return together(stacked, torch.zeros(2)), tuple(map(torch.stack, zip(*alone, strict=True)))
    return together(stacked, torch.zeros(2)), torch.stack(alone)
