"""Factors that are no part of some arms, and combinations that the plan excludes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ablate.analysis.results import Results
from tests.study_maker import make_study

FACTORS: dict[str, list[Any]] = {"core": ["attention", "lstm"], "heads": [4, 2, None], "norm": ["layer", "rms"]}
CONDITIONS = {"heads": ("core", "attention")}
"""Six arms of attention, and two of an LSTM, which has no heads."""


def values(name: str, levels: Mapping[str, Any], seed: int) -> float:
    """1, plus 0.3 for an LSTM, plus 0.1 and 0.05 for 2 and null heads, plus 0.2 for rms; and 0.01 a seed."""
    heads: float = {4: 0.0, 2: 0.1, None: 0.05}[levels["heads"]] if "heads" in levels else 0.0
    lstm, rms = bool(levels["core"] == "lstm"), bool(levels["norm"] == "rms")
    return 1 + 0.3 * lstm + heads + 0.2 * rms + 0.01 * seed


def conditional(folder: Path, **options: Any) -> Results:
    chosen: dict[str, Any] = {"factors": FACTORS, "conditions": CONDITIONS, "outcomes": values, "seeds": 2} | options
    return Results(make_study(folder / "study", design="full", **chosen))


def by_name(frame: Any) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in frame.to_dict("records")}


def test_a_factor_has_its_effect_over_the_arms_that_have_it(tmp_path: Path) -> None:
    results = conditional(tmp_path)
    assert len(results.plan["arms"]) == 8
    main = by_name(results.main_effects())
    assert main["heads=2"]["effect"] == pytest.approx(0.1)
    assert main["heads=null"]["effect"] == pytest.approx(0.05)
    assert (main["heads=2"]["cells"], main["heads=2"]["cells_planned"]) == (2, 2)
    assert main["heads=2"]["left_out"] == "core=lstm, norm=layer; core=lstm, norm=rms (heads is no part of them)"


def test_an_arm_without_a_factor_stands_for_all_of_its_levels(tmp_path: Path) -> None:
    main = by_name(conditional(tmp_path).main_effects())
    # The LSTM against the mean over 4, 2 and null heads: 0.3 - (0 + 0.1 + 0.05) / 3, with either norm.
    assert main["core=lstm"]["effect"] == pytest.approx(0.3 - 0.05)
    assert (main["core=lstm"]["cells"], main["core=lstm"]["left_out"]) == (6, "")
    # Of norm there are four cells, three with attention and one with an LSTM; none is counted twice.
    assert main["norm=rms"]["effect"] == pytest.approx(0.2)
    assert (main["norm=rms"]["cells"], main["norm=rms"]["cells_planned"]) == (4, 4)


def test_effects_that_no_arms_could_have_are_in_no_family(tmp_path: Path) -> None:
    results = conditional(tmp_path)
    assert set(by_name(results.interactions())) == {
        "core=lstm with norm=rms", "heads=2 with norm=rms", "heads=null with norm=rms"
    }  # fmt: skip
    simple = set(by_name(results.simple_effects()))
    assert {"heads=2 at core=attention", "core=lstm at norm=rms", "norm=rms at core=lstm"} <= simple
    assert not {"heads=2 at core=lstm", "core=lstm at heads=4", "core=lstm at heads=null"} & simple
    assert len(simple) == 2 + 2 + 2 * 1 + 2 * 2 + 3
    assert f"4 main effects, 3 interactions, {len(simple)} simple effects." in results.caveats()[1]


def test_null_is_a_level_and_no_absence(tmp_path: Path) -> None:
    factors: dict[str, list[Any]] = {"core": ["attention", "lstm"], "heads": [None, 2]}
    results = conditional(tmp_path, factors=factors, outcomes=lambda name, levels, seed: float(len(levels)))
    main = by_name(results.main_effects())
    assert main["heads=2"]["cells"] == 1
    # Two factors of the one, one of the other: a null that passed for nothing would make cells of the LSTM's arm.
    assert main["core=lstm"]["effect"] == pytest.approx(-1)
    assert results.interactions().empty


def test_excluded_combinations_of_a_conditional_factor_are_named(tmp_path: Path) -> None:
    holes = {"core=attention, heads=2, norm=rms": "too few heads", "core=attention, heads=null, norm=rms": "no heads"}
    main = by_name(conditional(tmp_path, holes=holes).main_effects())
    assert (
        main["core=lstm"]["left_out"] == "heads=2, norm=rms (not in the plan); heads=null, norm=rms (not in the plan)"
    )
    assert (main["core=lstm"]["cells"], main["core=lstm"]["cells_planned"]) == (4, 6)
    # 0.3 - 0.05 with layer, three cells; 0.3 with rms, where 4 heads alone are left.
    assert main["core=lstm"]["effect"] == pytest.approx((3 * 0.25 + 0.3) / 4)
    assert main["norm=rms"]["left_out"] == (
        "core=attention, heads=2 (not in the plan); core=attention, heads=null (not in the plan)"
    )


def test_a_level_that_no_arm_has_is_undecided_and_named(tmp_path: Path) -> None:
    holes = {f"core=attention, heads=2, norm={norm}": "never" for norm in ("layer", "rms")}
    results = conditional(tmp_path, holes=holes)
    main = by_name(results.main_effects())["heads=2"]
    assert math.isnan(main["effect"])
    assert (main["seeds"], main["verdict"]) == (0, "undecided")
    sentence = next(verdict.sentence for verdict in results.verdicts() if verdict.name == "heads=2")
    assert sentence == "heads=2 is undecided: no seed has completed both it and heads=4."


def test_trials_of_an_arm_that_stands_for_several_cells_are_counted_once(tmp_path: Path) -> None:
    results = conditional(tmp_path, diverged=[("core=lstm, norm=rms", 1)])
    verdict = next(verdict for verdict in results.verdicts() if verdict.name == "core=lstm")
    assert verdict.sentence.startswith("1 of 4 trials of core=lstm diverged; among those that finished it differs")
    assert verdict.diverged == 1


def test_a_factor_that_the_baseline_lacks_begins_with_its_first_level(tmp_path: Path) -> None:
    factors: dict[str, list[Any]] = {"core": ["lstm", "attention"], "heads": [4, 2]}
    results = conditional(
        tmp_path,
        factors=factors,
        outcomes=lambda name, levels, seed: 1 + 0.1 * (levels.get("heads") == 2) + 0.01 * seed,
    )
    for factor in results.plan["factors"]:
        if factor["name"] == "heads":
            del factor["baseline"]
    main = by_name(results.main_effects())
    assert main["heads=2"]["effect"] == pytest.approx(0.1)
    assert main["core=attention"]["effect"] == pytest.approx(0.05)
