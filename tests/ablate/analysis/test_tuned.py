"""Two comparisons of what was tuned: at the baseline's values, and at each arm's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ablate.analysis.results import Results
from ablate.analysis.tuned import flips
from tests.study_maker import make_study

FACTORS = {"placement": ["pre", "post", "sandwich"]}
BEST = {"baseline": 1e-2, "placement=post": 1e-3, "placement=sandwich": 1e-3}
DIFFERENCES = {
    ("placement=post", 1e-2): 0.25, ("placement=post", 1e-3): -0.25, ("placement=sandwich", 1e-2): 0.25,
    ("placement=sandwich", 1e-3): -0.0078125,
}  # fmt: skip


def outcome(name: str, levels: Mapping[str, Any], seed: int) -> float:
    return 1.0 + seed + DIFFERENCES.get((name, levels["lr"]), 0.0)


def study(folder: Path, best: Mapping[str, float] = BEST) -> Results:
    tune = {"rates": [1e-3, 1e-2], "best": best}
    return Results(make_study(folder / "study", factors=FACTORS, seeds=3, outcomes=outcome, tune=tune))


def test_verdicts_and_signs_that_turn_round_are_found(tmp_path: Path) -> None:
    results = study(tmp_path)
    names = {arm["id"]: arm["name"] for arm in results.plan["arms"]}
    found = flips(results.effects(), results.at_baseline())
    assert {names[arm]: what for arm, what in found.items()} == {
        "placement=post": "verdict", "placement=sandwich": "sign",
    }  # fmt: skip
    assert [caveat for caveat in results.caveats() if "turns round" in caveat] == [
        "The verdict on placement=post turns round with the values that it is compared at: worse, +0.250 nats val/loss "
        "[95% simultaneous CI +0.250, +0.250], at those that are best for the baseline; better, -0.250 nats val/loss "
        "[95% simultaneous CI -0.250, -0.250], at its own best.",
        "The sign of the effect of placement=sandwich turns round with the values that it is compared at: worse, "
        "+0.250 nats val/loss [95% simultaneous CI +0.250, +0.250], at those that are best for the baseline; no "
        "practical difference, -0.008 nats val/loss [95% simultaneous CI -0.008, -0.008], at its own best.",
    ]


def test_another_word_at_the_baselines_values_is_said_with_both(tmp_path: Path) -> None:
    """The signs are the same; at its own best the second arm makes no practical difference."""
    moved = {("placement=post", 1e-2): 0.25, ("placement=post", 1e-3): 0.0078125, ("placement=sandwich", 1e-2): 0.25,
             ("placement=sandwich", 1e-3): 0.5}  # fmt: skip
    tune = {"rates": [1e-3, 1e-2], "best": BEST}
    made = make_study(
        tmp_path / "study", factors=FACTORS, seeds=3, tune=tune,
        outcomes=lambda name, levels, seed: 1.0 + seed + moved.get((name, levels["lr"]), 0.0),
    )  # fmt: skip
    assert [caveat for caveat in Results(made).caveats() if "is another with" in caveat] == [
        "The verdict on placement=post is another with the values that it is compared at: worse, +0.250 nats val/loss "
        "[95% simultaneous CI +0.250, +0.250], at those that are best for the baseline; no practical difference, "
        "+0.008 nats val/loss [95% simultaneous CI +0.008, +0.008], at its own best.",
    ]


def test_a_word_without_an_effect_stands_alone(tmp_path: Path) -> None:
    def unstable(name: str, levels: Mapping[str, Any], seed: int) -> float:
        return math.nan if name == "placement=post" and levels["lr"] > 1e-3 else outcome(name, levels, seed)

    tune = {"rates": [1e-3, 1e-2], "best": BEST}
    made = make_study(tmp_path / "study", factors=FACTORS, seeds=3, outcomes=unstable, tune=tune)
    (said,) = (caveat for caveat in Results(made).caveats() if "is another with" in caveat)
    assert "compared at: diverged at those that are best for the baseline; better, -0.250 nats val/loss [" in said


def test_what_stays_as_it_is_has_no_caveat(tmp_path: Path) -> None:
    results = study(tmp_path, dict.fromkeys(BEST, 1e-2))
    assert flips(results.effects(), results.at_baseline()) == {}
    assert not [caveat for caveat in results.caveats() if "turns round" in caveat]
