"""Two comparisons of what was tuned: at the baseline's values, and at each arm's own."""

from __future__ import annotations

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


def test_what_stays_as_it_is_has_no_caveat(tmp_path: Path) -> None:
    results = study(tmp_path, dict.fromkeys(BEST, 1e-2))
    assert flips(results.effects(), results.at_baseline()) == {}
    assert not [caveat for caveat in results.caveats() if "turns round" in caveat]
