"""The sections on numeric factors and on both comparisons of what was tuned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ablate.analysis.results import Results
from ablate.reporting import write
from ablate.reporting.study import Study
from ablate.reporting.sweeps import rates_table
from ablate.reporting.tuning import forest_rows, tuning_table
from ablate_plugins.section.design import LearningRate, Trends
from ablate_plugins.section.fairness import Tuning
from tests.study_maker import HOSTILE, RATE, make_study

RATES = [1e-2, 1e-3, 3e-3, 3e-2, 1e-1]


def bowl(name: str, levels: Mapping[str, Any], seed: int) -> float:
    """Best at 0.01 for the baseline, lower for the others, which diverge at the highest rates."""
    rate, base = levels["lr"], levels.get("placement", "pre") == "pre"
    if rate > 1e-2 and not base:
        return math.nan
    return 1.5 + (math.log10(rate) - (-2 if base else -3)) ** 2 / 8 + 0.01 * seed


def page(folder: Path, **study: Any) -> str:
    results = Results(make_study(folder / "study", **({"seeds": 2, "steps": 40} | study)))
    return write(results, [LearningRate(), Trends(), Tuning()]).read_text(encoding="utf-8")


def records(folder: Path, **study: Any) -> list[Mapping[str, Any]]:
    return list(rates_table(Study(Results(make_study(folder / "study", seeds=2, steps=40, **study)))).records)


def test_a_sweep_has_a_curve_and_a_row_an_architecture(tmp_path: Path) -> None:
    factors = {"placement": ["pre", HOSTILE], "lr": RATES}
    text = page(tmp_path, design="full", factors=factors, outcomes=bowl)
    assert "<h2" in text and ">Learning rate<" in text
    for part in ("best 0.01", "best 0.001", "✕ 2", "the lowest that was tried", "at least 0.1", "Wortsman 2023"):
        assert part in text, part
    assert "<script>alert" not in text
    assert "Triangles" not in text
    assert ">Trends<" not in text and ">Tuning<" not in text


def test_runs_beyond_the_axis_are_counted(tmp_path: Path) -> None:
    def outcome(name: str, levels: Mapping[str, Any], seed: int) -> float:
        return 4.5 if levels["lr"] > 3e-2 else 1.5 + levels["lr"] + 0.01 * seed

    text = page(tmp_path, factors={"lr": RATES}, outcomes=outcome)
    assert "▲ 2" in text and "Triangles count those beyond the axis." in text


def test_the_table_of_rates(tmp_path: Path) -> None:
    base, post = records(tmp_path, design="full", factors={"placement": ["pre", "post"], "lr": RATES}, outcomes=bowl)
    assert (base["swept"], base["best"], base["edge"], base["seeds"]) == ("5 rates, 0.001 to 0.1", "0.01", "no", "2/2")
    assert (base["good"], post["good"]) == ("that rate alone", "that rate alone")
    assert (post["best"], post["edge"], post["stable"]) == ("0.001", "the lowest that was tried", "0.01")
    assert (base["stable"], base["diverged"], post["diverged"]) == ("at least 0.1", "0", "4")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"method": "tpe"}, "No curve over the learning rate: TPE tries most rates near the best"),
        (
            {"params": {path: {"log": [1e-3, 1e-1], "linear": None} for path in (RATE, "training.clip")}},
            "No curve over the learning rate: it was tuned together with training.clip.",
        ),
    ],
)
def test_where_tuning_gives_no_curve_the_reason_is_there(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    tune = {"rates": [1e-3, 1e-2], "best": {"baseline": 1e-2, "placement=post": 1e-3}, "more": more}
    assert said in page(tmp_path, factors={"placement": ["pre", "post"]}, outcomes=bowl, tune=tune)


def test_what_is_not_given_is_said(tmp_path: Path) -> None:
    tune = {"rates": [1e-3, 1e-2], "best": {"baseline": 1e-2, "placement=post": 1e-3}, "pruned": {("baseline", 1e-3)}}
    text = page(tmp_path, factors={"placement": ["pre", "post"]}, outcomes=bowl, tune=tune)
    assert "Not given for baseline: a rate was given up early in every seed." in text
    accuracy = page(
        tmp_path / "max", factors={"lr": RATES}, metric="val/accuracy", goal="max",
        outcomes=lambda name, levels, seed: math.nan if levels["lr"] > 3e-2 else 0.5 + levels["lr"],
    )  # fmt: skip
    assert "without a cap, since nothing says what val/accuracy is at initialisation" in accuracy
    assert "Not given for baseline: a run diverged, and nothing says what that counts as." in accuracy


def test_an_architecture_of_which_nothing_ended_has_no_numbers(tmp_path: Path) -> None:
    lost = {(f"placement=post, lr={rate:g}", seed) for rate in RATES for seed in range(2)}
    factors: dict[str, list[Any]] = {"placement": ["pre", "post"], "lr": RATES}
    study: dict[str, Any] = {"design": "full", "factors": factors, "outcomes": bowl, "waiting": lost}
    _, post = records(tmp_path, **study)
    assert (post["swept"], post["best"], post["stable"], post["seeds"]) == ("", "", "", "0/2")
    text = page(tmp_path / "page", **study)
    assert "Left out, since no seed ended there: 0.001, 0.003, 0.01, 0.03, 0.1 of placement=post." in text
    assert "Not given for placement=post: no seed has a value at every rate." in text


def test_levels_at_the_ends_of_all_numbers_are_drawn(tmp_path: Path) -> None:
    levels = [1e308, 5e-324, 1.0]
    text = page(tmp_path, factors={"width": levels}, outcomes=lambda name, levels, seed: 2 + 0.1 * seed)
    assert "width: slope +0.00" in text and 'id="trends' in text


def test_trends_are_sentences_and_a_figure(tmp_path: Path) -> None:
    def outcome(name: str, levels: Mapping[str, Any], seed: int) -> float:
        return 2.0 / math.sqrt(levels["width"]) + 0.001 * seed

    text = page(tmp_path, factors={"width": [4, 1, 2], "x<b>": [1, 2, 4]}, outcomes=outcome)
    assert ">Trends<" in text and "width: slope -0.49" in text
    assert "doubling x&lt;b&gt; changes val/loss by" in text
    assert ">Learning rate<" not in text
    lost = page(tmp_path / "lost", factors={"width": [4, 1, 2]}, outcomes=lambda name, levels, seed: math.nan)
    assert "width: no trend, since fewer than 3 levels have every trial in a seed." in lost


def test_both_comparisons_are_in_the_table_and_in_a_figure(tmp_path: Path) -> None:
    differences = {("placement=post", 1e-2): 0.25, ("placement=post", 1e-3): -0.25}

    def outcome(name: str, levels: Mapping[str, Any], seed: int) -> float:
        return 1.0 + seed + differences.get((name, levels["lr"]), 0.0)

    tune = {"rates": [1e-3, 1e-2, 1e-1], "best": {"baseline": 1e-2, "placement=post": 1e-3}}
    made = make_study(tmp_path / "study", factors={"placement": ["pre", "post"]}, outcomes=outcome, tune=tune)
    study = Study(Results(made))
    base, post = tuning_table(study).records
    assert (post["own"], post["own_low"], post["again"]) == ("-0.250", "-0.250", "+0.250")
    assert (post["turns"], base["turns"], base["own"]) == ("the verdict", "", "")
    assert [(row.name, row.effect, row.indent) for row in forest_rows(study)] == [
        ("placement=post", -0.25, False), ("at the baseline's", 0.25, True),
    ]  # fmt: skip
    text = write(study.results, [Tuning()]).read_text(encoding="utf-8")
    assert "best for the baseline (lr=0.01)" in text
    assert "lr: the lowest that was tried" in text


def test_arms_that_chose_the_baselines_values_need_no_second_comparison(tmp_path: Path) -> None:
    tune = {"rates": [1e-3, 1e-2, 1e-1], "best": {"baseline": 1e-2, "placement=post": 1e-2}}
    text = page(tmp_path, factors={"placement": ["pre", "post"]}, outcomes=bowl, tune=tune)
    assert "At the baseline's values and at each arm's own" not in text.replace("&#39;", "'")
