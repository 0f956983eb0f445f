"""Main effects in a fraction of a design, by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ablate.analysis.results import Results
from tests.study_maker import make_study

THREE = {"a": ["x", "y"], "b": ["p", "q"], "c": ["m", "n"]}
"""The half fraction has four arms, as (a, b, c): xpm, xqn, ypn and yqm."""
VALUES = {"xpm": [1.0, 1.1, 1.2], "xqn": [1.5, 1.4, 1.8], "ypn": [2.0, 2.3, 2.2], "yqm": [2.6, 2.6, 2.9]}


def values(name: str, levels: Mapping[str, Any], seed: int) -> float:
    return VALUES["".join(levels[factor] for factor in "abc")][seed]


def fraction(folder: Path, **options: Any) -> Results:
    chosen: dict[str, Any] = {"factors": THREE, "seeds": 3, "outcomes": values} | options
    return Results(make_study(folder / "study", design="fractional", **chosen))


def by_name(frame: Any) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in frame.to_dict("records")}


def test_main_effects_are_differences_of_means_over_arms(tmp_path: Path) -> None:
    results = fraction(tmp_path)
    main = by_name(results.main_effects())
    assert list(main) == ["a=y", "b=q", "c=n"]
    # a, seed by seed: (2.0 + 2.6) / 2 - (1.0 + 1.5) / 2 and so on.
    seeds = {
        "a=y": [2.3 - 1.25, 2.45 - 1.25, 2.55 - 1.5],
        "b=q": [2.05 - 1.5, 2.0 - 1.7, 2.35 - 1.7],
        "c=n": [1.75 - 1.8, 1.85 - 1.85, 2.0 - 2.05],
    }
    for name, differences in seeds.items():
        error = np.std(differences, ddof=1) / math.sqrt(3)
        half = stats.t.ppf(1 - 0.05 / (2 * 3), 2) * error
        assert main[name]["effect"] == pytest.approx(np.mean(differences))
        assert (main[name]["low"], main[name]["high"]) == (
            pytest.approx(np.mean(differences) - half), pytest.approx(np.mean(differences) + half)
        )  # fmt: skip
        assert (main[name]["cells"], main[name]["seeds"], main[name]["left_out"]) == (4, 3, "")
    assert [verdict.kind for verdict in results.verdicts()] == ["main effect"] * 3
    assert "on average over 4 arms" in results.verdicts()[0].sentence


def test_no_interaction_and_no_simple_effect_is_reported(tmp_path: Path) -> None:
    results = fraction(tmp_path)
    assert results.interactions().empty
    assert results.simple_effects().empty


def test_a_seed_in_which_an_arm_is_missing_is_left_out(tmp_path: Path) -> None:
    main = by_name(fraction(tmp_path, failed=[("a=y, b=q, c=m", 1)]).main_effects())
    assert main["a=y"]["effect"] == pytest.approx((2.3 - 1.25 + 2.55 - 1.5) / 2)
    assert (main["a=y"]["seeds"], main["a=y"]["left_out"]) == (2, "seed 1 (a=y, b=q, c=m: failed)")
    assert main["b=q"]["seeds"] == 2


def test_arms_that_no_longer_balance_the_other_factors_give_no_verdict(tmp_path: Path) -> None:
    """Without yqm the arms at a=y are those at c=n, so that the effect of c would pass for one of a."""
    gone = {("a=y, b=q, c=m", seed) for seed in range(3)}
    results = fraction(tmp_path, failed=gone)
    main = by_name(results.main_effects())["a=y"]
    assert (main["verdict"], main["cells"], main["cells_planned"]) == ("not comparable", 3, 4)
    assert main["left_out"] == "a=y, b=q, c=m (no seed has it)"
    sentence = next(verdict.sentence for verdict in results.verdicts() if verdict.name == "a=y")
    assert sentence == "a=y is not comparable to a=x: the arms that are left do not balance b and c."
    assert (
        "The main effects of a=y, b=q and c=n leave out a=y, b=q, c=m (no seed has it): nothing was filled in."
    ) in results.caveats()


def test_an_arm_that_the_plan_excludes_or_that_equals_another_is_named(tmp_path: Path) -> None:
    results = fraction(tmp_path, holes={"a=y, b=q, c=m": "cannot work"})
    main = by_name(results.main_effects())["b=q"]
    assert (main["left_out"], main["verdict"]) == ("a=y, b=q, c=m (not in the plan)", "not comparable")
    own = {"a=x, b=q, c=n": {"aliases": ["a=y, b=q, c=m"]}}
    alike = fraction(tmp_path / "alike", own=own)
    assert by_name(alike.main_effects())["b=q"]["left_out"] == "a=y, b=q, c=m (the same as a=x, b=q, c=n)"


def test_an_arm_that_mostly_diverged_is_left_out(tmp_path: Path) -> None:
    gone = [("a=y, b=q, c=m", seed) for seed in range(2)]
    main = by_name(fraction(tmp_path, diverged=gone).main_effects())["a=y"]
    assert (main["left_out"], main["diverged"]) == ("a=y, b=q, c=m (diverged in 2 of 3 seeds)", 2)
    assert main["verdict"] == "not comparable"


def test_a_level_that_diverged_mostly_is_diverged(tmp_path: Path) -> None:
    gone = [(name, seed) for name in ("a=y, b=q, c=m", "a=y, b=p, c=n") for seed in range(2)]
    assert by_name(fraction(tmp_path, diverged=gone).main_effects())["a=y"]["verdict"] == "diverged"


def test_a_level_that_diverged_in_one_seed_is_not_called_better(tmp_path: Path) -> None:
    better = fraction(tmp_path, diverged=[("a=y, b=q, c=m", 0)], goal="max")
    assert by_name(better.main_effects())["a=y"]["verdict"] == "undecided"


def test_a_reference_that_diverged_is_not_comparable(tmp_path: Path) -> None:
    results = fraction(tmp_path, diverged=[("baseline", 0)])
    sentence = next(verdict.sentence for verdict in results.verdicts() if verdict.name == "a=y")
    assert sentence == "a=y is not comparable: a=x diverged in 1 of 6 trials."


def test_another_factors_fault_is_not_the_references(tmp_path: Path) -> None:
    """Both arms at b=q diverge in seed 0, one on either side of a."""
    both = [("a=x, b=q, c=n", 0), ("a=y, b=q, c=m", 0)]
    main = by_name(fraction(tmp_path, diverged=both).main_effects())
    assert (main["a=y"]["seeds"], main["a=y"]["diverged"]) == (2, 1)
    assert main["a=y"]["verdict"] in ("worse", "worse, size uncertain", "undecided")


def test_every_trial_diverged(tmp_path: Path) -> None:
    results = fraction(tmp_path, outcomes=lambda *_: math.nan)
    assert [verdict.word for verdict in results.verdicts()] == ["diverged"] * 3


def test_a_cell_of_two_tasks_is_not_comparable(tmp_path: Path) -> None:
    own = {"a=y, b=q": {"task": {"kind": "copy"}}}
    two = {"a": ["x", "y"], "b": ["p", "q"]}
    study = make_study(
        tmp_path / "study",
        design="full",
        factors=two,
        seeds=3,
        own=own,
        outcomes=lambda name, levels, seed: 1 + 0.1 * seed,
    )
    results = Results(study)
    sentences = {verdict.name: verdict.sentence for verdict in results.verdicts()}
    assert sentences["a=y"] == "a=y is not comparable to a=x: the tasks differ, `text` and `copy`."
    assert sentences["b=q"].startswith("b=q is not comparable to b=p: the tasks differ,")
    assert by_name(results.simple_effects())["b=q at a=x"]["verdict"] == "identical"
