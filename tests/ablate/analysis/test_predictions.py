"""Predictions beside the verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ablate.analysis.predictions import judged
from ablate.analysis.results import Results
from ablate.analysis.verdict import WORDS
from tests.study_maker import make_study

XIONG = "Xiong et al. 2020, Fig. 2"
JUDGED = {
    "better": {
        "confirmed": {"better", "better, size uncertain"},
        "contradicted": {"worse", "worse, size uncertain", "diverged", "no practical difference", "identical"},
    },
    "worse": {
        "confirmed": {"worse", "worse, size uncertain", "diverged"},
        "contradicted": {"better", "better, size uncertain", "no practical difference", "identical"},
    },
    "no_difference": {
        "confirmed": {"no practical difference", "identical"},
        "contradicted": {"better", "worse", "diverged"},
    },
    "diverged": {"confirmed": {"diverged"}, "contradicted": {*WORDS} - {"diverged", "not comparable"}},
}  # fmt: skip
"""By effect: the verdicts that confirm and contradict it; every other leaves it open."""


def of_arm(arm: str, effect: str, source: str = "") -> dict[str, Any]:
    return {"name": arm, "arm": arm, "factor": None, "level": None, "effect": effect, "source": source}


def of_level(factor: str, level: Any, effect: str) -> dict[str, Any]:
    name = f"{factor}={'null' if level is None else level}"
    return {"name": name, "arm": None, "factor": factor, "level": level, "effect": effect, "source": ""}


def rows(folder: Path, expect: list[dict[str, Any]], **study: Any) -> list[tuple[str, ...]]:
    frame = Results(make_study(folder / "study", expect=expect, steps=20, **study)).predictions()
    assert list(frame.columns) == ["name", "effect", "verdict", "judged", "source"]
    return list(frame.itertuples(index=False, name=None))


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("effect", JUDGED)
def test_every_verdict_confirms_contradicts_or_leaves_open(effect: str, word: str) -> None:
    wanted = next((found for found, words in JUDGED[effect].items() if word in words), "open")
    assert judged(effect, word, seeds=6, complete=True) == wanted
    # What is not over yet may still diverge, and says of everything else what it says so far.
    interim = "open" if effect == "diverged" and word != "diverged" else wanted
    assert judged(effect, word, seeds=6, complete=False) == interim


def test_predictions_about_arms(tmp_path: Path) -> None:
    expect = [
        of_arm("placement=post", "worse", XIONG), of_arm("scale=off", "no_difference"), of_arm("ratio=1", "better"),
        of_arm("residual=none", "diverged", "a\n  hunch"), of_arm("ratio=2", "no_difference"),
    ]  # fmt: skip
    assert rows(tmp_path, expect) == [
        ("placement=post", "worse", "worse", "confirmed", XIONG),
        ("scale=off", "no_difference", "worse", "contradicted", ""),
        ("ratio=1", "better", "worse", "contradicted", ""),
        ("residual=none", "diverged", "worse", "contradicted", "a hunch"),
        ("ratio=2", "no_difference", "worse, size uncertain", "open", ""),
    ]


def test_predictions_about_levels_of_a_full_design(tmp_path: Path) -> None:
    factors: dict[str, list[Any]] = {"placement": ["pre", "post"], "width": [64, None]}
    expect = [
        of_level("placement", "post", "worse"),
        of_level("width", None, "no_difference"),
        of_arm("placement=post, width=null", "worse"),
    ]
    assert rows(tmp_path, expect, factors=factors, design="full", outcomes=outcome) == [
        ("placement=post", "worse", "worse", "confirmed", ""),
        ("width=null", "no_difference", "no practical difference", "confirmed", ""),
        ("placement=post, width=null", "worse", "worse", "confirmed", ""),
    ]


def outcome(name: str, levels: Any, seed: int) -> float:
    """1.5, plus 0.1 for post, 0.001 for a null width, and 0.001 a seed of the arms that are post."""
    post, null = bool(levels["placement"] == "post"), bool(levels["width"] is None)
    return 1.5 + (0.1 + 0.001 * seed) * post + null * (0.001 + 0.0001 * seed)


def test_predictions_about_levels_of_a_fraction(tmp_path: Path) -> None:
    expect = [of_level("scale", "off", "worse"), of_level("residual", "none", "better")]
    assert [(name, judgement) for name, _, _, judgement, _ in rows(tmp_path, expect, design="fractional")] == [
        ("scale=off", "confirmed"), ("residual=none", "contradicted")
    ]  # fmt: skip


def test_divergence_that_was_predicted(tmp_path: Path) -> None:
    expect = [of_arm("placement=post", "diverged"), of_arm("scale=off", "worse"), of_arm("ratio=1", "no_difference")]
    gone = [(each["arm"], seed) for each in expect for seed in range(4)]
    assert [row[2:4] for row in rows(tmp_path, expect, diverged=gone)] == [
        ("diverged", "confirmed"), ("diverged", "confirmed"), ("diverged", "contradicted")
    ]  # fmt: skip


@pytest.mark.parametrize(("options", "found"), [
    ({}, ("worse", "contradicted")),
    ({"waiting": [("baseline", 5)]}, ("worse", "open")),
    ({"failed": [("placement=post", seed) for seed in range(6)]}, ("undecided", "open")),
    ({"diverged": [("baseline", 0)]}, ("not comparable", "open")),
])  # fmt: skip
def test_divergence_is_contradicted_by_what_came_through(
    tmp_path: Path, options: dict[str, Any], found: tuple[str, str]
) -> None:
    ((_, _, verdict, judgement, _),) = rows(tmp_path, [of_arm("placement=post", "diverged")], **options)
    assert (verdict, judgement) == found


def test_older_plans_name_the_arm_alone(tmp_path: Path) -> None:
    expect = [{"arm": "placement=post", "effect": "worse", "source": XIONG}]
    assert rows(tmp_path, expect) == [("placement=post", "worse", "worse", "confirmed", XIONG)]
    assert Results(make_study(tmp_path / "none", steps=20, seeds=2)).predictions().empty


def test_a_prediction_about_the_baseline_or_nothing_is_open(tmp_path: Path) -> None:
    expect = [of_arm("baseline", "worse"), of_level("placement", "post", "worse")]
    assert [row[2:4] for row in rows(tmp_path, expect)] == [("", "open"), ("", "open")]
