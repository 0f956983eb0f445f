from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from ablate.analysis import ablation
from ablate.analysis.results import Results
from tests.study_maker import make_study

SQUARE: dict[str, list[Any]] = {"a": ["x", "y"], "b": ["p", None]}
CELLS = {("x", "p"): [1.0, 1.1], ("y", "p"): [1.2, 1.4], ("x", None): [1.5, 1.7], ("y", None): [2.0, 2.5]}
BOTH = "a=y, b=null"


def cells(name: str, levels: Mapping[str, Any], seed: int) -> float:
    return CELLS[levels["a"], levels["b"]][seed]


def path(folder: Path, **options: Any) -> tuple[dict[str, dict[str, Any]], str]:
    """The path's rows by name, and its sentence."""
    how: dict[str, Any] = {"design": "leave_one_out", "factors": SQUARE, "outcomes": cells, "seeds": 2} | options
    results = Results(make_study(folder / "study", **how))
    frame = results.ablation()
    rows = {row["name"]: {str(key): value for key, value in row.items()} for row in frame.to_dict("records")}
    return rows, ablation.sentence(results.plan, frame)


@pytest.mark.parametrize("design", ["leave_one_out", "add_one"])
def test_a_path_by_hand(tmp_path: Path, design: str) -> None:
    rows, said = path(tmp_path, design=design)
    assert list(rows) == ["a=y", "b=null", "sum of the parts", BOTH, "whole minus sum"]
    assert [row["kind"] for row in rows.values()] == ["part", "part", "sum", "whole", "difference"]
    # a: 0.2, 0.3; b: 0.5, 0.6; both: 1.0, 1.4
    effects = [row["effect"] for row in rows.values()]
    assert effects == pytest.approx([0.25, 0.55, 0.8, 1.2, 0.4])
    # The difference is 0.3 and 0.5: standard error 0.1; t(1, 0.975) = 12.7062
    gap = rows["whole minus sum"]
    assert (gap["low"], gap["high"]) == pytest.approx((0.4 - 1.27062, 0.4 + 1.27062), abs=1e-5)
    assert (gap["finding"], gap["seeds"], gap["family"]) == ("open", 2, 1)
    done = "Removed" if design == "leave_one_out" else "Added"
    assert said == (
        f"{done} one at a time, the 2 parts change val/loss by +0.800 nats in sum; {done.lower()} all at once, by "
        "+1.200 nats. Whether they add up is open: the difference is +0.400 nats val/loss "
        "[95% CI -0.871, +1.671]."
    )


def test_parts_and_whole_have_the_intervals_of_the_effects(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", design="add_one"))
    frame, effects = results.ablation(), results.effects().set_index("arm")
    arms = frame[frame["arm"] != ""]
    assert len(arms) == 5
    for row in arms.to_dict("records"):
        same = effects.loc[row["arm"]]
        for key in ("effect", "low", "high", "low95", "high95", "p", "agree"):
            assert row[key] == pytest.approx(same[key])
        assert row["family"] == 5


def test_with_two_parts_the_difference_is_their_interaction(tmp_path: Path) -> None:
    rows, _ = path(tmp_path)
    full = Results(make_study(tmp_path / "full", design="full", factors=SQUARE, outcomes=cells, seeds=2))
    (both,) = full.interactions().to_dict("records")
    for key in ("effect", "low", "high", "p"):
        assert rows["whole minus sum"][key] == pytest.approx(both[key])


def adding_up(gap: float) -> Any:
    """Two parts of 0.3 and 0.1 whose whole is by so much more than their sum, with a little noise of its own."""

    def value(name: str, levels: Mapping[str, Any], seed: int) -> float:
        a, b = bool(levels["a"] == "y"), levels["b"] is None
        return 1 + 0.3 * a + 0.1 * b + (a and b) * (gap + (-0.002 if seed % 2 else 0.002)) + 0.05 * seed

    return value


def test_parts_that_add_up(tmp_path: Path) -> None:
    rows, said = path(tmp_path, outcomes=adding_up(0.0), seeds=6)
    assert rows["whole minus sum"]["finding"] == "adds up"
    half = stats.t.ppf(0.975, 5) * 0.002 * math.sqrt(6 / 5) / math.sqrt(6)
    assert rows["whole minus sum"]["high"] == pytest.approx(half)
    assert said.endswith(
        "The parts add up: the difference, +0.000 nats val/loss [95% CI -0.002, +0.002], lies within ±0.02."
    )


@pytest.mark.parametrize(
    ("gap", "goal", "way"),
    [(0.2, "min", "higher (worse)"), (0.2, "max", "higher (better)"), (-0.2, "min", "lower (better)")],
)
def test_parts_that_interact(tmp_path: Path, gap: float, goal: str, way: str) -> None:
    rows, said = path(tmp_path, outcomes=adding_up(gap), seeds=6, goal=goal)
    assert rows["whole minus sum"]["finding"] == "interacts"
    assert f"They interact: all at once it ends {way} than the parts' sum, by {gap:+.3f} nats val/loss [95% CI" in said


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    rows, said = path(tmp_path, seeds=1)
    assert math.isnan(rows["whole minus sum"]["low"])
    assert said.endswith(
        "Whether they add up is open: the difference is +0.300 nats val/loss; one seed gives no interval."
    )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"diverged": {("a=y", 0)}}, "a=y diverged in 1 seed"),
        ({"diverged": {("baseline", 0), ("b=null", 0), ("b=null", 1)}},
         "baseline diverged in 1 seed and b=null diverged in 2 seeds"),
        ({"holes": {"b=null": "they cannot work together"}}, "b=null is not in the plan"),
        ({"waiting": {("a=y", 0), (BOTH, 1)}}, "no seed has completed all of the arms"),
        ({"own": {"a=y": {"task": {"kind": "copy"}}}}, "the tasks differ, `text` and `copy`"),
    ],
)  # fmt: skip
def test_no_sum_is_given_where_an_arm_is_missing_or_diverged(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    rows, said = path(tmp_path, **options)
    for name in ("sum of the parts", "whole minus sum"):
        assert math.isnan(rows[name]["effect"])
        assert (rows[name]["seeds"], rows[name]["left_out"], rows[name]["finding"]) == (0, why, "")
    assert said == f"Whether the 2 parts add up cannot be said: {why}."


def test_what_there_is_of_each_arm_is_said(tmp_path: Path) -> None:
    rows, _ = path(tmp_path, diverged={("a=y", 0)}, holes={"b=null": "they cannot work together"})
    assert (rows["a=y"]["seeds"], rows["a=y"]["diverged"], rows["a=y"]["effect"]) == (1, 1, pytest.approx(0.3))
    assert (rows["b=null"]["arm"], rows["b=null"]["left_out"]) == ("", "not in the plan")
    assert rows[BOTH]["effect"] == pytest.approx(1.2)


def test_a_seed_that_lacks_an_arm_is_left_out_and_named(tmp_path: Path) -> None:
    rows, said = path(tmp_path, outcomes=adding_up(0.2), seeds=4, failed={("b=null", 2)}, waiting={("a=y", 3)})
    assert rows["whole minus sum"]["seeds"] == 2
    assert rows[BOTH]["seeds"] == 4
    assert rows["whole minus sum"]["left_out"] == "seed 2 (b=null) and seed 3 (a=y)"
    assert said.endswith("; left out: seed 2 (b=null) and seed 3 (a=y).")


def test_a_part_that_is_the_baseline_changes_nothing(tmp_path: Path) -> None:
    rows, _ = path(tmp_path, together={"a=y": "baseline"})
    assert (rows["a=y"]["effect"], rows["a=y"]["left_out"]) == (0, "the same arm as the baseline")
    assert rows["whole minus sum"]["effect"] == pytest.approx(1.2 - 0.55)


def test_a_factor_that_is_no_part_of_the_far_end(tmp_path: Path) -> None:
    """Removing the mixer takes its heads along: the far end is the arm without them."""
    rows, _ = path(tmp_path, conditions={"b": ("a", "x")}, outcomes=lambda name, levels, seed: float(len(levels)))
    assert rows[BOTH]["arm"] == rows["a=y"]["arm"] != ""


@pytest.mark.parametrize("options", [{"design": "one_at_a_time"}, {"factors": {"a": ["x", "y"]}}])
def test_there_is_no_path_in_other_designs_or_of_one_part(tmp_path: Path, options: dict[str, Any]) -> None:
    rows, said = path(tmp_path, **({"outcomes": None} | options))
    assert (rows, said) == ({}, "")
