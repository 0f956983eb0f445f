"""The position-wise feed-forward networks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from ablate.model.parameters import initialise, named_parameters
from ablate.slots import FeedForward, Site, place
from ablate_plugins.feed_forward import Gated, Mlp, NoFeedForward
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.mixture_of_experts import MixtureOfExperts

AT = Site(path="block.0.feed_forward", slot="feed_forward", width=512, depth=1, context=16, layer=0)
SMALL = Site(path="block.0.feed_forward", slot="feed_forward", width=8, depth=1, context=16, layer=0)
ALL = [Mlp(), Mlp(activation="squared_relu"), Gated(), Gated(bias=True), MixtureOfExperts(), MixtureOfExperts(top_k=1)]
ALL_AND_NONE = [*ALL, NoFeedForward()]


def ready(component: FeedForward, at: Site = SMALL) -> Any:
    module = place(component, at)
    initialise(module, LecunNormal(), (0,))
    return module


def tokens(*shape: int, **options: Any) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), **options)


def size(module: nn.Module) -> int:
    return sum(value.numel() for value in module.parameters())


def hidden_of(module: nn.Module) -> nn.Module:
    (hidden,) = (part for part in module.modules() if getattr(part, "site", AT).slot == "hidden")
    return hidden


@pytest.mark.parametrize("options", [{"ratio": 4.0}, {"width": 2048}, {}])
def test_size_at_512_is_vaswanis(options: dict[str, float]) -> None:
    assert size(Mlp.model_validate(options).build(AT)) == 2_099_712


@pytest.mark.parametrize("component", [Mlp, Gated])
@pytest.mark.parametrize(("ratio", "width"), [(1.0, 512), (2.667, 1366), (0.0001, 1)])
def test_a_ratio_is_rounded_to_whole_units(component: type[Mlp | Gated], ratio: float, width: int) -> None:
    module = component(ratio=ratio).build(AT)
    assert module.get_parameter("w1.weight").shape == (width, 512)


def test_each_token_is_treated_alone() -> None:
    module, x = Mlp(activation="relu").build(AT), tokens(2, 16, 512)
    torch.testing.assert_close(module(x)[:, 7:8], module(x[:, 7:8]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("component", ALL, ids=repr)
def test_each_token_is_treated_alone_by_all(component: FeedForward) -> None:
    module, x = ready(component).double(), tokens(2, 16, 8, dtype=torch.float64)
    alone = torch.cat([module(token) for token in x.split(1, 1)], 1)
    torch.testing.assert_close(module(x), alone, atol=1e-12, rtol=0)


@pytest.mark.parametrize("activation", ["relu", "squared_relu"])
def test_half_of_the_relu_units_are_zero_at_the_start(activation: str) -> None:
    module = ready(Mlp.model_validate({"activation": activation}), AT)
    seen: list[Tensor] = []
    hidden_of(module).register_forward_hook(lambda _, inputs, output: seen.append(output))
    module(tokens(4, 16, 512))
    assert float((seen[0] == 0).float().mean()) == pytest.approx(0.5, abs=0.03)


def test_squared_relu_is_the_relu_squared() -> None:
    activation = hidden_of(Mlp(activation="squared_relu").build(SMALL))
    assert activation(torch.tensor([-2.0, 0.0, 0.5, 3.0])).tolist() == [0.0, 0.0, 0.25, 9.0]


@pytest.mark.parametrize(
    ("activation", "function"),
    [("relu", nn.functional.relu), ("gelu", nn.functional.gelu), ("silu", nn.functional.silu)],
)
def test_gated_is_shazeers_formula_and_its_gate_is_seen_by_probes(activation: str, function: Any) -> None:
    module = ready(Gated.model_validate({"activation": activation})).double()
    x = tokens(3, 5, 8, dtype=torch.float64)
    seen: list[Tensor] = []
    hidden_of(module).register_forward_hook(lambda _, inputs, output: seen.append(output))
    w1, w2, w3 = (module.get_parameter(f"{name}.weight") for name in ("w1", "w2", "w3"))
    torch.testing.assert_close(module(x), (function(x @ w1.T) * (x @ w3.T)) @ w2.T)
    torch.testing.assert_close(seen[0], function(x @ w1.T))
    assert getattr(hidden_of(module), "site").width == 32  # noqa: B009  # a plain attribute
    assert {name.rpartition(".")[2] for name, _ in module.named_parameters()} == {"weight"}


def test_two_thirds_makes_the_matrices_as_large_as_an_mlps() -> None:
    gated, mlp = Gated(two_thirds=True).build(AT), Mlp().build(AT)
    assert gated.get_parameter("w1.weight").shape == (1365, 512)
    matrices = size(mlp) - 2048 - 512
    assert abs(size(gated) - matrices) <= 3 * 512 / 2  # a third of an inner unit is rounded away
    assert size(Gated(ratio=3, two_thirds=True).build(AT)) == size(Mlp(ratio=3).build(AT)) - 3 * 512 - 512
    assert size(Gated().build(AT)) == 1.5 * matrices


@pytest.mark.parametrize("component", [Mlp, Gated, MixtureOfExperts])
def test_ratio_and_width_exclude_each_other(component: type[Mlp | Gated | MixtureOfExperts]) -> None:
    with pytest.raises(ValidationError, match="give `ratio` or `width`, not both"):
        component(ratio=2, width=64)


def test_two_thirds_of_a_width_are_an_error() -> None:
    with pytest.raises(ValidationError, match="give `two_thirds` with `ratio`: a `width` is taken as it is"):
        Gated(width=64, two_thirds=True)


def test_a_token_goes_to_no_more_experts_than_there_are() -> None:
    with pytest.raises(ValidationError, match="`top_k` is 3, and there are 2 experts"):
        MixtureOfExperts(experts=2, top_k=3)


def test_none_gives_nothing() -> None:
    x = tokens(2, 3, 8)
    assert torch.equal(NoFeedForward().build(SMALL)(x), torch.zeros(2, 3, 8))
    assert NoFeedForward.neutral == "none"


@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_a_mixture_is_its_best_experts_weighted_token_by_token(top_k: int) -> None:
    module = ready(MixtureOfExperts(experts=5, top_k=top_k, activation="relu")).double()
    x = tokens(3, 7, 8, dtype=torch.float64)
    by_hand = []
    for token in x.flatten(0, 1):
        chances = (module.router.weight @ token).softmax(0).tolist()
        best = sorted(range(5), key=lambda expert: -chances[expert])[:top_k]
        whole = sum(chances[expert] for expert in best) if top_k > 1 else 1.0
        by_hand.append(sum(chances[expert] / whole * module.experts[expert](token) for expert in best))
    torch.testing.assert_close(module(x).flatten(0, 1), torch.stack(by_hand))


def test_a_mixture_of_all_experts_is_weighted_by_the_routers_softmax() -> None:
    module = ready(MixtureOfExperts(experts=3, top_k=3)).double()
    x = tokens(2, 4, 8, dtype=torch.float64)
    outputs = torch.stack([expert(x) for expert in module.experts], -1)
    torch.testing.assert_close(module(x), (outputs * module.router(x).softmax(-1)[..., None, :]).sum(-1))


def balance_of(module: nn.Module, x: Tensor) -> list[Tensor]:
    """What the module of the slot `auxiliary` gave in one forward pass."""
    seen: list[Tensor] = []
    (auxiliary,) = (part for part in module.modules() if getattr(part, "site", AT).slot == "auxiliary")
    handle = auxiliary.register_forward_hook(lambda _, inputs, output: seen.append(output))
    module(x)
    handle.remove()
    return seen


@pytest.mark.parametrize("top_k", [1, 2, 4])
def test_balance_is_its_weight_where_all_is_even_and_more_where_one_expert_has_all(top_k: int) -> None:
    module = ready(MixtureOfExperts(experts=4, top_k=top_k, balance=0.25))
    with torch.no_grad():
        module.router.weight.zero_()
    (even,) = balance_of(module, torch.ones(2, 4, 8))
    assert even.shape == ()
    assert even.item() == pytest.approx(0.25)
    with torch.no_grad():
        module.router.weight[0] = 100.0
    (uneven,) = balance_of(module, torch.ones(2, 4, 8))
    assert uneven.item() == pytest.approx(0.25 * 4 / top_k)  # f of the first expert is 1/top_k, and its P is 1


def test_balance_teaches_the_router_and_is_asked_for_in_training_alone() -> None:
    module = ready(MixtureOfExperts())
    (loss,) = balance_of(module, tokens(2, 8, 8))
    loss.backward()
    assert float(module.router.weight.grad.norm()) > 0
    assert all(value.grad is None for value in module.experts.parameters())
    assert balance_of(module.eval(), tokens(2, 8, 8)) == []


@pytest.mark.parametrize("top_k", [1, 2])
def test_the_task_teaches_the_router_too(top_k: int) -> None:
    module = ready(MixtureOfExperts(top_k=top_k, balance=0.0))
    module(tokens(2, 16, 8)).square().sum().backward()
    assert float(module.router.weight.grad.norm()) > 1e-3
    assert all(float(value.grad.norm()) > 0 for value in module.experts.parameters())


def test_experts_start_as_an_mlp_does_and_differ() -> None:
    module = ready(MixtureOfExperts(ratio=16), AT)
    roles = {parameter.name: parameter.role for parameter, _ in named_parameters(module)}
    assert roles["block.0.feed_forward.experts.3.w1.weight"] == "w1"
    assert roles["block.0.feed_forward.router.weight"] == "router"
    for name, fan_in in (("w1", 512), ("w2", 16 * 512)):
        first, second = (module.get_parameter(f"experts.{index}.{name}.weight") for index in (0, 1))
        assert first.std().item() == pytest.approx(fan_in**-0.5, rel=0.02)
        assert not torch.equal(first, second)


@pytest.mark.parametrize("top_k", [1, 2])
def test_flops_are_those_of_all_experts(top_k: int) -> None:
    with torch.device("meta"):
        module, x = MixtureOfExperts(experts=3, top_k=top_k, width=10).build(SMALL), torch.empty(2, 5, 8)
    with FlopCounterMode(display=False) as counter:
        module(x)
    assert counter.get_total_flops() == 2 * 10 * (8 * 3 + 3 * 2 * 8 * 10)


@pytest.mark.parametrize("component", ALL_AND_NONE, ids=repr)
def test_shapes_and_types_are_kept(component: FeedForward) -> None:
    module, x = ready(component), tokens(2, 5, 8)
    with torch.autocast("cpu", torch.bfloat16):
        rough = module(x)
    assert rough.shape == x.shape
    torch.testing.assert_close(rough.float(), module(x), atol=0.1, rtol=0.1)
    assert module.double()(x.double()).dtype == torch.float64
    with torch.device("meta"):
        assert component.build(SMALL)(torch.empty(2, 5, 8)).shape == (2, 5, 8)


@pytest.mark.parametrize("component", ALL_AND_NONE, ids=repr)
def test_it_runs_as_is_declared(component: FeedForward) -> None:
    module, x = ready(component), tokens(3, 2, 5, 8)
    traits = component.traits()
    assert traits.vmap and traits.compiles and traits.position_wise and not traits.needs_attention
    together: Any = torch.func.vmap(module)
    torch.testing.assert_close(together(x), torch.stack([module(each) for each in x]))
    compiled: Any = torch.compile(module, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x[0]), module(x[0]))
