from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ablate.analysis.results import Results
from ablate.analysis.trends import COLUMNS, sentence
from tests.study_maker import Outcome, make_study


def leveled(values: Mapping[Any, list[float]], factor: str = "width") -> Outcome:
    """Outcomes by the factor's level, one a seed."""
    return lambda name, levels, seed: values[levels[factor]][seed]


def study(folder: Path, values: Mapping[Any, list[float]], **options: Any) -> Results:
    seeds = len(next(iter(values.values())))
    given = {"factors": {"width": list(values)}, "seeds": seeds, "outcomes": leveled(values)}
    return Results(make_study(folder / "study", **{**given, **options}))


def row(results: Results, factor: str = "width") -> dict[str, Any]:
    frame = results.trends()
    assert tuple(frame.columns) == COLUMNS
    (found,) = frame[frame["factor"] == factor].to_dict("records")
    return {str(key): value for key, value in found.items()}


def test_a_slope_by_hand(tmp_path: Path) -> None:
    results = study(tmp_path, {2: [4.0, 8.0], 1: [8.0, 8.0], 4: [2.0, 8.0]})
    got = row(results)
    # Over ln(level) the logarithms fall by 1 in the first seed and by nothing in the second.
    assert (got["scale"], got["levels"], got["low_level"], got["high_level"]) == ("log-log", 3, 1.0, 4.0)
    assert got["slope"] == pytest.approx(-0.5)
    assert got["high95"] + 0.5 == pytest.approx(12.7062 * 0.5, rel=1e-5)
    assert got["intercept"] == pytest.approx(math.log(8))
    assert got["doubling"] == pytest.approx(100 * (2**-0.5 - 1))
    assert got["doubling_high95"] == pytest.approx(100 * (2 ** got["high95"] - 1))
    # The geometric means are 8, the root of 32, and 4, as the line.
    assert got["misfit"] == pytest.approx(0.0, abs=1e-12)
    assert (got["seeds"], got["planned"], got["cells"], got["cells_planned"]) == (2, 2, 1, 1)
    assert sentence(got, results.objective) == (
        "width: slope -0.5 [95% CI -6.9, +5.9] on log-log axes, over 3 levels, 1 to 4, by 2 seeds: doubling width "
        "changes val/loss by -29% [95% CI -99%, +5680%]."
    )


def test_a_misfit_by_hand(tmp_path: Path) -> None:
    results = study(tmp_path, {1: [8.0, 16.0], 2: [2.0, 4.0], 4: [2.0, 4.0]})
    got = row(results)
    # Over log2(level) the first seed's log2 is 3, 1, 1, its line 8/3, 5/3, 2/3; the second seed has twice that.
    assert got["misfit"] == pytest.approx(math.sqrt(2) * (8 - 2 ** (8 / 3)))
    assert sentence(got, results.objective).endswith(
        " A straight line misses a level's mean by up to 2.334 nats, which is more than what matters."
    )


def test_a_power_law_is_a_straight_line_whatever_the_seeds(tmp_path: Path) -> None:
    results = study(tmp_path, {level: [(1 + seed) * level**-0.1 for seed in range(3)] for level in (4, 1, 2)})
    assert row(results)["misfit"] == pytest.approx(0.0, abs=1e-12)
    # All seeds have one slope, up to rounding, which is not printed.
    assert sentence(row(results), results.objective) == (
        "width: slope -0.100 [95% CI -0.100, -0.100] on log-log axes, over 3 levels, 1 to 4, by 3 seeds: doubling "
        "width changes val/loss by -6.70% [95% CI -6.70%, -6.70%]."
    )


def test_levels_close_together_have_no_interval_beyond_all_numbers(tmp_path: Path) -> None:
    results = study(tmp_path, {1000: [2.1, 1.8, 2.3], 1001: [3.4, 1.5, 2.2], 1002: [0.1, 3.1, 1.9]})
    got = row(results)
    assert math.isnan(got["doubling_high95"]) and got["doubling"] == pytest.approx(-100)
    assert " changes val/loss by -100%. A straight" in sentence(got, results.objective)
    rising = study(tmp_path / "up", {1000: [0.001], 1001: [1.0], 1002: [1000.0]})
    assert math.isnan(row(rising)["doubling"])
    assert sentence(row(rising), rising.objective).startswith(
        "width: slope +6915 on log-log axes, over 3 levels, 1000 to 1002, by 1 seed: the levels are too close together "
        "to say what doubling width does."
    )


def test_levels_at_one_place_are_one(tmp_path: Path) -> None:
    assert study(tmp_path, {level: [2.0] for level in (1, 2)}, factors={"width": [1, 1.0, 2]}).trends().empty
    got = row(study(tmp_path / "four", {1: [8.0], 2: [4.0], 4: [2.0]}, factors={"width": [1, 1.0, 2, 4]}))
    assert (got["levels"], got["slope"]) == (3, pytest.approx(-1))


def test_one_seed_has_a_slope_and_no_interval(tmp_path: Path) -> None:
    results = study(tmp_path, {1: [8.0], 2: [4.0], 4: [2.0]})
    got = row(results)
    assert got["slope"] == pytest.approx(-1)
    assert math.isnan(got["low95"]) and math.isnan(got["doubling_high95"])
    assert sentence(got, results.objective) == (
        "width: slope -1.00 on log-log axes, over 3 levels, 1 to 4, by 1 seed: doubling width changes val/loss by "
        "-50.0%."
    )


def test_what_is_not_all_positive_is_fitted_as_it_is(tmp_path: Path) -> None:
    results = study(tmp_path, {1: [0.0], 2: [1.0], 4: [2.0]}, metric="val/accuracy", goal="max")
    got = row(results)
    assert got["scale"] == "linear-log"
    assert got["slope"] == pytest.approx(1 / math.log(2))
    assert (got["doubling"], got["misfit"]) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-12))
    assert "Not every val/accuracy is positive" in sentence(got, results.objective)


def test_a_full_design_averages_over_the_other_factors_cells(tmp_path: Path) -> None:
    def outcome(name: str, levels: Mapping[str, Any], seed: int) -> float:
        return float(levels["width"] * (3 if levels["placement"] == "post" else 1))

    factors: dict[str, list[Any]] = {"width": [2, 4, 8], "placement": ["pre", "post"]}
    results = Results(make_study(tmp_path / "study", design="full", factors=factors, seeds=2, outcomes=outcome))
    got = row(results)
    assert (got["slope"], got["cells"], got["cells_planned"]) == (pytest.approx(1.0), 2, 2)
    assert math.exp(got["intercept"]) == pytest.approx(2.0)  # the mean of 1 and 3
    assert got["doubling"] == pytest.approx(100.0)
    assert list(results.trends()["factor"]) == ["width"]
    assert "averaged over 2 combinations of the other factors" in sentence(got, results.objective)


def test_a_combination_without_a_level_is_left_out_and_named(tmp_path: Path) -> None:
    def outcome(name: str, levels: Mapping[str, Any], seed: int) -> float:
        return float(levels["width"])

    got = row(Results(make_study(
        tmp_path / "study", design="full", factors={"width": [2, 4, 8], "placement": ["pre", "post"]}, seeds=1,
        outcomes=outcome, holes={"width=8, placement=post": "too large"},
    )))  # fmt: skip
    assert (got["cells"], got["left_out"]) == (1, "placement=post (a level is not in the plan)")


def test_a_level_that_diverges_is_left_out_and_counted(tmp_path: Path) -> None:
    nan = math.nan
    results = study(tmp_path, {1: [8.0, 8.0], 2: [4.0, 4.0], 4: [2.0, 2.0], 8: [nan, nan]})
    got = row(results)
    assert (got["levels"], got["high_level"], got["diverged"]) == (3, 4.0, 2)
    assert got["left_out"] == "width=8 (diverged in 2 of 2 trials)"
    assert got["slope"] == pytest.approx(-1)


def test_a_seed_that_lacks_a_trial_is_left_out_and_named(tmp_path: Path) -> None:
    values = {1: [8.0, 8.0, 8.0], 2: [4.0, 4.0, 9.0], 4: [2.0, 2.0, 9.0]}
    got = row(study(tmp_path, values, diverged={("width=4", 2)}, failed={("width=2", 1)}))
    assert (got["seeds"], got["planned"], got["diverged"]) == (1, 3, 1)
    assert got["left_out"] == "seed 1 (width=2: failed); seed 2 (width=4: diverged)"


def test_where_too_little_is_left_there_is_no_slope(tmp_path: Path) -> None:
    results = study(tmp_path, {1: [8.0], 2: [4.0], 4: [math.nan]})
    got = row(results)
    assert math.isnan(got["slope"]) and math.isnan(got["misfit"]) and got["seeds"] == 0
    assert sentence(got, results.objective) == (
        "width: no trend, since fewer than 3 levels have every trial in a seed. Left out: width=4 (diverged in 1 of 1 "
        "trial)."
    )


def test_levels_that_are_no_positive_numbers_are_left_out_and_named(tmp_path: Path) -> None:
    values = {2: [4.0], 1: [8.0], 4: [2.0], None: [1.0], 0: [1.0]}
    got = row(study(tmp_path, values))
    assert (got["levels"], got["slope"]) == (3, pytest.approx(-1))
    assert got["left_out"] == "width=null (no positive number); width=0 (no positive number)"


@pytest.mark.parametrize(
    "factors", [{"lr": [1e-2, 1e-3, 1e-1]}, {"width": [1, 2]}, {"width": [True, False, 1, 2]}, {"width": ["1", "2"]}]
)
def test_other_factors_have_no_trend(tmp_path: Path, factors: dict[str, list[Any]]) -> None:
    assert Results(make_study(tmp_path / "study", factors=factors, seeds=1)).trends().empty
