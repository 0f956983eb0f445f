"""The price of a plan: sums that follow from what a step takes, and warnings where it is over the budget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ablate
from ablate.experiment import load
from ablate.planning import make_plan
from ablate.planning.price import Measured, price, price_warnings, shape_of
from tests.ablate.experiment.maker import write

LEVELS = "path: model.placement, levels: [pre, post]"
TUNE = "tune: {params: {training.optimizer.lr: {log: [1e-4, 1e-2], n: 3}}, seeds: [100, 101]}\nseeds: 6"


def plan(folder: Path, *changes: tuple[str, str]) -> dict[str, Any]:
    return dict(make_plan(load(write(folder, *changes))).data)


def steps_take(made: dict[str, Any], *seconds: float, memory: int | None = 1000) -> dict[str, Measured]:
    return {shape_of(arm): Measured(step, memory) for arm, step in zip(made["arms"], seconds, strict=True)}


def test_a_measured_price_is_the_sum_over_trials_and_its_workers_share_it(tmp_path: Path) -> None:
    made = plan(tmp_path)
    cost = price(made, 4, steps_take(made, 1.0, 2.0, 4.0, memory=1000))
    assert cost.basis == "measured"
    assert list(cost.trial_seconds.values()) == [26.0, 52.0, 104.0]  # 20 steps, and 6 that are probed
    assert list(cost.trial_seconds) == [arm["id"] for arm in made["arms"]]
    assert cost.seconds == 6 * (26 + 52 + 104)
    assert (cost.workers, cost.longest) == (4, 104.0)
    assert cost.wall == pytest.approx(4 + (cost.seconds + 18 * 0.4) / 4)
    assert cost.memory == 4 * 1000


def test_there_are_no_more_workers_than_trials_and_no_sweep_is_shorter_than_its_longest_trial(tmp_path: Path) -> None:
    made = plan(tmp_path, ("seeds: 6", "seeds: 1"))
    cost = price(made, 100, steps_take(made, 1.0, 2.0, 4.0))
    assert (cost.workers, cost.wall) == (3, 4 + 0.4 + 104.0)


def test_tuning_trials_are_paid_too(tmp_path: Path) -> None:
    made = plan(tmp_path, ("seeds: 6", TUNE))
    cost = price(made, 1, steps_take(made, 1.0, 1.0, 1.0))
    assert made["tuning"]["trials"] == 6
    assert cost.seconds == 3 * (6 + 6) * 26


def test_a_repeat_of_the_baseline_is_paid_too(tmp_path: Path) -> None:
    made = plan(tmp_path, ("seeds: 6", "seeds: 1\nnoise_floor: true"))
    cost = price(made, 100, steps_take(made, 1.0, 2.0, 4.0))
    assert (cost.seconds, cost.workers) == (26 + 52 + 104 + 26, 4)


def test_a_rough_price_says_so_and_grows_with_the_arms_flops(tmp_path: Path) -> None:
    made = plan(tmp_path, (LEVELS, "path: model.feed_forward.ratio, levels: [4, 4000]"))
    cost = price(made, 2)
    base, wide, _ = cost.trial_seconds.values()
    assert cost.basis == "rough"
    assert wide > base > (20 + 6 + 10 * 3) * 0.004
    assert cost.memory > 16 * made["arms"][1]["parameters"]["total"]


def test_evaluations_and_probed_steps_are_paid_as_often_as_they_come(tmp_path: Path) -> None:
    def trial(*changes: tuple[str, str]) -> float:
        made = plan(tmp_path, *changes)
        measured = {shape_of(arm): Measured(1.0, None, evaluation_seconds=5.0) for arm in made["arms"]}
        return price(made, 1, measured).longest

    assert trial() == 20 + 6 + 10 * 5
    assert trial(("steps: 20", "steps: 20, evaluations: 2")) == 20 + 6 + 2 * 5
    assert trial(("steps: 20", "steps: 3")) == 3 + 3 + 3 * 5, "no more than one evaluation a step"
    assert trial(("seeds: 6", "probes: {every: 4}\nseeds: 6")) == 20 + 10 + 10 * 5
    assert trial(("seeds: 6", "probes: {use: []}\nseeds: 6")) == 20 + 10 * 5


def test_the_rough_price_of_the_quickstart_is_near_what_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ablate.planning.price._speed", lambda device, threads: 95e9)  # as on the machine that ran it
    cost = price(make_plan(load("experiments/quickstart.yaml")).data, 2)
    assert cost.wall == pytest.approx(245, rel=0.25)


def test_a_measured_price_of_the_quickstart_is_what_it_took() -> None:
    made = make_plan(load("experiments/quickstart.yaml")).data
    step = 400 * 0.032 / (400 + 14 + 10 * 3)  # 32 ms a step with its share of probes and evaluations
    cost = price(made, 2, {shape_of(arm): Measured(step, None, 3 * step) for arm in made["arms"]})
    assert cost.wall == pytest.approx(245, rel=0.05)


def test_a_shape_that_could_not_be_measured_is_guessed(tmp_path: Path) -> None:
    made = plan(tmp_path)
    first, *_ = made["arms"]
    cost = price(made, 1, {shape_of(first): Measured(1.0, None)})
    assert cost.basis == "partly measured"
    assert cost.trial_seconds[first["id"]] == 26.0
    assert all(0 < seconds < 26 for id, seconds in cost.trial_seconds.items() if id != first["id"])
    assert cost.memory > 400_000_000


def test_arms_share_a_shape_where_they_take_the_same_time(tmp_path: Path) -> None:
    lr = (LEVELS, "path: training.optimizer.lr, levels: [1e-2, 1e-3]")
    base, slow, off = (shape_of(arm) for arm in plan(tmp_path, lr)["arms"])
    assert base == slow != off
    batch = (LEVELS, "path: training.batch, levels: [4, 8]")
    assert len({shape_of(arm) for arm in plan(tmp_path, batch)["arms"]}) == 3


def test_workers_are_the_executors(tmp_path: Path) -> None:
    path = write(tmp_path, ("seeds: 6", "executor: {kind: local, parallel: 3}\nseeds: 6"))
    made = ablate.plan(path)
    assert made.price is not None
    assert made.price.workers == 3
    assert made.price.wall == pytest.approx(4 + (made.price.seconds + 18 * 0.4) / 3)
    assert json.loads(json.dumps(made.data)) == made.data


@pytest.mark.parametrize(
    ("budget", "step", "measured", "texts"),
    [
        (
            "gpu_hours: 0.02",
            0.5,
            True,
            ["the plan takes 0.065 hours of training, and `gpu_hours` is 0.02"],
        ),
        ("trial_timeout: 9s", 0.5, True, ["a trial takes 13 s, and `trial_timeout` is 9 s"]),
        (
            "gpu_hours: 0.02, trial_timeout: 1s",
            0.5,
            True,
            [
                "the plan takes 0.065 hours of training, and `gpu_hours` is 0.02",
                "a trial takes 13 s, and `trial_timeout` is 1 s",
            ],
        ),
        ("gpu_hours: 0.065, trial_timeout: 13s", 0.5, True, []),
        ("gpu_hours: 1e-9", 0.5, False, ["the plan takes about "]),
    ],
)
def test_what_is_over_the_budget_is_said_at_its_place(
    tmp_path: Path, budget: str, step: float, measured: bool, texts: list[str]
) -> None:
    experiment = load(write(tmp_path, ("steps: 20", f"steps: 20, {budget}")))
    made = dict(make_plan(experiment).data)
    cost = price(made, 2, steps_take(made, step, step, step) if measured else None)
    found = list(price_warnings(experiment, made, cost))
    assert len(found) == len(texts)
    for warning, text in zip(found, texts, strict=True):
        assert warning.code == "W009"
        assert warning.message.startswith(text)
        assert warning.source == f"budget: {{steps: 20, {budget}}}"
        assert warning.help is not None
