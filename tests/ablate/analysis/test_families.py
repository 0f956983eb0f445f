"""What is said of designs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ablate.analysis.families import MOST_ALIASES
from ablate.analysis.results import Results
from tests.study_maker import make_study

FOUR = {letter: ["x", "y"] for letter in "abcd"}


def caveats(folder: Path, **options: Any) -> list[str]:
    return Results(make_study(folder / "study", seeds=6, steps=20, **options)).caveats()


def fraction(folder: Path, **stated: Any) -> list[str]:
    said = {"resolution": 4, "runs": 8, "full": 16, "aliases": [["a:b", "c:d"], ["a:c", "b:d"]]} | stated
    return caveats(folder, design="fractional", factors=FOUR, fraction=said)


def test_a_fraction_states_its_resolution_and_what_is_aliased(tmp_path: Path) -> None:
    assert fraction(tmp_path, generators=["d=abc"])[1:4] == [
        "Verdicts are on the main effects, the mean of the arms at a level minus that of the arms at its reference; "
        "their intervals hold together at 95% for the 4 main effects (Bonferroni).",
        "The design is 8 of 16 combinations, of resolution 4 (d=abc): a main effect cannot be told apart from "
        "three-way interactions.",
        "No interaction and no simple effect is reported: two-way interactions are aliased with each other, a:b with "
        "c:d; a:c with b:d.",
    ]


def test_at_resolution_3_main_effects_are_aliased_with_two_way_interactions(tmp_path: Path) -> None:
    said = fraction(tmp_path, resolution=3, aliases=[["a", "b:c"], ["a:d", "c:d"]])
    assert said[2:4] == [
        "The design is 8 of 16 combinations, of resolution 3: a main effect cannot be told apart from two-way "
        "interactions: a with b:c.",
        "No interaction and no simple effect is reported: two-way interactions are aliased with main effects.",
    ]


def test_at_resolution_5_and_in_the_whole(tmp_path: Path) -> None:
    five = fraction(tmp_path, resolution=5, aliases=[])
    assert five[2].endswith("of resolution 5: a main effect cannot be told apart from four-way interactions.")
    assert five[3] == "No interaction and no simple effect is reported: verdicts are on main effects alone."
    whole = fraction(tmp_path / "whole", resolution=None, runs=16, aliases=[])
    assert whole[2] == (
        "The fraction is all of the 16 combinations, so nothing is aliased; interactions are not reported: "
        "`design: full` does."
    )


def test_of_many_aliases_their_number_is_given(tmp_path: Path) -> None:
    said = fraction(tmp_path, aliases=[[f"a:{n}", f"b:{n}"] for n in range(MOST_ALIASES + 3)])[3]
    assert said.endswith("a:5 with b:5; and 3 more.")


def test_a_factor_that_is_no_part_of_some_arms_is_named(tmp_path: Path) -> None:
    factors: dict[str, list[Any]] = {"core": ["attention", "lstm"], "heads": [4, None]}
    said = caveats(tmp_path, design="full", factors=factors, conditions={"heads": ("core", "attention")})
    assert (
        "heads is no part of 1 of 3 arms (core=lstm): its effects are over the arms that have it, and an arm without "
        "it stands for all of its levels."
    ) in said


def test_levels_are_matched_among_the_arms_that_have_them(tmp_path: Path) -> None:
    """The ratio of an arm that has no factor `ratio` is no level null."""
    factors: dict[str, list[Any]] = {"core": ["attention", "lstm"], "ratio": [None, 2]}
    said = caveats(tmp_path, design="full", factors=factors, conditions={"ratio": ("core", "attention")})
    assert "ratio=2 is not matched to ratio=null: -30% parameters and -33% training FLOPs." in said
    assert not any(text.startswith("core=lstm is not matched to core=attention: -") for text in said)


def test_other_designs_say_nothing_of_that(tmp_path: Path) -> None:
    said = caveats(tmp_path, design="pairs", factors={"placement": ["pre", "post"], "scale": ["on", "off"]})
    assert said[1] == "The intervals that carry the verdicts hold together at 95% for the 3 arms planned (Bonferroni)."
    assert not any("aliased" in text or "no part" in text for text in said)


def test_one_effect_has_an_interval_of_its_own(tmp_path: Path) -> None:
    factors = {"placement": ["pre", "post"]}
    said = Results(make_study(tmp_path / "one", factors=factors)).caveats()
    assert said[1] == "The interval that carries the verdict is a 95% interval."
    said = Results(make_study(tmp_path / "full", design="full", factors=factors)).caveats()
    assert said[1] == "The verdict is on the only main effect; the interval that carries it is a 95% interval."
