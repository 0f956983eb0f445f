"""The decoder: what is derived, what is shared, and what it may see."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from ablate.model.parameters import build, build_shape, named_parameters, root_site
from ablate.slots import Interface, Placement, Position
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.mixer import Attention
from ablate_plugins.model import Decoder
from ablate_plugins.norm import NoNorm
from ablate_plugins.output import TiedOutput
from ablate_plugins.placement import NoPlacement, PostNorm, PreNorm, ResidualPostNorm, SandwichNorm
from ablate_plugins.position import LearnedPosition, NoPosition, RotaryPosition, SinusoidalPosition

ROOT = root_site(Interface(16, 40))


def network(model: Decoder) -> nn.Module:
    return build(model, ROOT, stream=(0,), initializer=LecunNormal())


def names(model: Decoder) -> set[str]:
    return {parameter.name for parameter, _ in named_parameters(network(model))}


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (PreNorm(), True),
        (SandwichNorm(), True),
        (ResidualPostNorm(), True),
        (NoPlacement(), True),
        (PostNorm(), False),
    ],
)
def test_the_final_norm_is_there_where_the_stream_is_not_normalised(placement: Placement, expected: bool) -> None:
    assert ("final_norm.weight" in names(Decoder(width=16, placement=placement))) == expected


def test_without_a_norm_there_is_no_final_norm() -> None:
    assert not [name for name in names(Decoder(width=16, norm=NoNorm())) if "norm" in name]


def test_the_initial_loss_is_that_of_unit_logits() -> None:
    model = network(Decoder(width=128, depth=2))
    tokens = torch.randint(40, (8, 16), generator=torch.Generator().manual_seed(0))
    logits = model(tokens).detach()
    assert float(logits.var()) == pytest.approx(1.0, abs=0.25)
    uniform = torch.randint(40, (8, 16), generator=torch.Generator().manual_seed(1))
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), uniform.flatten())
    assert float(loss) == pytest.approx(math.log(40) + float(logits.var()) / 2, abs=0.15)


def test_a_tied_output_is_the_embedding_and_counts_once() -> None:
    tied, untied = Decoder(width=16, output=TiedOutput()), Decoder(width=16)
    assert names(untied) - names(tied) == {"head.weight"}
    model = network(tied)
    tables = [module.weight for module in model.modules() if isinstance(module, nn.Embedding)]
    assert tables[0] is model.get_submodule("head").weight
    assert (
        sum(value.numel() for value in model.parameters())
        == sum(value.numel() for value in network(untied).parameters()) - 40 * 16
    )


@pytest.mark.parametrize("position", [NoPosition(), SinusoidalPosition(), LearnedPosition(), RotaryPosition()])
def test_the_future_does_not_move_the_past(position: Position) -> None:
    model = network(Decoder(width=16, position=position)).train()
    tokens = torch.randint(40, (2, 16), generator=torch.Generator().manual_seed(0))
    changed = tokens.clone()
    changed[:, 9:] = (changed[:, 9:] + 1) % 40
    assert torch.equal(model(tokens)[:, :9], model(changed)[:, :9])
    assert not torch.equal(model(tokens)[:, 9:], model(changed)[:, 9:])


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_the_shape_alone_has_the_same_parameters(heads: int) -> None:
    model = Decoder(width=16, mixer=Attention(heads=heads), output=TiedOutput(), position=RotaryPosition())
    real = [parameter for parameter, _ in named_parameters(network(model))]
    shaped = build_shape(model, ROOT)
    assert [parameter for parameter, _ in named_parameters(shaped)] == real
    assert all(value.is_meta for value in shaped.parameters())


def test_building_leaves_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    network(Decoder(width=16))
    build_shape(Decoder(width=16), ROOT)
    assert torch.equal(torch.random.get_rng_state(), before)
