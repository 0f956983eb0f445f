from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ablate.analysis.results import Results
from ablate.analysis.sensitivity import COLUMNS, RUNS, sets_rate
from ablate.experiment import load
from ablate.planning import make_plan
from ablate.reporting import sweeps
from ablate.reporting.study import Study
from tests.study_maker import INITIAL, RATE, Outcome, make_study

RATES = [1e-2, 1e-3, 1e-1]
NAN = math.nan


def swept(values: Mapping[float, list[float]]) -> Outcome:
    """Outcomes by learning rate, one a seed; as a tuning trial's, by the seeds from 100."""
    return lambda name, levels, seed: values[levels["lr"]][seed % 100]


def study(folder: Path, values: Mapping[float, list[float]], **options: Any) -> Results:
    seeds = len(next(iter(values.values())))
    factors = {"factors": {"lr": list(values)}, "seeds": seeds}
    return Results(make_study(folder / "study", outcomes=swept(values), **{**factors, **options}))


def row(results: Results, architecture: str = "baseline") -> dict[str, Any]:
    frame = results.sensitivity()
    assert tuple(frame.columns) == COLUMNS
    (found,) = frame[frame["architecture"] == architecture].to_dict("records")
    return {str(key): value for key, value in found.items()}


def test_sensitivity_by_hand(tmp_path: Path) -> None:
    results = study(tmp_path, {1e-2: [1.0, 1.2], 1e-3: [2.0, 2.2], 1e-1: [NAN, 1.6]})
    got = row(results)
    # The diverged run counts as the loss at initialisation, 4.9; the means are 2.1, 1.1 and 3.25.
    assert (got["best"], got["best_value"], got["edge"]) == (1e-2, pytest.approx(1.1), "")
    first, second = (2.0 + 1.0 + INITIAL) / 3 - 1.0, (2.2 + 1.2 + 1.6) / 3 - 1.2
    assert got["sensitivity"] == pytest.approx((first + second) / 2) == pytest.approx(1.05)
    assert got["high95"] - got["sensitivity"] == pytest.approx(12.7062 * (first - second) / 2, rel=1e-5)
    assert got["low95"] == pytest.approx(2 * got["sensitivity"] - got["high95"])
    assert (got["max_stable_lr"], got["diverged"], got["runs"]) == (1e-2, 1, 6)
    assert (got["rates"], got["low_rate"], got["high_rate"], got["seeds"], got["planned"]) == (3, 1e-3, 1e-1, 2, 2)
    assert (got["capped"], got["source"], got["pruned"], got["missing"]) == (True, "factor", 0, 0)
    runs = results.learning_rates()
    assert tuple(runs.columns) == RUNS
    assert sorted(runs["rate"]) == [1e-3, 1e-3, 1e-2, 1e-2, 1e-1, 1e-1]


def test_a_loss_above_that_at_the_start_counts_as_that(tmp_path: Path) -> None:
    got = row(study(tmp_path, {1e-2: [1.0], 1e-3: [2.0], 1e-1: [9.0]}))
    assert got["sensitivity"] == pytest.approx((1.0 + 2.0 + INITIAL) / 3 - 1.0)
    assert math.isnan(got["low95"]) and math.isnan(got["high95"])  # one seed has no interval
    assert got["max_stable_lr"] == 1e-1


def test_the_good_range_is_what_lies_around_the_best_within_what_matters(tmp_path: Path) -> None:
    values = {1e-4: [1.01], 1e-3: [1.5], 3e-3: [1.02], 1e-2: [1.0], 3e-2: [1.01], 1e-1: [NAN]}
    got = row(study(tmp_path, values))
    assert (got["good_low"], got["good_high"], got["good_rates"]) == (3e-3, 3e-2, 3)


def test_a_best_rate_at_the_edge_is_said(tmp_path: Path) -> None:
    results = study(tmp_path, {1e-2: [1.5], 1e-3: [1.0], 1e-1: [2.0]})
    assert row(results)["edge"] == "the lowest that was tried"
    said = "The best learning rate of {}, 0.001, is the lowest that was tried: a better one may lie beyond it."
    assert said.format("the model") in results.caveats()
    assert "peak learning rate 0.001 to 0.1)" in results.caveats()[0]
    values = {1e-2: [1.5], 1e-3: [1.0], 1e-1: [2.0]}
    beside = study(tmp_path / "beside", values, factors={"lr": list(values), "placement": ["pre"]})
    assert said.format("placement=pre") in beside.caveats()
    two = study(tmp_path / "two", {1e-2: [1.5], 1e-3: [1.0]})  # of two rates one is always at the edge
    assert not [caveat for caveat in two.caveats() if "best learning rate" in caveat]


def test_an_architecture_is_an_arm_without_its_rate(tmp_path: Path) -> None:
    def outcome(name: str, levels: Mapping[str, Any], seed: int) -> float:
        null = "placement" in levels and levels["placement"] is None
        return 1.0 + float(levels["lr"] > 1e-2) + 0.5 * float(levels["lr"] < 1e-2) + (0.25 if null else 0.0)

    factors: dict[str, list[Any]] = {"placement": ["pre", None], "lr": RATES}
    results = Results(make_study(tmp_path / "full", design="full", factors=factors, seeds=2, outcomes=outcome))
    assert list(results.sensitivity()["architecture"]) == ["baseline", "placement=null"]
    assert row(results, "placement=null")["best_value"] == 1.25
    # A level that was run at the baseline's rate alone has no sweep.
    alone = Results(make_study(tmp_path / "alone", factors=factors, seeds=2, outcomes=outcome))
    assert list(alone.sensitivity()["architecture"]) == ["baseline"]


def test_without_a_loss_at_the_start_nothing_is_capped(tmp_path: Path) -> None:
    options = {"metric": "val/accuracy", "goal": "max", "smallest_effect": 0.05}
    whole = row(study(tmp_path, {1e-2: [0.9], 1e-3: [0.8], 1e-1: [0.5]}, **options))
    assert (whole["best"], whole["best_value"], whole["capped"]) == (1e-2, 0.9, False)
    assert whole["sensitivity"] == pytest.approx(0.9 - (0.9 + 0.8 + 0.5) / 3)
    lost = row(study(tmp_path / "lost", {1e-2: [0.9], 1e-3: [0.8], 1e-1: [NAN]}, **options))
    assert math.isnan(lost["sensitivity"]) and lost["seeds"] == 1
    assert (lost["best"], lost["max_stable_lr"], lost["diverged"]) == (1e-2, 1e-2, 1)


def test_where_every_run_diverged_nothing_is_made_up(tmp_path: Path) -> None:
    factors: dict[str, list[Any]] = {"placement": ["pre", "post"], "lr": RATES}
    results = Results(make_study(
        tmp_path / "study", design="full", factors=factors, seeds=1, metric="val/accuracy", goal="max",
        outcomes=lambda name, levels, seed: NAN if levels["placement"] == "post" else levels["lr"],
    ))  # fmt: skip
    got = row(results, "placement=post")
    assert math.isnan(got["best"]) and math.isnan(got["sensitivity"]) and math.isnan(got["max_stable_lr"])
    assert (got["edge"], got["good_rates"], got["diverged"]) == ("", 0, 3)


def test_a_seed_that_lacks_a_rate_does_not_count_for_the_sensitivity(tmp_path: Path) -> None:
    values = {1e-2: [1.0, 1.0], 1e-3: [2.0, 3.0], 1e-1: [3.0, 3.0]}
    got = row(study(tmp_path, values, failed={("lr=0.1", 1)}))
    assert (got["seeds"], got["planned"], got["missing"]) == (1, 2, 1)
    assert got["sensitivity"] == pytest.approx(1.0)


THREE = {1e-3: 2.0, 3e-3: 1.9, 1e-2: 2.05}
EASY = {rate: [mean - 0.5, mean, mean + 0.5] for rate, mean in THREE.items()}
"""What a rate does is a tenth of what a seed does; the first seed is the easiest."""


@pytest.mark.parametrize("gone", ["failed", "waiting"])
def test_rates_are_compared_on_the_seeds_that_have_them_all(tmp_path: Path, gone: str) -> None:
    lost: dict[str, Any] = {gone: {("lr=0.01", 1), ("lr=0.01", 2)}}
    results = study(tmp_path, EASY, **lost)
    got = row(results)
    # By all that ended, 0.01 would have the best mean: that of the easiest seed.
    assert (got["best"], got["best_value"], got["edge"]) == (3e-3, pytest.approx(1.4), "")
    assert (got["seeds"], got["planned"], got["missing"], got["left_out"]) == (1, 3, 2, "")
    assert got["sensitivity"] == pytest.approx((0.1 + 0 + 0.15) / 3)
    assert not [caveat for caveat in results.caveats() if "best learning rate" in caveat]


def test_without_a_seed_that_has_every_rate_none_is_best(tmp_path: Path) -> None:
    got = row(study(tmp_path, EASY, failed={("baseline", 0), ("lr=0.003", 1), ("lr=0.01", 2)}))
    assert math.isnan(got["best"]) and math.isnan(got["best_value"]) and math.isnan(got["sensitivity"])
    assert (got["edge"], got["good_rates"], got["seeds"], got["rates"]) == ("", 0, 0, 3)
    assert got["max_stable_lr"] == 1e-2


def test_a_rate_that_no_seed_ended_at_is_left_out_and_named(tmp_path: Path) -> None:
    results = study(tmp_path, EASY, failed={("lr=0.01", seed) for seed in range(3)})
    got = row(results)
    assert (got["rates"], got["high_rate"], got["left_out"], got["seeds"]) == (2, 3e-3, "0.01", 3)
    assert got["sensitivity"] == pytest.approx(0.05)
    assert "Left out, since no seed ended there: 0.01 of baseline." in sweeps.how(Study(results))


def test_a_largest_stable_rate_does_not_ask_for_smaller_ones(tmp_path: Path) -> None:
    assert row(study(tmp_path, {1e-3: [1.0], 1e-2: [NAN], 1e-1: [1.0]}))["max_stable_lr"] == 1e-1


def tuned(folder: Path, **tune: Any) -> Results:
    values = {1e-3: [2.0, 2.0], 1e-2: [1.0, 1.0], 1e-1: [NAN, 3.0]}
    options = {"rates": list(values), "best": {"baseline": 1e-2, "placement=post": 1e-2}, "seeds": (100, 101)}
    return study(folder, values, factors={"placement": ["pre", "post"]}, seeds=2, tune={**options, **tune})


def test_tuning_over_the_rate_alone_is_a_sweep(tmp_path: Path) -> None:
    results = tuned(tmp_path)
    assert list(results.sensitivity()["source"]) == ["tuning", "tuning"]
    got = row(results, "placement=post")
    assert got["sensitivity"] == pytest.approx((2 + 1 + (INITIAL + 3) / 2) / 3 - 1)
    assert (got["max_stable_lr"], got["seeds"]) == (1e-2, 2)


def test_what_tuning_gave_up_leaves_no_sensitivity(tmp_path: Path) -> None:
    results = tuned(tmp_path, pruned={("baseline", 1e-3)})
    got = row(results)
    assert (got["pruned"], got["seeds"], got["best"], got["rates"], got["left_out"]) == (2, 2, 1e-2, 3, "")
    assert math.isnan(got["sensitivity"])
    assert row(results, "placement=post")["seeds"] == 2


@pytest.mark.parametrize(
    "more",
    [{"method": "tpe"}, {"params": {path: {"log": [1e-3, 1e-1], "linear": None} for path in (RATE, "training.clip")}}],
)
def test_what_is_no_sweep_over_the_rate_alone_has_no_row(tmp_path: Path, more: dict[str, Any]) -> None:
    assert tuned(tmp_path, more=more).sensitivity().empty


def test_drawn_rates_are_at_an_edge_as_tuning_says(tmp_path: Path) -> None:
    values = {1.2e-3: [1.0], 1e-2: [1.5], 1e-1: [2.0]}
    tune = {"rates": list(values), "best": {"baseline": 1.2e-3, "placement=post": 1.2e-3}, "method": "random"}
    got = row(study(tmp_path, values, factors={"placement": ["pre", "post"]}, tune=tune))
    assert got["edge"] == "near the lower end of its range"


def test_a_plan_says_which_factor_is_the_learning_rate(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(
        "name: small\n"
        "question: q\n"
        "task: {kind: copy, length: 4, symbols: 4}\n"
        "model: {kind: rnn_seq2seq, width: 8, attention: none}\n"
        "training: {optimizer: {kind: adamw, lr: 1e-2}, batch: 4}\n"
        "factors:\n"
        "  rate: {path: training.optimizer.lr, levels: [1e-2, 1e-3]}\n"
        "  attention: {path: model.attention, levels: [none, luong]}\n"
        "  steps: {path: budget.steps, levels: [5, 10, 20]}\n"
        "seeds: 1\n"
        "objective: {metric: val/accuracy, goal: max, smallest_effect: 0.05}\n"
        "budget: {steps: 5}\n"
    )
    factors = make_plan(load(path)).data["factors"]
    assert {factor["name"]: sets_rate(factor) for factor in factors} == {
        "rate": True, "attention": False, "steps": False,
    }  # fmt: skip
