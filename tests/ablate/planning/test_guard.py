"""The no-op guard: equal fingerprints mean the same computation, and nothing else does."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch

from ablate.experiment import load
from ablate.experiment.identity import digest
from ablate.planning.guard import GuardError, fingerprint
from ablate.registry import Registry
from ablate.slots import Interface
from tests.ablate.planning.setups import installed, plugin, setup

INTERFACE = Interface(16, 103)
REGISTRY = Registry.installed()
EXPERIMENTS = sorted(Path("experiments").glob("*.yaml"))


def of(registry: Registry = REGISTRY, **options: Any) -> str:
    return fingerprint(setup(registry=registry, **options), INTERFACE)


def attention(**options: Any) -> dict[str, Any]:
    return {"mixer": {"kind": "attention", "heads": 2, **options}}


# By itself `weighted` is `add`.
DIFFERENT: dict[str, Any] = {"weighted": {"kind": "weighted", "branch": 0.5}}
PAIRS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({slot: one}, {slot: other})
    for slot in ("norm", "placement", "residual", "feed_forward", "position", "output")
    for one, other in combinations([DIFFERENT.get(kind, kind) for kind in REGISTRY.kinds(slot)], 2)
]
PAIRS += [({"mixer": one}, {"mixer": other}) for one, other in combinations(REGISTRY.kinds("mixer"), 2)]
PAIRS += [(attention(scale=one), attention(scale=other)) for one, other in combinations(REGISTRY.kinds("scale"), 2)]
PAIRS += [
    ({}, {"width": 32}),
    ({}, {"depth": 3}),
    ({}, {"dropout": 0.1}),
    ({"dropout": 0.1}, {"dropout": 0.2}),
    ({}, attention(heads=4)),
    ({}, attention(dropout=0.1)),
    ({}, attention(bias=False)),
    ({}, attention(causal=False)),
    ({}, {"feed_forward": {"kind": "mlp", "ratio": 2}}),
    *[
        ({"feed_forward": {"kind": "mlp", "activation": one}}, {"feed_forward": {"kind": "mlp", "activation": other}})
        for one, other in combinations(["relu", "gelu", "silu"], 2)
    ],
    ({}, {"norm": {"kind": "layer", "eps": 1e-6}}),
    ({"norm": "rms"}, {"norm": {"kind": "rms", "eps": 1e-5}}),
    ({"position": "sinusoidal"}, {"position": {"kind": "sinusoidal", "base": 5000}}),
    ({"position": "rotary"}, {"position": {"kind": "rotary", "base": 5000}}),
]


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_what_differs_has_another_fingerprint(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert of(**one) != of(**other)


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_model_of_the_shipped_experiments_differs_from_every_other(path: Path) -> None:
    arms = load(path).grid.arms
    interface = arms[0].setup.task.load(str(path.parent)).interface
    found = {fingerprint(arm.setup, interface) for arm in arms}
    models = {digest(arm.setup.model) for arm in arms}  # arms may be trained otherwise alone
    assert len(found) == len(models)
    assert len(models) > 3 or path.stem == "aa"  # which is one model under many streams


def test_what_is_trained_in_another_way_computes_the_same() -> None:
    made = setup()
    other = made.training.model_copy(update={"batch": 32, "stream": "another", "initializer": None})
    assert fingerprint(made, INTERFACE) == fingerprint(made.model_copy(update={"training": other}), INTERFACE)


def test_weights_of_one_change_nothing() -> None:
    assert of(residual="weighted") == of(residual="add")


def test_a_placement_without_a_norm_changes_nothing() -> None:
    assert of(norm="none", placement="pre") == of(norm="none", placement="sandwich")


PARTS = """
class Ignoring(FeedForward):
    'A matrix, and an option that is read by nothing.'
    kind: Literal["ignoring"] = "ignoring"
    width: int = 8
    spare: bool = False
    frozen: bool = False

    def build(self, at: Site) -> nn.Module:
        made = nn.Linear(at.width, at.width)
        if self.spare:
            made.spare = nn.Linear(4, 4)
        if self.frozen:
            made.weight.requires_grad_(False)
        return made

class Noise(nn.Module):
    def __init__(self, std):
        super().__init__()
        self.std = std

    def forward(self, x):
        return x + self.std * torch.randn_like(x)

class Noisy(FeedForward):
    'Noise of the global generator.'
    kind: Literal["noisy"] = "noisy"
    std: float = 0.1
    unread: int = 0

    def build(self, at: Site) -> nn.Module:
        return Noise(self.std)

class Gate(nn.Module):
    def __init__(self, power):
        super().__init__()
        self.power = power
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x, update):
        return x + self.gate**self.power * update

class Closed(Residual):
    'The update times a gate that starts at zero.'
    kind: Literal["closed"] = "closed"
    power: int = 1

    def build(self, at: Site) -> nn.Module:
        return Gate(self.power)

class Running(nn.Module):
    def __init__(self, width, momentum):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, momentum=momentum)

    def forward(self, x):
        return self.norm(x.flatten(0, -2)).view_as(x)

class RunningNorm(Norm):
    'Statistics of the batch, in evaluation those that run.'
    kind: Literal["running"] = "running"
    momentum: float = 0.1

    def build(self, at: Site) -> nn.Module:
        return Running(at.width, self.momentum)

class Failing(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x):
        if self.how == "gpu" and x.device.type == "cpu":
            raise RuntimeError("no kernel for this device\\nand more")
        return x / 0 if self.how == "nan" else x

class Fails(FeedForward):
    'Does not work.'
    kind: Literal["fails"] = "fails"
    how: str = "gpu"

    def build(self, at: Site) -> nn.Module:
        return Failing(self.how)
"""


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return installed(plugin(tmp_path, PARTS))


def feed_forward(registry: Registry, kind: str, **options: Any) -> str:
    return of(registry, feed_forward={"kind": kind, **options})


def test_an_option_that_is_read_by_nothing_is_found_out(registry: Registry) -> None:
    base = feed_forward(registry, "ignoring")
    assert feed_forward(registry, "ignoring", width=64) == base
    assert feed_forward(registry, "ignoring", spare=True) == base
    assert feed_forward(registry, "ignoring", frozen=True) != base


def test_what_draws_from_the_global_generator_draws_the_same(registry: Registry) -> None:
    torch.manual_seed(1)
    base = feed_forward(registry, "noisy")
    torch.manual_seed(2)
    before = torch.random.get_rng_state()
    assert feed_forward(registry, "noisy", unread=1) == base
    assert feed_forward(registry, "noisy", std=0.2) != base
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("power", [1, 2])
def test_what_a_closed_gate_hides_at_the_start_is_seen(registry: Registry, power: int) -> None:
    """The square of a gate at zero lets through neither the update nor a gradient."""
    residual = {"kind": "closed", "power": power}
    found = {
        of(registry, residual=residual, feed_forward={"kind": "mlp", "activation": activation})
        for activation in ("relu", "gelu", "silu")
    }
    assert len(found) == 3


def test_what_shows_in_evaluation_alone_is_seen(registry: Registry) -> None:
    slow, fast = ({"kind": "running", "momentum": momentum} for momentum in (0.01, 0.1))
    assert of(registry, norm=slow) != of(registry, norm=fast)


def test_fingerprints_are_those_of_another_process_and_of_any_order() -> None:
    script = (
        "from tests.ablate.planning.test_guard import of, attention\n"
        "print(of(norm='rms'), of(dropout=0.1), of(**attention(heads=4)), of())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [of(), of(**attention(heads=4)), of(dropout=0.1), of(norm="rms")][::-1]


def test_threads_are_left_as_they_were_and_change_nothing(registry: Registry) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        two = of(registry, width=64)
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)
        assert fingerprint(setup(width=64, feed_forward={"kind": "mlp", "width": 256}), INTERFACE) == two
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("gpu", "it cannot run on the CPU: RuntimeError: no kernel for this device"),
        ("nan", "its logits or gradients are not finite"),
    ],
)
def test_what_cannot_be_checked_says_why(registry: Registry, how: str, message: str) -> None:
    with pytest.raises(GuardError) as caught:
        feed_forward(registry, "fails", how=how)
    assert str(caught.value) == message


def test_a_large_model_is_not_checked() -> None:
    with pytest.raises(GuardError, match=r"^it has 202,297,344 parameters, and at most 100,000,000 are checked$"):
        of(width=4096, depth=1)
