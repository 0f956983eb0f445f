"""Combinations of a full design that resolve to one arm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ablate.analysis.lattice import Lattice, changes
from ablate.analysis.results import Results
from ablate.reporting import cells
from ablate.reporting.answers import forest_rows
from ablate.reporting.factors import level_means
from ablate.reporting.study import Study
from tests.study_maker import make_study

FACTORS: dict[str, list[Any]] = {"norm": ["layer", "none"], "place": ["pre", "post"], "drop": [0.0, 0.1]}
DEAD = {f"norm=none, place=post, drop={drop}": f"norm=none, place=pre, drop={drop}" for drop in (0.0, 0.1)}
"""Without a norm it does not matter where it stands."""


def values(name: str, levels: Mapping[str, Any], seed: int) -> float:
    """1, plus 0.4 without a norm, 0.1 for a norm behind, 0.2 for dropout, and 0.01 a seed, 0.02 a seed without."""
    none, post, drop = levels["norm"] == "none", levels.get("place") == "post", bool(levels["drop"] > 0)
    return 1 + (0.4 if none else 0.1 * post) + 0.2 * drop + (0.02 if none else 0.01) * seed


def made(folder: Path, **options: Any) -> Results:
    chosen: dict[str, Any] = {"factors": FACTORS, "outcomes": values, "seeds": 4, "steps": 20} | options
    return Results(make_study(folder, design="full", **chosen))


@pytest.fixture
def dead(tmp_path: Path) -> Results:
    """The study whose combinations fell together."""
    return made(tmp_path / "dead", together=DEAD)


@pytest.fixture
def when(tmp_path: Path) -> Results:
    """The same study, written with a condition on `place`."""
    return made(tmp_path / "when", conditions={"place": ("norm", "layer")})


def by_name(frame: Any) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in frame.to_dict("records")}


def test_a_combination_that_fell_together_has_the_values_of_its_arm(dead: Results) -> None:
    norm = by_name(dead.main_effects())["norm=none"]
    # 0.4 against pre and 0.3 against post, and 0.015 for the mean of 0.01 a seed.
    assert norm["effect"] == pytest.approx(0.35 + 0.015)
    assert (norm["cells"], norm["cells_planned"], norm["left_out"]) == (4, 4, "")
    assert len(dead.plan["arms"]) == 6


def test_both_ways_of_writing_it_give_the_same_effects(dead: Results, when: Results) -> None:
    """Numbers, counts, words and families; of what is left out, the reason alone is another."""
    for frame in (Results.main_effects, Results.interactions):
        ours, theirs = (frame(each).drop(columns="left_out").to_dict("records") for each in (dead, when))
        assert [row["name"] for row in ours] == [row["name"] for row in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one == pytest.approx(other, nan_ok=True)
    assert [verdict.sentence for verdict in dead.verdicts()] == [verdict.sentence for verdict in when.verdicts()]
    # The combinations as they are written have an effect of the norm at either place too; it is no other elsewhere.
    simple, wanted = by_name(dead.simple_effects()), by_name(when.simple_effects())
    assert simple.keys() - wanted.keys() == {"norm=none at place=pre", "norm=none at place=post"}
    assert all(simple[name]["effect"] == pytest.approx(row["effect"]) for name, row in wanted.items())
    why = "norm=none, drop=0.0; norm=none, drop=0.1 (place {} them)"
    assert by_name(dead.main_effects())["place=post"]["left_out"] == why.format("changes nothing in")
    assert by_name(when.main_effects())["place=post"]["left_out"] == why.format("is no part of")


def test_values_that_stand_in_two_cells_are_no_more_evidence(dead: Results) -> None:
    """Seeds are the replicates: three degrees of freedom, however many cells there are."""
    from scipy import stats

    norm = by_name(dead.main_effects())["norm=none"]
    deviation = 0.01 * (((1.5**2 + 0.5**2) * 2 / 3) ** 0.5)  # of 0.01 a seed over four seeds
    assert norm["high95"] - norm["effect"] == pytest.approx(stats.t.ppf(0.975, 3) * deviation / 2)
    assert norm["seeds"] == 4


def test_trials_of_an_arm_in_two_cells_are_counted_once(tmp_path: Path) -> None:
    results = made(tmp_path / "study", together=DEAD, diverged=[("norm=none, place=pre, drop=0.1", 1)])
    norm = next(verdict for verdict in results.verdicts() if verdict.name == "norm=none")
    assert norm.diverged == 1
    assert norm.sentence.startswith("1 of 8 trials of norm=none diverged; ")


def test_that_a_factor_changes_nothing_is_said(dead: Results, when: Results) -> None:
    said = (
        "Levels of place fell together in 2 of 6 arms (norm=none, place=pre, drop=0.0; and norm=none, place=pre, "
        "drop=0.1): such an arm stands at each of them, and effects between them are over the other arms."
    )
    assert said in dead.caveats()
    assert not any("not in the plan" in text for text in dead.caveats())
    assert not any("fell together" in text for text in when.caveats())


def test_a_factor_that_changes_nothing_anywhere_is_identical(tmp_path: Path) -> None:
    factors: dict[str, list[Any]] = {"norm": ["layer", "none"], "place": ["pre", "post"]}
    together = {"norm=layer, place=post": "baseline", "norm=none, place=post": "norm=none, place=pre"}
    results = made(
        tmp_path / "study", factors=factors, together=together,
        outcomes=lambda name, levels, seed: 1 + 0.4 * (levels["norm"] == "none") + 0.01 * seed,
    )  # fmt: skip
    sentences = {verdict.name: verdict.sentence for verdict in results.verdicts()}
    assert sentences["place=post"] == "place=post is identical to place=pre: the same val/loss in all 4 seeds."
    assert "Levels of place fell together in every arm." in results.caveats()
    assert results.interactions().empty


def test_two_of_three_levels_may_fall_together(tmp_path: Path) -> None:
    """Only the effect between them is over the other arms alone."""
    factors: dict[str, list[Any]] = {"core": ["attention", "lstm"], "heads": [4, 2, 1]}
    results = made(
        tmp_path / "study", factors=factors, together={"core=lstm, heads=2": "core=lstm, heads=4"},
        outcomes=lambda name, levels, seed: 1 + {4: 0, 2: 0.1, 1: 0.3}[levels["heads"]] + 0.01 * seed,
    )  # fmt: skip
    main = by_name(results.main_effects())
    assert (main["heads=2"]["cells"], main["heads=2"]["left_out"]) == (1, "core=lstm (heads changes nothing in it)")
    assert main["heads=2"]["effect"] == pytest.approx(0.1)
    assert (main["heads=1"]["cells"], main["heads=1"]["left_out"]) == (2, "")
    assert main["core=lstm"]["effect"] == pytest.approx(-0.1 / 3)
    assert set(by_name(results.interactions())) == {"core=lstm with heads=1"}


def test_an_excluded_combination_is_still_not_in_the_plan(tmp_path: Path) -> None:
    name = "norm=none, place=post, drop=0.1"
    results = made(tmp_path / "study", together={key: DEAD[key] for key in DEAD if key != name}, holes={name: "never"})
    norm = by_name(results.main_effects())["norm=none"]
    assert (norm["cells"], norm["left_out"]) == (3, "place=post, drop=0.1 (not in the plan)")


def test_a_lattice_finds_the_arm_of_every_combination(dead: Results, when: Results) -> None:
    lattice = Lattice(dead.plan)
    at = {"norm": "none", "drop": "0.1"}
    assert lattice.arm(at | {"place": "post"}) == lattice.arm(at | {"place": "pre"}) is not None
    assert lattice.unmoved("place") == [arm["id"] for arm in dead.plan["arms"] if arm["levels"]["norm"] == "none"]
    assert lattice.unmoved("norm") == lattice.unmoved("drop") == Lattice(when.plan).unmoved("place") == []


def test_sizes_are_compared_over_all_combinations(tmp_path: Path) -> None:
    """Of the small arms, `ratio=1` has as many at either place."""
    factors: dict[str, list[Any]] = {"ratio": [4, 1], "place": ["pre", "post"]}
    results = made(
        tmp_path / "study", factors=factors, together={"ratio=1, place=post": "ratio=1, place=pre"},
        outcomes=lambda name, levels, seed: 1.0 + 0.01 * seed,
    )  # fmt: skip
    assert [text for text in results.caveats() if "not matched" in text] == [
        "ratio=1 is not matched to ratio=4: -45% parameters and -50% training FLOPs."
    ]


def test_figures_are_of_the_same_cells_as_the_effects(dead: Results, when: Results) -> None:
    ours, theirs = Study(dead), Study(when)
    for factor in FACTORS:
        assert level_means(ours, [factor]).equals(level_means(theirs, [factor]))
    rows = {row.name: row for row in forest_rows(ours)}
    assert list(rows["place=post"].seeds) == [pytest.approx(0.1)] * 4
    assert len(rows["norm=none"].seeds) == 4


def test_the_grid_shows_the_arm_in_each_of_its_cells(dead: Results) -> None:
    grid = cells.grid(Study(dead))
    assert grid is not None
    assert [[cell.text for cell in row.cells] for row in grid.rows] == [
        ["1.015", "1.215"], ["1.115", "1.315"], ["1.430", "1.630"], ["1.430", "1.630"]
    ]  # fmt: skip
    assert grid.rows[3].cells[0].title == "norm=none, place=pre, drop=0.0: 4 of 4 seeds completed"


@pytest.mark.parametrize(
    ("levels", "base", "expected"),
    [
        ({"norm": "none", "drop": 0.1, "lr": 1.0}, {"norm": "layer", "drop": 0.1, "lr": 2.0}, "norm=none"),
        ({"norm": None, "drop": 0.1}, {"norm": "null", "drop": 0.0}, "norm=null, drop=0.1"),
        ({"norm": None}, {}, "norm=null"),  # no level of the other is not its level null
        ({"lr": 1.0}, {"norm": "layer", "lr": 1.0}, ""),
    ],
)
def test_what_a_cell_is_beside_one_factor(levels: dict[str, Any], base: dict[str, Any], expected: str) -> None:
    assert changes(levels, base, "lr") == expected
