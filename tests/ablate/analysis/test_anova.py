from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ablate.analysis import anova
from ablate.analysis.results import Results
from tests.study_maker import make_study, noise

SQUARE: dict[str, list[Any]] = {"a": ["x", "y"], "b": ["p", "q"]}
CELLS = {("x", "p"): [1.0, 1.1], ("x", "q"): [1.2, 1.4], ("y", "p"): [1.5, 1.7], ("y", "q"): [2.0, 2.5]}
LEVELS: dict[str, list[Any]] = {"a": ["x", None, 1], "b": ["p", "q"], "c": [0, 1]}


def cells(name: str, levels: Mapping[str, Any], seed: int) -> float:
    return CELLS[levels["a"], levels["b"]][seed]


def noisy(name: str, levels: Mapping[str, Any], seed: int) -> float:
    return 1 + 0.2 * bool(levels["a"] is None) + 0.1 * bool(levels["b"] == "q") + noise(name, seed)


def table(folder: Path, **options: Any) -> tuple[dict[str, dict[str, Any]], str]:
    """The table's rows by term, and how it was made."""
    how: dict[str, Any] = {"design": "full", "steps": 20} | options
    results = Results(make_study(folder / "study", **how))
    records = results.anova().to_dict("records")
    return {row["term"]: {str(key): value for key, value in row.items()} for row in records}, anova.how(
        results.plan, results.trials()
    )


def test_sums_of_squares_by_hand(tmp_path: Path) -> None:
    """The means are 1.175 and 1.925 by a, 1.325 and 1.775 by b, 1.425 and 1.675 by seed, 1.55 in all, of 8 values."""
    rows, how = table(tmp_path, factors=SQUARE, outcomes=cells, seeds=2)
    assert [(row["kind"], term) for term, row in rows.items()] == [
        ("block", "(seed)"), ("main effect", "a"), ("main effect", "b"), ("interaction", "a:b"),
        ("residual", "(residual)"),
    ]  # fmt: skip
    sums = {"(seed)": 8 * 0.125**2, "a": 8 * 0.375**2, "b": 8 * 0.225**2, "a:b": 8 * 0.1**2}
    left = 21 - 8 * 1.55**2 - sum(sums.values())
    for term, sum_sq in sums.items():
        assert (rows[term]["df"], rows[term]["sum_sq"]) == (1, pytest.approx(sum_sq))
        assert rows[term]["F"] == pytest.approx(sum_sq / (left / 3))
        assert rows[term]["p"] == pytest.approx(stats.f.sf(sum_sq / (left / 3), 1, 3))
        assert rows[term]["partial_eta2"] == pytest.approx(sum_sq / (sum_sq + left))
    assert (rows["(residual)"]["df"], rows["(residual)"]["sum_sq"]) == (3, pytest.approx(left))
    assert math.isnan(rows["(residual)"]["F"])
    assert how == "8 of 8 trials; balanced, so that the sums do not depend on what else is in the model."


def test_f_and_its_p_are_known_where_no_float_holds_the_squares(tmp_path: Path) -> None:
    small, _ = table(tmp_path / "small", factors=SQUARE, outcomes=cells, seeds=2)
    large, _ = table(tmp_path / "large", factors=SQUARE, outcomes=lambda *arm: cells(*arm) * 2.0**600, seeds=2)
    for key in ("F", "p", "partial_eta2"):
        assert [row[key] for row in large.values()] == pytest.approx([row[key] for row in small.values()], nan_ok=True)
    assert all(math.isnan(row["sum_sq"]) for row in large.values())


def type_three(results: Results, names: list[str]) -> dict[str, float]:
    """Type III sums of squares as what the residual grows by when a term's own columns are taken away."""
    done = results.trials().query("end == 'complete'")

    def coded(values: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
        codes = pd.factorize(values.map(repr))[0]
        count = codes.max() + 1
        return np.vstack([np.eye(count - 1), -np.ones(count - 1)])[codes]

    parts = {"1": np.ones((len(done), 1)), "(seed)": coded(done["seed"])}
    parts |= {name: coded(done[f"factor.{name}"]) for name in names}
    for one, other in itertools.combinations(names, 2):
        products = parts[one][:, :, None] * parts[other][:, None, :]
        parts[f"{one}:{other}"] = products.reshape(len(done), -1)
    y = done["val/loss"].to_numpy()

    def residual(without: str = "") -> float:
        x = np.hstack([columns for term, columns in parts.items() if term != without])
        return float(((y - x @ np.linalg.lstsq(x, y)[0]) ** 2).sum())

    return {term: residual(term) - residual() for term in parts if term != "1"}


def test_unbalanced_sums_are_of_type_three(tmp_path: Path) -> None:
    lost = {("baseline", 0), ("a=1, b=q, c=1", 2)}
    study = make_study(
        tmp_path / "study", design="full", factors=LEVELS, outcomes=noisy, seeds=3, steps=20, failed=lost,
        diverged={("a=null, b=p, c=0", 1)}, holes={"a=1, b=p, c=1": "they cannot work together"},
    )  # fmt: skip
    results = Results(study)
    rows = {row["term"]: row for row in results.anova().to_dict("records")}
    for term, sum_sq in type_three(results, ["a", "b", "c"]).items():
        assert rows[term]["sum_sq"] == pytest.approx(sum_sq)
    assert [rows[term]["df"] for term in ("(seed)", "a", "b", "a:b", "b:c")] == [2, 2, 1, 2, 1]
    assert anova.how(results.plan, results.trials()) == (
        "30 of 36 trials; unbalanced: Type III sums, each term beyond all others; nothing was filled in for "
        "3 excluded, 2 failed and 1 diverged."
    )


@pytest.mark.parametrize(
    ("factors", "hole", "why"),
    [
        (SQUARE, "a=y, b=q", "it cannot be told apart"),
        ({"a": ["x", "y", "z"], "b": ["p", "q"]}, "a=y, b=q", "1 of its 2 degrees of freedom cannot be told apart"),
    ],
)
def test_an_interaction_with_a_hole_is_left_out_and_named(
    tmp_path: Path, factors: dict[str, list[Any]], hole: str, why: str
) -> None:
    def value(name: str, levels: Mapping[str, Any], seed: int) -> float:
        return float(levels["a"] == "y") + noise(name, seed)

    rows, _ = table(tmp_path, factors=factors, outcomes=value, seeds=3, holes={hole: "they cannot work together"})
    lost = rows["a:b"]
    assert (lost["df"], lost["left_out"]) == (0, f"{why} from other terms in the trials that completed")
    assert math.isnan(lost["F"])
    assert all(rows[term]["left_out"] == "" and rows[term]["F"] > 0 for term in ("a", "b"))
    cells = math.prod(map(len, factors.values())) - 1
    assert rows["(residual)"]["df"] == 3 * cells - sum(rows[term]["df"] for term in ("(seed)", "a", "b")) - 1


def test_a_level_without_a_trial_leaves_the_others_to_compare(tmp_path: Path) -> None:
    gone = {(f"a=null, b={b}, c={c}", seed) for b in "pq" for c in (0, 1) for seed in range(2)}
    rows, how = table(tmp_path, factors=LEVELS, outcomes=noisy, seeds=2, diverged=gone)
    assert (rows["a"]["df"], rows["a:b"]["df"]) == (1, 1)
    assert how.endswith("nothing was filled in for 8 diverged; no trial of a=null completed.")


def test_a_factor_of_which_one_level_is_left_cannot_be_estimated(tmp_path: Path) -> None:
    gone = {(f"a=y, b={b}", seed) for b in "pq" for seed in range(3)}
    rows, _ = table(tmp_path, factors=SQUARE, seeds=3, diverged=gone)
    assert rows["a"]["left_out"] == rows["a:b"]["left_out"] == "a has one level in the trials that are fitted"
    assert (rows["b"]["df"], rows["(residual)"]["df"]) == (1, 2)


def test_factors_that_change_together_cannot_be_told_apart(tmp_path: Path) -> None:
    holes = dict.fromkeys(("a=x, b=q", "a=y, b=p"), "they cannot work together")
    rows, _ = table(tmp_path, factors=SQUARE, seeds=3, holes=holes)
    assert rows["a"]["left_out"] == rows["b"]["left_out"] != ""
    assert rows["(residual)"]["df"] == 3


def test_arms_without_a_factor_and_arms_for_two_are_counted_once(tmp_path: Path) -> None:
    rows, how = table(
        tmp_path, factors={"a": ["x", "y"], "b": ["p", "q"], "c": [0, 1]}, conditions={"b": ("a", "x")}, seeds=3
    )  # fmt: skip
    assert how.startswith("12 of 18 trials; balanced")
    assert how.endswith("model; a=y has only arms without b; arms without b are no part of it.")
    assert rows["a"]["left_out"] == "a has one level in the trials that are fitted"
    both, also = table(tmp_path / "two", factors=SQUARE, seeds=3, together={"a=y, b=q": "a=y, b=p"})
    assert also.startswith("9 of 9 trials; unbalanced")
    assert both["(residual)"]["df"] == 9 - 1 - 2 - 1 - 1


BALANCED = "balanced, so that the sums do not depend on what else is in the model"


def test_what_completed_outside_the_grid_is_not_said_to_be_missing(tmp_path: Path) -> None:
    factors: dict[str, list[Any]] = {"residual": ["add", "none"], "scale": ["on", "off"], "norm": ["layer", "rms"]}
    part: dict[str, Any] = {"factors": factors, "conditions": {"scale": ("residual", "add")}, "seeds": 2}
    _, how = table(tmp_path, **part)
    outside = "arms without scale are no part of it."
    assert how == f"8 of 12 trials; {BALANCED}; residual=none has only arms without scale; {outside}"
    gone = {(f"residual=none, norm={norm}", seed) for norm in ("layer", "rms") for seed in range(2)}
    _, how = table(tmp_path / "none", **part, failed=gone)
    lost = "nothing was filled in for 4 failed; no trial of residual=none completed"
    assert how == f"8 of 12 trials; {BALANCED}; {lost}; {outside}"


def test_a_level_that_falls_together_with_another_is_said(tmp_path: Path) -> None:
    factors: dict[str, list[Any]] = {"a": [1, 2], "b": [1, 2]}
    together = {"a=2, b=1": "baseline", "a=2, b=2": "a=1, b=2"}
    rows, how = table(tmp_path, factors=factors, together=together, seeds=3)
    assert how == f"6 of 6 trials; {BALANCED}; a=2 falls together with a=1."
    assert rows["a"]["left_out"] == "a has one level in the trials that are fitted"
    gone = {("a=2, b=2", seed) for seed in range(3)}
    _, how = table(tmp_path / "one", factors=factors, together={"a=2, b=1": "baseline"}, failed=gone, seeds=3)
    assert how.endswith("3 failed; a=2 completed only where it falls together with a=1.")


def test_a_fraction_with_a_hole_is_unbalanced(tmp_path: Path) -> None:
    factors = {key: [0, 1] for key in "abcd"}
    hole = {"a=1, b=1, c=1, d=1": "too large"}
    _, how = table(tmp_path, design="fractional", factors=factors, seeds=2, holes=hole)
    assert how.startswith("14 of 16 trials; unbalanced")


@pytest.mark.parametrize("seeds", [1, 2])
def test_no_f_is_given_where_nothing_is_left_to_compare_with(tmp_path: Path, seeds: int) -> None:
    """One seed of a square leaves no degree of freedom; two whose cells all differ alike leave no variation."""

    def value(name: str, levels: Mapping[str, Any], seed: int) -> float:
        return float(levels["a"] == "y") + 2 * bool(levels["b"] == "q") + seed

    rows, _ = table(tmp_path, factors=SQUARE, outcomes=value, seeds=seeds)
    assert [rows[term]["df"] for term in ("a", "b", "a:b", "(residual)")] == [1, 1, 1, 3 * (seeds - 1)]
    assert all(math.isnan(row["F"]) and math.isnan(row["p"]) for row in rows.values())


def test_names_of_factors_are_never_read_as_formulas(tmp_path: Path) -> None:
    names = ["a b", "C(x)", "1/0", "__import__('os').abort()", "世界 \"'` ~ y:seed"]
    factors: dict[str, list[Any]] = {name: [None, "None"] for name in names}
    rows, how = table(tmp_path, factors=factors, seeds=1, outcomes=lambda name, levels, seed: noise(name, seed))
    assert [term for term, row in rows.items() if row["kind"] == "main effect"] == names
    assert "C(x):1/0" in rows
    assert all(row["df"] == 1 for row in rows.values() if row["kind"] != "residual")
    assert how.startswith("32 of 32 trials; balanced")


def test_factors_may_be_called_seed_and_residual(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", design="full", factors={"seed": [1, 2], "residual": [1, 2]}))
    frame = results.anova()
    assert list(frame["kind"]) == ["block", "main effect", "main effect", "interaction", "residual"]
    assert list(frame["term"]) == ["(seed)", "seed", "residual", "seed:residual", "(residual)"]
    assert list(frame["factor"]) == ["", "seed", "residual", "seed", ""]


def test_a_fraction_has_main_effects_alone(tmp_path: Path) -> None:
    factors = {key: [0, 1] for key in "abcd"}
    rows, how = table(tmp_path, design="fractional", factors=factors, seeds=3)
    assert list(rows) == ["(seed)", "a", "b", "c", "d", "(residual)"]
    assert (rows["a"]["df"], rows["(residual)"]["df"]) == (1, 24 - 1 - 2 - 4)
    assert how.startswith("24 of 24 trials; balanced")


def test_arms_of_other_tasks_are_not_analysed(tmp_path: Path) -> None:
    rows, how = table(tmp_path, factors=SQUARE, own={"a=y, b=q": {"task": {"kind": "copy"}}})
    assert (rows, how) == ({}, "")


def test_other_designs_have_no_analysis_of_variance(tmp_path: Path) -> None:
    rows, how = table(tmp_path, design="one_at_a_time")
    assert (rows, how) == ({}, "")
