"""Resolving: what has no effect is found before training; building, counting and guarding happen once a shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ablate
from ablate.errors import InputError, RefusedError
from ablate.experiment import load
from ablate.planning import Plan, ledger, make_plan
from ablate.planning.counting import cost_of
from ablate.planning.guard import fingerprint
from ablate.planning.shape import Shape
from tests.ablate.experiment.maker import write
from tests.ablate.planning.setups import plugin

PARTS = """
class Deaf(FeedForward):
    'One matrix; the width is accepted and read by nothing.'
    kind: Literal["deaf"] = "deaf"
    width: int = 8

    def build(self, at: Site) -> nn.Module:
        return nn.Linear(at.width, at.width)

class _ForGpus(nn.Module):
    def forward(self, x):
        if x.device.type == "cpu":
            raise RuntimeError("no kernel for this device")
        return x

class ForGpus(FeedForward):
    'Runs on no CPU.'
    kind: Literal["for_gpus"] = "for_gpus"

    def build(self, at: Site) -> nn.Module:
        return _ForGpus()
"""
FACTORS = "placement: {path: model.placement, levels: [pre, post]}\n  residual: {switch: model.residual}"
DEAF = ("depth: 2", "depth: 2\n  feed_forward: deaf")
ALLOWED = ("seeds: 6", "allow_noop: true\nseeds: 6")


def experiment(folder: Path, levels: str, *changes: tuple[str, str]) -> Path:
    plugin(folder, PARTS)
    factor = f"ffn: {{path: model.feed_forward, levels: {levels}}}"
    return write(folder, (FACTORS, factor), ("seeds: 6", "plugins: [./mine.py]\nseeds: 6"), *changes)


def planned(folder: Path, levels: str, *changes: tuple[str, str]) -> Plan:
    return make_plan(load(experiment(folder, levels, *changes)))


def test_an_option_that_has_no_effect_is_an_error_at_its_level_before_anything_runs(tmp_path: Path) -> None:
    path = experiment(tmp_path, "[deaf, {kind: deaf, width: 64}]", DEAF)
    with pytest.raises(InputError) as caught:
        ablate.run(path, runs=tmp_path / "runs")
    (diagnostic,) = caught.value.diagnostics
    assert str(diagnostic) == (
        "error[G216]: `ffn` has no effect in `ffn=deaf(width=64)`: it computes what the baseline computes\n"
        f"  --> {path}:13:50\n"
        "13 |   ffn: {path: model.feed_forward, levels: [deaf, {kind: deaf, width: 64}]}\n"
        "   |                                                  ^^^^^^^^^^^^^^^^^^^^^^^\n"
        "   = help: mend the component, or say `allow_noop: true` where this is meant"
    )
    assert not (tmp_path / "runs").exists()


def test_where_it_is_meant_it_is_a_warning_and_the_results_say_that_the_curves_are_one(tmp_path: Path) -> None:
    short = (("seeds: 6", "seeds: 2"), ("steps: 20", "steps: 3"))
    path = experiment(tmp_path, "[deaf, {kind: deaf, width: 64}]", DEAF, ALLOWED, *short)
    warned = [each for each in ablate.plan(path).warnings if each.code == "W007"]
    assert [each.message for each in warned] == ["`ffn=deaf(width=64)` computes what `baseline` computes"]
    said = ablate.run(path, runs=tmp_path / "runs").caveats()
    assert (
        "baseline and ffn=deaf(width=64) have identical training curves in every seed: they may compute the same thing."
        in said
    )


def test_two_arms_that_agree_with_each_other_and_not_with_the_baseline_are_a_warning(tmp_path: Path) -> None:
    (warning,) = planned(tmp_path, "[mlp, deaf, {kind: deaf, width: 64}]").warnings
    assert (warning.code, warning.message) == ("W007", "`ffn=deaf(width=64)` computes what `ffn=deaf` computes")
    assert warning.span is not None
    assert (warning.span.line, warning.span.column) == (12, 55)


def test_every_option_without_an_effect_is_told_at_once(tmp_path: Path) -> None:
    levels = "[deaf, {kind: deaf, width: 64}, {kind: deaf, width: 32}]"
    with pytest.raises(InputError) as caught:
        planned(tmp_path, levels, DEAF)
    assert [each.message.split(":")[0] for each in caught.value.diagnostics] == [
        "`ffn` has no effect in `ffn=deaf(width=64)`", "`ffn` has no effect in `ffn=deaf(width=32)`",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("levels", "changes", "message", "line"),
    [
        (
            "[mlp, for_gpus]",
            [],
            "`ffn=for_gpus` was not checked for having no effect: it cannot run on the CPU: RuntimeError: no kernel "
            "for this device",
            12,
        ),
        (
            "[for_gpus, mlp]",
            [("depth: 2", "depth: 2\n  feed_forward: for_gpus")],
            "no arm was checked for having no effect: of the baseline, it cannot run on the CPU: RuntimeError: no "
            "kernel for this device",
            6,
        ),
    ],
)
def test_a_model_that_cannot_run_here_is_not_checked_and_that_is_said(
    tmp_path: Path, levels: str, changes: list[tuple[str, str]], message: str, line: int
) -> None:
    (warning,) = planned(tmp_path, levels, *changes).warnings
    assert (warning.code, warning.message) == ("W008", message)
    assert warning.span is not None
    assert warning.span.line == line


class Counter:
    """Counts the calls of a function, and what they were called with."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.calls: list[Any] = []

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        self.calls.append(arguments)
        return self.function(*arguments, **more)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter]:
    """Counters of what is slow, with nothing remembered from before."""
    ledger._ledger.cache_clear()
    ledger._sizes.cache_clear()
    counters = {"guarded": Counter(fingerprint), "run": Counter(cost_of), "built": Counter(Shape.on_meta)}
    monkeypatch.setattr("ablate.planning.resolving.fingerprint", counters["guarded"])
    monkeypatch.setattr("ablate.planning.ledger.cost_of", counters["run"])
    monkeypatch.setattr(Shape, "on_meta", lambda shape: counters["built"](shape))  # noqa: PLW0108  # so that it binds
    return counters


def test_building_counting_and_guarding_happen_once_a_shape(tmp_path: Path, counted: dict[str, Counter]) -> None:
    lr = "placement: {path: training.optimizer.lr, levels: [1e-2, 1e-3, 1e-4]}"
    both = (FACTORS, f"{lr}\n  residual: {{switch: model.residual}}")
    made = make_plan(load(write(tmp_path, both, ("seeds: 6", "design: full\nseeds: 6"))))
    assert len(made.arms) == 6
    assert len({arm["id"] for arm in made.arms}) == 6
    assert len(counted["guarded"].calls) == 2
    assert len(counted["run"].calls) == 2
    assert len({shape for (shape,) in counted["built"].calls}) == 2
    assert len(counted["built"].calls) == 4  # its parameters, then a step


def test_arms_that_differ_in_training_alone_are_not_guarded(tmp_path: Path, counted: dict[str, Counter]) -> None:
    levels = "placement: {path: training.stream, levels: [null, again]}"
    made = make_plan(load(write(tmp_path, (FACTORS, levels))))
    assert [arm["name"] for arm in made.arms] == ["baseline", "placement=again"]
    assert not made.warnings
    assert len(counted["guarded"].calls) == 1


def test_ten_thousand_arms_over_training_options(tmp_path: Path, counted: dict[str, Counter]) -> None:
    rates = [round(1e-4 * index, 6) for index in range(1, 101)]
    decays = [round(1e-3 * index, 6) for index in range(1, 101)]
    factors = (
        f"rate: {{path: training.optimizer.lr, levels: {rates}}}\n"
        f"  decay: {{path: training.optimizer.weight_decay, levels: {decays}}}"
    )
    made = make_plan(load(write(tmp_path, (FACTORS, factors), ("seeds: 6", "design: full\nseeds: 1"))))
    assert len({arm["id"] for arm in made.arms}) == len(made.trials) == 10_000
    assert {(arm["levels"]["rate"], arm["levels"]["decay"]) for arm in made.arms} == {
        (rate, decay) for rate in rates for decay in decays
    }
    assert all(arm["config"]["training"]["optimizer"]["lr"] == arm["levels"]["rate"] for arm in made.arms)
    assert [len(counted[name].calls) for name in ("guarded", "run", "built")] == [1, 1, 2]
    assert made.arms[0]["name"] == "baseline"


def test_too_many_trials_are_refused_before_any_arm_is_made(tmp_path: Path) -> None:
    tune = "tune: {params: {training.optimizer.lr: {log: [1e-4, 1e-2], n: 5}}, seeds: [100, 101]}\nseeds: 6"
    path = write(tmp_path, ("seeds: 6", tune), ("steps: 20", "steps: 20, max_trials: 47"))
    with pytest.raises(RefusedError) as caught:
        load(path)
    assert str(caught.value) == (
        "refused: the design `one_at_a_time` makes 3 arms, with 6 seeds and 10 tuning trials each 48 trials, and "
        "`budget.max_trials` is 47"
    )
    assert len(make_plan(load(path, sets=["budget.max_trials=48"])).arms) == 3
