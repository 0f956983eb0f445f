from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from ablate.analysis.results import Results
from ablate.records import frames
from ablate.records.layout import StudyFolder
from tests.study_maker import make_study, noise

SQUARE = {"a": ["x", "y"], "b": ["p", "q"]}


def additive(name: str, levels: Mapping[str, Any], seed: int) -> float:
    """Two factors that add up, with an interaction of 0.4 where both are changed, and noise of the seed."""
    a, b = bool(levels["a"] != "x"), bool(levels["b"] != "p")
    return 1.0 + 0.3 * a + 0.1 * b + 0.4 * (a and b) + 0.01 * seed + noise(name, seed, shared=0, own=0.01)


def additive_only(name: str, levels: Mapping[str, Any], seed: int) -> float:
    return 1.0 + 0.3 * bool(levels["a"] != "x") + noise(name, seed)


def by_name(frame: Any) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in frame.to_dict("records")}


def test_effects_by_hand(tmp_path: Path) -> None:
    cells = {("x", "p"): [1.0, 1.1], ("x", "q"): [1.2, 1.4], ("y", "p"): [1.5, 1.7], ("y", "q"): [2.0, 2.5]}
    study = make_study(
        tmp_path / "study", design="full", factors=SQUARE, seeds=2,
        outcomes=lambda name, levels, seed: cells[levels["a"], levels["b"]][seed],
    )  # fmt: skip
    results = Results(study)
    main = by_name(results.main_effects())
    # a: seed 0 (0.5 + 0.8) / 2, seed 1 (0.6 + 1.1) / 2; b: (0.2 + 0.5) / 2, (0.3 + 0.8) / 2
    assert main["a=y"]["effect"] == pytest.approx((0.65 + 0.85) / 2)
    assert main["b=q"]["effect"] == pytest.approx((0.35 + 0.55) / 2)
    assert (main["a=y"]["against"], main["a=y"]["cells"], main["a=y"]["seeds"]) == ("x", 2, 2)
    interaction = by_name(results.interactions())["a=y with b=q"]
    assert interaction["effect"] == pytest.approx(((0.8 - 0.5) + (1.1 - 0.6)) / 2)
    simple = by_name(results.simple_effects())
    assert simple["a=y at b=p"]["effect"] == pytest.approx((0.5 + 0.6) / 2)
    assert simple["a=y at b=q"]["effect"] == pytest.approx((0.8 + 1.1) / 2)
    assert simple["b=q at a=x"]["effect"] == pytest.approx((0.2 + 0.3) / 2)
    assert simple["b=q at a=y"]["effect"] == pytest.approx((0.5 + 0.8) / 2)
    assert (simple["b=q at a=y"]["at_factor"], simple["b=q at a=y"]["at_level"]) == ("a", "y")


def test_effects_agree_with_an_analysis_of_variance(tmp_path: Path) -> None:
    """The same effects by least squares; each contrast against its own interaction with the seeds."""
    study = make_study(tmp_path / "study", design="full", factors=SQUARE, outcomes=additive)
    frame = frames.trials(study).rename(columns={"val/loss": "loss", "factor.a": "a", "factor.b": "b"})
    frame["block"] = frame["seed"].astype(str)
    fit = ols("loss ~ C(a, Sum) * C(b, Sum) + C(block)", frame).fit()
    main, both = by_name(Results(study).main_effects()), by_name(Results(study).interactions())
    assert main["a=y"]["effect"] == pytest.approx(-2 * fit.params["C(a, Sum)[S.x]"])
    assert main["b=q"]["effect"] == pytest.approx(-2 * fit.params["C(b, Sum)[S.p]"])
    assert both["a=y with b=q"]["effect"] == pytest.approx(4 * fit.params["C(a, Sum)[S.x]:C(b, Sum)[S.p]"])
    wide = ols("loss ~ C(a) * C(block) + C(b) * C(block) + C(a):C(b)", frame).fit()
    sums = anova_lm(wide, typ=2)["sum_sq"]
    eta2 = sums["C(a)"] / (sums["C(a)"] + sums["C(a):C(block)"])
    assert main["a=y"]["partial_eta2"] == pytest.approx(eta2)


def test_each_family_has_its_own_simultaneous_intervals(tmp_path: Path) -> None:
    from scipy import stats

    study = make_study(tmp_path / "study", design="full", seeds=5)
    results = Results(study)
    for frame, family in ((results.main_effects(), 4), (results.interactions(), 6), (results.simple_effects(), 24)):
        assert len(frame) == family
        ratio = stats.t.ppf(1 - 0.05 / (2 * family), 4) / stats.t.ppf(0.975, 4)
        widths = (frame["high"] - frame["low"]) / (frame["high95"] - frame["low95"])
        assert np.allclose(widths, ratio)


def test_simple_effects_are_judged_where_an_interaction_is_large(tmp_path: Path) -> None:
    """The factorial of the shipped experiment: without residuals everything is at the ceiling."""
    results = Results(make_study(tmp_path / "study", design="full"))
    large = by_name(results.interactions())
    assert {name for name, row in large.items() if row["large"]} == {
        "residual=none with scale=off", "residual=none with placement=post", "residual=none with ratio=1"
    }  # fmt: skip
    words = {verdict.name: verdict.word for verdict in results.verdicts()}
    assert words["scale=off at residual=add"] == "worse"
    assert words["scale=off at residual=none"] == "no practical difference"
    assert "scale=off at placement=post" not in words
    assert len(words) == 4 + 3 * 4
    verdicts = {verdict.name: verdict for verdict in results.verdicts()}
    assert verdicts["scale=off"].kind == "main effect"
    assert verdicts["scale=off at residual=add"].kind == "simple effect"
    assert verdicts["scale=off"].sentence.endswith("; it depends on residual, see its simple effects.")
    assert "on average over 8 cells [95% simultaneous CI" in verdicts["scale=off"].sentence
    assert "it is stuck: 48 of 48 trials end within 0.05 nats" in verdicts["residual=none"].sentence


def test_an_interaction_is_large_only_beyond_the_smallest_effect_that_matters(tmp_path: Path) -> None:
    first = Results(make_study(tmp_path / "one", design="full", factors=SQUARE, outcomes=additive))
    assert list(first.interactions()["large"]) == [True]
    assert list(first.simple_effects()["judged"]) == [True] * 4
    coarse = make_study(tmp_path / "two", design="full", factors=SQUARE, outcomes=additive, smallest_effect=0.6)
    assert list(Results(coarse).interactions()["large"]) == [False]
    assert len(Results(coarse).verdicts()) == 2


def test_without_interaction_only_main_effects_are_judged(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", design="full", factors=SQUARE, outcomes=additive_only)
    assert {verdict.name: verdict.word for verdict in Results(study).verdicts()}["a=y"] == "worse"
    assert len(Results(study).verdicts()) == 2


def test_a_missing_trial_is_named_and_its_seed_left_out(tmp_path: Path) -> None:
    study = make_study(
        tmp_path / "study", design="full", factors=SQUARE, outcomes=additive, failed=[("a=y, b=q", 2)],
        waiting=[("a=x, b=q", 4)],
    )  # fmt: skip
    results = Results(study)
    main = by_name(results.main_effects())["a=y"]
    assert (main["seeds"], main["planned"], main["cells"]) == (4, 6, 2)
    assert main["left_out"] == "seed 2 (a=y, b=q: failed); seed 4 (a=x, b=q: waiting)"
    simple = by_name(results.simple_effects())
    assert (simple["a=y at b=p"]["seeds"], simple["a=y at b=p"]["left_out"]) == (6, "")
    assert any(caveat.startswith("The main effect of a=y leaves out seed 2 (") for caveat in results.caveats())


def test_a_cell_that_mostly_diverged_is_named_and_left_out(tmp_path: Path) -> None:
    gone = [("a=y, b=q", seed) for seed in range(4)]
    study = make_study(tmp_path / "study", design="full", factors=SQUARE, outcomes=additive, diverged=gone)
    results = Results(study)
    main = by_name(results.main_effects())["a=y"]
    assert (main["seeds"], main["cells"], main["cells_planned"], main["diverged"]) == (6, 1, 2, 4)
    assert main["left_out"] == "b=q (diverged in 4 of 6 seeds)"
    assert main["effect"] == pytest.approx(by_name(results.simple_effects())["a=y at b=p"]["effect"])
    assert by_name(results.simple_effects())["a=y at b=q"]["verdict"] == "diverged"
    sentence = next(v.sentence for v in results.verdicts() if v.name == "a=y")
    assert sentence.startswith("4 of 12 trials of a=y diverged; among those that finished it is worse than a=x by")


def test_a_level_that_diverges_in_places_is_never_better(tmp_path: Path) -> None:
    def good(name: str, levels: Mapping[str, Any], seed: int) -> float:
        return 1.0 - 0.5 * bool(levels["a"] == "y") + noise(name, seed)

    study = make_study(
        tmp_path / "study", design="full", factors=SQUARE, outcomes=good, diverged=[("a=y, b=q", 0)]
    )  # fmt: skip
    assert by_name(Results(study).main_effects())["a=y"]["verdict"] == "undecided"


def test_a_reference_that_diverged_where_the_level_did_not_is_not_comparable(tmp_path: Path) -> None:
    study = make_study(
        tmp_path / "study", design="full", factors=SQUARE, outcomes=additive, diverged=[("a=x, b=q", 0)]
    )  # fmt: skip
    main = by_name(Results(study).main_effects())
    assert main["a=y"]["verdict"] == "not comparable"
    verdict = next(v for v in Results(study).verdicts() if v.name == "a=y")
    assert verdict.sentence == "a=y is not comparable: a=x diverged in 1 of 12 trials."


def test_every_trial_diverged(tmp_path: Path) -> None:
    results = make_study(tmp_path / "study", design="full", factors=SQUARE, outcomes=lambda *_: math.nan, seeds=2)
    words = [verdict.word for verdict in Results(results).verdicts()]
    assert words == ["diverged", "diverged"]


def test_a_cell_that_the_plan_excludes_is_named(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", design="full", factors=SQUARE, outcomes=additive, seeds=3)
    plan = json.loads(StudyFolder(study).plan.read_text())
    gone = next(arm for arm in plan["arms"] if arm["name"] == "a=y, b=q")
    plan["arms"].remove(gone)
    plan["trials"] = [trial for trial in plan["trials"] if trial["arm"] != gone["id"]]
    plan["excluded"] = [{"levels": gone["levels"], "why": "they cannot work together"}]
    StudyFolder(study).plan.write_text(json.dumps(plan))
    results = Results(study)
    assert by_name(results.main_effects())["a=y"]["left_out"] == "b=q (not in the plan)"
    interaction = by_name(results.interactions())["a=y with b=q"]
    assert (interaction["cells"], interaction["left_out"]) == (0, "the only cell (not in the plan)")
    assert math.isnan(interaction["effect"])
    assert results.counts()["excluded"] == 3


def test_levels_of_any_type(tmp_path: Path) -> None:
    factors: dict[str, list[Any]] = {"width": [1, None, 1.0, True, "1"], "b": ["p", "q"]}
    study = make_study(tmp_path / "study", design="full", factors=factors, seeds=3)
    results = Results(study)
    main = results.main_effects()
    assert list(main["name"]) == ["width=null", "width=1.0", "width=true", 'width="1"', "b=q"]
    assert [type(level) for level in main["level"][:3]] == [type(None), float, bool]
    assert set(main["seeds"]) == {3}
    assert len(results.interactions()) == 4
    assert len(results.simple_effects()) == 4 * 2 + 1 * 5


def test_three_factors_average_over_all_others(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", design="full", seeds=2)
    main = by_name(Results(study).main_effects())
    frame = frames.trials(study)
    means = frame.groupby("factor.scale")["val/loss"].mean()
    assert main["scale=off"]["effect"] == pytest.approx(means["off"] - means["on"])
    assert main["scale=off"]["cells"] == 8


def test_other_designs_have_no_factorial_effects(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", seeds=2))
    assert results.main_effects().empty
    assert results.interactions().empty
    assert results.simple_effects().empty
    assert "verdict" in results.main_effects().columns
