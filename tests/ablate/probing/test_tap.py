"""The tap sees what happens in a step, changes nothing, and costs nothing when it is closed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import pytest
import torch
from torch import Tensor, nn

from ablate.model.parameters import build, named_parameters, root_site
from ablate.probing import Tap, probed_steps
from ablate.slots import Interface, Probe, Reading, Seen
from ablate_plugins.feed_forward import Mlp
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.mixer import Attention
from ablate_plugins.model import Decoder
from ablate_plugins.probe import GradientFlow
from ablate_plugins.scale import NoScale


class Keep(Probe):
    """Keeps what it saw."""

    kind: Literal["keep"] = "keep"
    units: ClassVar[Mapping[str, str]] = {}
    kept: ClassVar[list[Seen]] = []

    def measure(self, seen: Seen) -> Mapping[Reading, Tensor]:
        self.kept.append(seen)
        return {}


def network() -> nn.Module:
    model = Decoder(width=16, depth=2, mixer=Attention(heads=2, scale=NoScale()), feed_forward=Mlp(activation="relu"))
    return build(model, root_site(Interface(8, 11)), stream=(0,), initializer=LecunNormal())


def step(model: nn.Module, tap: Tap | None) -> None:
    tokens = torch.randint(11, (3, 8), generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    if tap:
        tap.open()
    nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    if tap:
        tap.gradients()
    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    optimizer.step()
    optimizer.zero_grad()
    if tap:
        tap.close()


def test_it_sees_the_stream_the_gradients_and_the_update() -> None:
    Keep.kept.clear()
    model = network()
    before = {parameter.name: value.detach().clone() for parameter, value in named_parameters(model)}
    step(model, Tap(model, list(named_parameters(model)), [Keep()]))
    (seen,) = Keep.kept
    assert [tuple(x.shape) for x in seen.stream] == [(3, 8, 16)] * 3
    assert [float(x.norm()) > 0 for x in seen.stream_gradients] == [True] * 3
    assert [(each.layer, each.cross) for each in seen.attention] == [(0, False), (1, False)]
    for each in seen.attention:
        assert each.q.shape == each.k.shape == (3, 2, 8, 8)
        assert each.seen is not None
        assert torch.equal(each.seen, torch.ones(8, 8, dtype=torch.bool).tril())
        assert torch.equal(each.logits(each.q, each.k), each.q @ each.k.transpose(-2, -1))
    assert {layer: tuple(x.shape) for layer, x in seen.hidden.items()} == {0: (3, 8, 64), 1: (3, 8, 64)}
    assert float(seen.hidden[0].min()) == 0.0
    after = {parameter.name: value for parameter, value in named_parameters(model)}
    total = torch.stack([gradient.norm() for gradient in seen.gradients.values()]).norm()
    assert float(total) > 0.1  # before clipping to 1e-3
    for name, value in after.items():
        assert torch.equal(seen.before[name], before[name])
        assert torch.equal(seen.after[name], value)
        torch.testing.assert_close(
            before[name] - value, 0.5 * seen.gradients[name] * 1e-3 / total, atol=1e-6, rtol=1e-2
        )


def test_a_probed_step_computes_what_an_unprobed_one_computes() -> None:
    plain, tapped = network(), network()
    step(plain, None)
    step(tapped, Tap(tapped, list(named_parameters(tapped)), [Keep()]))
    assert all(map(torch.equal, plain.parameters(), tapped.parameters()))


def test_nothing_stays_on_the_model() -> None:
    model = network()
    step(model, Tap(model, list(named_parameters(model)), [Keep()]))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_probed_steps_are_early_ones_then_regular_and_the_last() -> None:
    assert sorted(probed_steps(50, 230)) == [0, 1, 2, 5, 10, 20, 50, 100, 150, 200, 229]
    assert sorted(probed_steps(50, 3)) == [0, 1, 2]
    assert sorted(probed_steps(1, 3)) == [0, 1, 2]


class Gives(Probe):
    """Reads what it is told to."""

    kind: Literal["gives"] = "gives"
    units: ClassVar[Mapping[str, str]] = {"x": ""}
    given: ClassVar[Any] = None

    def measure(self, seen: Seen) -> Mapping[Reading, Tensor]:
        return self.given  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {Reading("x", 2): torch.zeros(3)},
            "the probe `gives` gave float32 of shape (3,) for `x` of layer 2, and no real scalar",
        ),
        ({Reading("x"): torch.zeros(1)}, "the probe `gives` gave float32 of shape (1,) for `x`, and no real scalar"),
        (
            {Reading("x", 0, name="head.1"): torch.zeros((), dtype=torch.complex64)},
            "the probe `gives` gave complex64 of shape () for `x` of layer 0, head.1, and no real scalar",
        ),
        ({Reading("x", 1): 0.5}, "the probe `gives` gave float for `x` of layer 1, and no tensor"),
        ({"x": torch.zeros(())}, "the probe `gives` has the key 'x', which is no Reading"),
        (
            {Reading("x", "0"): torch.zeros(())},  # type: ignore[arg-type]
            "the probe `gives` gave Reading(metric='x', layer='0', role=None, name=None): a layer is a whole number or "
            "None, all else is text",
        ),
        (None, "the probe `gives` gave NoneType, and no mapping of readings to scalars"),
    ],
)
def test_what_is_no_reading_is_told_where_it_is_measured(
    monkeypatch: pytest.MonkeyPatch, given: Any, message: str
) -> None:
    monkeypatch.setattr(Gives, "given", given)
    model = network()
    with pytest.raises(TypeError) as caught:
        step(model, Tap(model, list(named_parameters(model)), [Keep(), Gives()]))
    assert str(caught.value) == message


def test_whole_numbers_and_what_is_not_finite_are_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        Reading("x", 0): torch.tensor(3),
        Reading("x", 1): torch.tensor(True),
        Reading("x", 2): torch.tensor(-math.inf),
    }
    monkeypatch.setattr(Gives, "given", given)
    model = network()
    tap = Tap(model, list(named_parameters(model)), [Gives()])
    tap.open()
    model(torch.zeros(1, 8, dtype=torch.long)).sum().backward()
    tap.gradients()
    assert [value for _, value in tap.close()] == [3.0, 1.0, -math.inf]


def test_what_is_frozen_is_not_measured() -> None:
    model = network()
    frozen = {"block.0.mixer.q.weight", "steps"}
    model.register_parameter("steps", nn.Parameter(torch.tensor([1, 2]), requires_grad=False))
    for parameter, value in named_parameters(model):
        value.requires_grad_(parameter.name not in frozen)
    parameters = list(named_parameters(model))
    assert frozen <= {parameter.name for parameter, _ in parameters}
    tap = Tap(model, parameters, [GradientFlow()])
    tap.open()
    model(torch.zeros(1, 8, dtype=torch.long)).sum().backward()
    tap.gradients()
    read = {reading.name for reading, _ in tap.close() if reading.metric == "grad_norm"}
    assert read == {parameter.name for parameter, _ in parameters} - frozen
