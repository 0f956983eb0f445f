"""Swapping one component leaves every other parameter, the batches and the evaluation set identical."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from ablate.model.keys import generator
from ablate.model.parameters import build, named_parameters, root_site
from ablate.registry import Registry, kind_of
from ablate.slots import Initializer, Interface, Model, Residual
from ablate.training.data import Batches
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.model import Decoder
from ablate_plugins.task import Text

ROOT = root_site(Interface(16, 40))
BASE: dict[str, Any] = {"width": 16, "depth": 2}
REGISTRY = Registry.installed()

# A residual that opts out of the norm after the last block takes it away.
RESIDUALS = [
    (kind_of(each), ("residual",) if each.final_norm else ("residual", "final_norm"))
    for each in REGISTRY.all("residual")
    if issubclass(each, Residual)
]
# Every component of every slot of the model, one at a time, and the prefixes of the parameters that it may touch.
SWAPS = [
    *[("norm", kind, ("before", "after", "stream", "final_norm")) for kind in REGISTRY.kinds("norm")],
    *[("placement", kind, ("before", "after", "stream", "final_norm")) for kind in REGISTRY.kinds("placement")],
    *[("residual", kind, touched) for kind, touched in RESIDUALS],
    *[("mixer", {"kind": "attention", "scale": kind}, ("scale",)) for kind in REGISTRY.kinds("scale")],
    *[("mixer", {"kind": kind}, ("mixer",)) for kind in REGISTRY.kinds("mixer")],
    *[("feed_forward", {"kind": kind}, ("feed_forward",)) for kind in REGISTRY.kinds("feed_forward")],
    ("feed_forward", {"kind": "mlp", "ratio": 1}, ("feed_forward",)),
    ("feed_forward", {"kind": "mlp", "activation": "relu"}, ()),
    *[("position", kind, ("position",)) for kind in REGISTRY.kinds("position")],
    *[("output", kind, ("head",)) for kind in REGISTRY.kinds("output")],
    ("dropout", 0.1, ()),
]


def values(options: dict[str, Any], stream: tuple[int | str, ...] = (3,)) -> dict[str, Tensor]:
    model: Model = Decoder.model_validate({"kind": "decoder", **BASE, **options}, context={"registry": REGISTRY})
    network = build(model, ROOT, stream=stream, initializer=LecunNormal())
    return {parameter.name: value.detach() for parameter, value in named_parameters(network)}


@pytest.mark.parametrize(("slot", "value", "touched"), SWAPS, ids=str)
def test_a_swap_leaves_every_other_parameter_identical(slot: str, value: Any, touched: tuple[str, ...]) -> None:
    base, other = values({}), values({slot: value})
    for name in base.keys() | other.keys():
        if not set(name.split(".")) & set(touched):
            assert torch.equal(base[name], other[name]), name


def test_seeds_and_streams_give_other_values() -> None:
    base, seed, stream = values({}, (3,)), values({}, (4,)), values({}, (3, "other"))
    for name, value in base.items():
        if value.dim() >= 2:
            assert not torch.equal(value, seed[name]), name
            assert not torch.equal(value, stream[name]), name


def test_no_two_parameters_share_their_values() -> None:
    matrices = [value for value in values({}).values() if value.dim() >= 2]
    firsts = {float(matrix.flatten()[0] / matrix.std()) for matrix in matrices}
    assert len(firsts) == len(matrices)


def test_initial_values_never_change() -> None:
    """Golden: a refactoring that moves these changes the meaning of every record."""
    found = values({})
    assert found["block.1.mixer.q.weight"][0, :3].tolist() == pytest.approx([-0.044374, 0.223233, -0.239296], abs=1e-5)
    assert found["embed.weight"][0, :3].tolist() == pytest.approx([-1.055108, 0.501323, -0.989668], abs=1e-5)


def batches(seed: int, start: int = 0) -> list[Tensor]:
    data = Text(source="python-docs", context=16, windows=8).load(".")
    return [torch.stack([*batch.inputs, batch.targets]) for batch in Batches(data, 4, (seed,), start, 20)]


def test_batches_depend_on_the_seed_and_the_step_alone() -> None:
    first = batches(0)
    assert all(map(torch.equal, first, batches(0)))
    assert all(map(torch.equal, first[7:], batches(0, start=7)))
    assert not any(map(torch.equal, first, batches(1)))


def test_the_evaluation_set_is_fixed() -> None:
    def sets(size: int) -> Tensor:
        data = Text(source="python-docs", context=16, windows=50).load(".")
        return torch.cat([torch.stack([*batch.inputs, batch.targets], 1) for batch in data.evaluation(size)])

    assert torch.equal(sets(8), sets(8))
    assert torch.equal(sets(8), sets(32))


def test_streams_of_different_names_differ_and_of_the_same_name_agree() -> None:
    keys: list[tuple[int | str, ...]] = [(0, "a"), (0, "b"), (1, "a"), ("0", "a")]
    draws = {key: torch.rand(3, generator=generator(*key)).tolist() for key in keys}
    assert len({tuple(draw) for draw in draws.values()}) == 4
    assert draws[0, "a"] == torch.rand(3, generator=generator(0, "a")).tolist()


def test_initialisers_draw_from_what_they_are_given_alone() -> None:
    initializers: list[Initializer] = [component() for component in REGISTRY.all("initializer")]  # type: ignore[misc]
    for initializer in initializers:
        before = torch.random.get_rng_state()
        model = Decoder(width=16, depth=1)
        one = build(model, ROOT, stream=(0,), initializer=initializer)
        other = build(model, ROOT, stream=(0,), initializer=initializer)
        assert all(map(torch.equal, one.parameters(), other.parameters()))
        assert torch.equal(torch.random.get_rng_state(), before)
