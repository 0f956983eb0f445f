from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ablate.analysis import shapley
from ablate.analysis.results import Results
from tests.study_maker import make_study

SQUARE: dict[str, list[Any]] = {"a": ["x", "y"], "b": ["p", None]}
CELLS = {("x", "p"): [1.0, 1.1], ("x", None): [1.2, 1.4], ("y", "p"): [1.5, 1.7], ("y", None): [2.0, 2.5]}


def cells(name: str, levels: Mapping[str, Any], seed: int) -> float:
    return CELLS[levels["a"], levels["b"]][seed % 2]


def shares(folder: Path, **options: Any) -> list[dict[str, Any]]:
    how: dict[str, Any] = {"design": "full", "factors": SQUARE, "outcomes": cells, "seeds": 2} | options
    return [
        {str(key): value for key, value in row.items()}
        for row in Results(make_study(folder / "study", **how)).shapley().to_dict("records")
    ]


def test_shares_by_hand(tmp_path: Path) -> None:
    a, b, whole = shares(tmp_path)
    # a alone 0.5 and 0.6, after b 0.8 and 1.1; b alone 0.2 and 0.3, after a 0.5 and 0.8
    assert (a["effect"], b["effect"], whole["effect"]) == pytest.approx((0.75, 0.45, 1.2))
    assert (a["name"], a["level"], a["against"], b["level"]) == ("a=y", "y", "x", None)
    assert (whole["kind"], whole["corner"], a["seeds"], a["family"], whole["family"]) == (
        "whole",
        "a=y, b=null",
        2,
        2,
        1,
    )
    # a is 0.65 and 0.85: standard error 0.1; t(1, 1 - 0.05 / 4) = 25.4517
    assert a["high"] - a["effect"] == pytest.approx(2.54517, abs=1e-5)
    assert all(math.isnan(row["share"]) for row in (a, b, whole))  # the whole is 1.2 and no more sure than ±2.5


def test_shares_are_in_per_cent_where_the_whole_is_sure(tmp_path: Path) -> None:
    a, b, whole = shares(tmp_path, seeds=6)
    assert whole["low"] > 0
    assert (a["share"], b["share"], whole["share"]) == pytest.approx((62.5, 37.5, 100))


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 5), st.integers(0, 1000))
def test_values_are_the_mean_over_all_orders(players: int, draw: int) -> None:
    worth = np.random.default_rng(draw).normal(0, 1, (2**players, 2))
    expected = np.zeros((players, 2))
    orders = list(itertools.permutations(range(players)))
    for order in orders:
        mask = 0
        for player in order:
            expected[player] += worth[mask | 1 << player] - worth[mask]
            mask |= 1 << player
    found = shapley.values_of(worth)
    assert found == pytest.approx(expected / len(orders))
    assert found.sum(axis=0) == pytest.approx(worth[-1] - worth[0])


def test_ten_factors_add_up_to_the_whole() -> None:
    worth = np.random.default_rng(1).normal(0, 1, (2**10, 6))
    assert shapley.values_of(worth).sum(axis=0) == pytest.approx(worth[-1] - worth[0])


def test_a_study_of_four_factors(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", design="full", seeds=4))
    frame, effects = results.shapley(), results.effects().set_index("name")
    whole = frame[frame["kind"] == "whole"].iloc[0]
    each = frame[frame["kind"] == "share"]
    assert each["effect"].sum() == pytest.approx(whole["effect"])
    assert each["share"].sum() == pytest.approx(100)
    far = effects.loc["residual=none, scale=off, placement=post, ratio=1"]
    assert (whole["effect"], whole["low"]) == pytest.approx((far["effect"], far["low95"]))
    ratio = (each["high"] - each["low"]) / (each["high95"] - each["low95"])
    assert ratio.to_numpy() == pytest.approx(stats.t.ppf(1 - 0.05 / 8, 3) / stats.t.ppf(0.975, 3))


def test_more_levels_have_more_corners(tmp_path: Path) -> None:
    def steps(name: str, levels: Mapping[str, Any], seed: int) -> float:
        return float((levels["a"] or 0) + 10 * levels["b"] + 0.01 * seed)

    rows = shares(tmp_path, factors={"a": [1, None, 2], "b": [1, 2, 4]}, outcomes=steps)
    found = [row["corner"] for row in rows if row["kind"] == "whole"]
    assert found == ["a=null, b=2", "a=null, b=4", "a=2, b=2", "a=2, b=4"]
    assert [row["effect"] for row in rows if row["corner"] == "a=null, b=4"] == pytest.approx([-1, 30, 29])
    assert {row["family"] for row in rows if row["kind"] == "share"} == {8}


def test_of_many_corners_the_first_are_given_and_all_are_counted(tmp_path: Path) -> None:
    results = Results(
        make_study(
            tmp_path / "study", design="full", factors={"a": list(range(6)), "b": list(range(4))}, seeds=1,
            outcomes=lambda name, levels, seed: levels["a"] + levels["b"], steps=10,
        )
    )  # fmt: skip
    assert results.shapley()["corner"].nunique() == shapley.MOST_CORNERS == 12
    assert shapley.corners(results.plan) == 15


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"holes": {"a=y, b=null": "they cannot work together"}}, "not in the plan: a=y, b=null"),
        ({"diverged": {("a=y, b=p", 1), ("baseline", 0)}}, "diverged: baseline (1 seed); and a=y, b=p (1 seed)"),
        ({"waiting": {("a=y, b=p", 1), ("baseline", 0)}}, "no seed has completed all of the combinations"),
        ({"own": {"a=y, b=p": {"task": {"kind": "copy"}}}}, "the tasks differ, `text` and `copy`"),
    ],
)
def test_nothing_is_computed_where_a_combination_is_missing_or_diverged(
    tmp_path: Path, options: dict[str, Any], why: str
) -> None:
    rows = shares(tmp_path, **options)
    assert [row["left_out"] for row in rows] == [why] * 3
    assert all(math.isnan(row["effect"]) for row in rows)


def test_a_seed_that_lacks_a_combination_is_left_out_and_named(tmp_path: Path) -> None:
    rows = shares(tmp_path, seeds=3, failed={("a=y, b=p", 1)})
    assert {row["seeds"] for row in rows} == {2}
    assert rows[0]["left_out"] == "seed 1 (a=y, b=p)"


def test_a_factor_that_is_no_part_of_some_arms_changes_nothing_there(tmp_path: Path) -> None:
    values = {("x", "p"): 1.0, ("x", None): 1.4, ("y", "-"): 2.0}
    a, b, whole = shares(
        tmp_path, conditions={"b": ("a", "x")},
        outcomes=lambda name, levels, seed: values[levels["a"], levels.get("b", "-")],
    )  # fmt: skip
    # a alone 1, after b 0.6; b alone 0.4, after a nothing
    assert (a["effect"], b["effect"], whole["effect"]) == pytest.approx((0.8, 0.2, 1.0))


@pytest.mark.parametrize("options", [{"design": "one_at_a_time"}, {"factors": {"a": ["x", "y"]}}])
def test_other_designs_and_single_factors_have_no_shares(tmp_path: Path, options: dict[str, Any]) -> None:
    how: dict[str, Any] = {"design": "full", "seeds": 2} | options
    results = Results(make_study(tmp_path / "study", **how))
    assert results.shapley().empty
    assert shapley.corners(results.plan) == 0
