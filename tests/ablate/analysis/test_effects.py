from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from ablate.analysis.effects import COLUMNS, effects
from ablate.analysis.results import Results
from ablate.records import frames
from tests.study_maker import Outcome, make_study

TWO = {"placement": ["pre", "post", "none"]}


def table(values: Mapping[str, list[float]]) -> Outcome:
    """Outcomes by arm, one a seed."""
    return lambda name, levels, seed: values[name][seed]


def by_name(study: Path, metric: str | None = None) -> dict[str, dict[str, Any]]:
    frame = Results(study).effects(metric)
    return {row["name"]: {str(k): v for k, v in row.items()} for row in frame.to_dict("records")}


def test_an_effect_by_hand(tmp_path: Path) -> None:
    values = {"baseline": [1.0, 2.0, 3.0], "placement=post": [2.0, 4.0, 6.0], "placement=none": [1.5, 2.5, 3.5]}
    study = make_study(tmp_path / "study", factors=TWO, seeds=3, outcomes=table(values))
    got = by_name(study)["placement=post"]
    # differences 1, 2, 3: mean 2, sd 1; two arms are planned, so t(2, 1 - 0.05 / 4) = 6.2053
    assert (got["pairs"], got["planned"], got["agree"]) == (3, 3, 3)
    assert (got["mean"], got["sd"], got["baseline_mean"], got["effect"]) == (4.0, 2.0, 2.0, 2.0)
    assert got["high"] - 2 == pytest.approx(6.205347 / math.sqrt(3), rel=1e-6)
    assert got["high95"] - 2 == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert got["p"] == pytest.approx(0.0741799, rel=1e-5)
    assert got["p_sign_flip"] == 0.25
    assert got["correlation"] == pytest.approx(1.0)
    assert got["variance_ratio"] == pytest.approx(1 / (4 + 1))
    assert got["verdict"] == "undecided"


def test_the_columns_are_the_documented_ones(tmp_path: Path) -> None:
    frame = Results(make_study(tmp_path / "study", seeds=2)).effects()
    assert tuple(frame.columns) == COLUMNS
    assert list(frame["name"]) == ["placement=post", "scale=off", "residual=none", "ratio=1", "ratio=2"]


def test_effects_agree_with_scipy_and_statsmodels(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", diverged=[("placement=post", 3)])
    trials = frames.trials(study)
    wide = trials.pivot(index="seed", columns="name", values="val/loss")
    got = Results(study).effects().set_index("name")
    p = []
    for name, row in got.iterrows():
        pair = wide[["baseline", str(name)]].dropna()
        test = stats.ttest_rel(pair[str(name)], pair["baseline"])
        interval = test.confidence_interval(1 - 0.05 / 5)
        p.append(test.pvalue)
        assert row["p"] == pytest.approx(test.pvalue)
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
    assert list(got["p_holm"]) == pytest.approx(list(multipletests(p, method="holm")[1]))
    post = got.loc["placement=post"]
    assert (post["pairs"], post["planned"], post["diverged"]) == (5, 6, 1)
    assert (post["diverged_low"], post["diverged_high"]) == pytest.approx(proportion_confint(1, 6, method="wilson"))


def test_the_family_is_the_arms_planned_even_before_they_ran(tmp_path: Path) -> None:
    late = [("placement=none", seed) for seed in range(4)]
    study = make_study(tmp_path / "study", factors=TWO, seeds=4, waiting=late)
    got = by_name(study)
    differences = np.diff(frames.trials(study).pivot(index="seed", columns="name", values="val/loss")
                          [["baseline", "placement=post"]].to_numpy())[:, 0]  # fmt: skip
    half = stats.t.ppf(1 - 0.05 / 4, 3) * differences.std(ddof=1) / 2
    assert got["placement=post"]["high"] == pytest.approx(differences.mean() + half)
    assert (got["placement=none"]["pairs"], got["placement=none"]["verdict"]) == (0, "undecided")
    assert math.isnan(got["placement=none"]["effect"])


def test_only_seeds_that_completed_in_both_are_pairs(tmp_path: Path) -> None:
    values = {"baseline": [1.0, 1.0, 1.0, 9.0], "placement=post": [2.0, 9.0, 4.0, 9.0], "placement=none": [1.0] * 4}
    study = make_study(
        tmp_path / "study", factors=TWO, seeds=4, outcomes=table(values), failed=[("placement=post", 1)],
        waiting=[("baseline", 3)],
    )  # fmt: skip
    got = by_name(study)["placement=post"]
    assert (got["pairs"], got["effect"], got["mean"], got["baseline_mean"]) == (2, 2.0, 3.0, 1.0)


def test_unmatched_arms_have_their_differences_in_percent(tmp_path: Path) -> None:
    got = by_name(make_study(tmp_path / "study", seeds=2))
    assert got["placement=post"]["parameters_delta"] == 0
    # ratio 4 -> 1 takes half of a block's 12 d^2 weights away
    assert got["ratio=1"]["flops_delta"] == pytest.approx(-50)
    assert got["ratio=1"]["parameters_delta"] == pytest.approx(100 * (89984 / 163712 - 1))
    assert abs(got["ratio=1"]["speed_delta"]) < 10


def test_an_undecided_effect_says_how_many_seeds_would_settle_it(tmp_path: Path) -> None:
    values = {"baseline": [1.0] * 6, "placement=post": [0.9, 1.06, 0.92, 1.05, 0.93, 1.02], "placement=none": [2.0] * 6}
    got = by_name(make_study(tmp_path / "study", factors=TWO, outcomes=table(values)))
    post = got["placement=post"]
    assert (post["verdict"], post["settle"] > 6) == ("undecided", True)
    assert post["low"] < 0 < post["high"]
    sentence = next(v.sentence for v in Results(tmp_path / "study").verdicts() if v.name == "placement=post")
    assert f"about {post['settle']} seeds would settle it" in sentence
    assert got["placement=none"]["settle"] is None or math.isnan(got["placement=none"]["settle"])


def test_two_pairs_do_not_say_how_many_seeds_would_settle_it(tmp_path: Path) -> None:
    values = {"baseline": [1.0] * 2, "placement=post": [0.9, 1.06], "placement=none": [2.0, 1.0]}
    study = make_study(tmp_path / "study", factors=TWO, seeds=2, outcomes=table(values))
    assert by_name(study)["placement=post"]["verdict"] == "undecided"
    assert Results(study).effects()["settle"].isna().all()
    assert not any("would settle it" in verdict.sentence for verdict in Results(study).verdicts())


def test_an_arm_whose_every_run_failed_has_no_data(tmp_path: Path) -> None:
    lost = {("placement=post", seed) for seed in range(3)}
    study = make_study(tmp_path / "study", factors=TWO, seeds=3, failed=lost)
    said = {verdict.name: verdict.sentence for verdict in Results(study).verdicts()}
    assert said["placement=post"] == "placement=post is undecided: no data: 3 of 3 seeds failed."
    whole = make_study(tmp_path / "whole", factors=TWO, seeds=2, failed={("baseline", 0), ("baseline", 1)})
    sentences = [verdict.sentence for verdict in Results(whole).verdicts()]
    assert all(sentence.endswith("is undecided: no data: 2 of 2 seeds of baseline failed.") for sentence in sentences)


def test_more_is_better_where_the_goal_is_max(tmp_path: Path) -> None:
    study = make_study(
        tmp_path / "study", factors=TWO, metric="val/accuracy", goal="max",
        outcomes={"baseline": 0.5, "placement=post": 0.7, "placement=none": 0.3},
    )  # fmt: skip
    got = by_name(study)
    assert got["placement=post"]["effect"] > 0
    assert (got["placement=post"]["verdict"], got["placement=none"]["verdict"]) == ("better", "worse")


def test_a_secondary_metric_has_intervals_and_no_verdict(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", seeds=3)
    loss, bits = by_name(study)["scale=off"], by_name(study, "val/bits_per_char")["scale=off"]
    assert bits["effect"] == pytest.approx(loss["effect"] / math.log(2))
    assert bits["low"] == pytest.approx(loss["low"] / math.log(2))
    assert bits["verdict"] == ""


def test_stuck_trials_are_counted_by_arm(tmp_path: Path) -> None:
    got = by_name(make_study(tmp_path / "study", seeds=3))
    assert {name: row["stuck"] for name, row in got.items() if row["stuck"]} == {"residual=none": 3}


def test_a_single_arm_is_a_family_of_one(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", factors={"placement": ["pre", "post"]})
    got = by_name(study)["placement=post"]
    assert (got["low"], got["high"], got["p"]) == (got["low95"], got["high95"], got["p_holm"])


def test_a_plan_of_the_baseline_alone_has_no_effects(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", factors={"placement": ["pre"]}, seeds=2)
    plan = frames.read_plan(study)
    assert effects(plan, frames.trials(study)).empty
    assert Results(study).verdicts() == []
    assert Results(study).caveats()


@pytest.mark.parametrize("level", [None, 1.0, True, "null", "<b>"])
def test_an_arm_of_any_level_has_its_effect(tmp_path: Path, level: object) -> None:
    study = make_study(tmp_path / "study", factors={"width": [1, level]}, seeds=3)
    assert len(by_name(study)) == 1
    assert next(iter(by_name(study).values()))["pairs"] == 3
