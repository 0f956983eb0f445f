"""What was predicted before the run (``expect``), set beside the verdicts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from ablate.records.frames import spelled

COLUMNS = ("name", "effect", "verdict", "judged", "source")
"""The columns of :func:`predictions`."""

_SAME = ("no practical difference", "identical")
_BETTER = ("better", "better, size uncertain")
_WORSE = ("worse", "worse, size uncertain")
CONFIRMED = {"better": _BETTER, "worse": (*_WORSE, "diverged"), "no_difference": _SAME, "diverged": ("diverged",)}
"""The verdicts that confirm a prediction."""
CONTRADICTED = {
    "better": (*_WORSE, "diverged", *_SAME),
    "worse": (*_BETTER, *_SAME),
    "no_difference": ("better", "worse", "diverged"),
}
"""The verdicts that contradict it; whether an arm diverges is known only once a study is over."""


def predictions(
    plan: Mapping[str, Any], effects: pd.DataFrame, main_effects: pd.DataFrame, *, complete: bool
) -> pd.DataFrame:
    """One row for each prediction, in the plan's order; none where nothing was predicted.

    Args:
        plan: the study's plan.
        effects: the arms against the baseline (:func:`ablate.analysis.effects.effects`).
        main_effects: those of a factorial design (:meth:`ablate.analysis.factorial.Factorial.main_effects`).
        complete: whether every planned trial has ended.

    Columns:
        name (text): the arm, or the level whose main effect it is about, as ``placement=post``.
        effect (text): what was predicted: ``better``, ``worse``, ``no_difference`` or ``diverged``.
        verdict (text): of the arm or main effect, one of :data:`ablate.analysis.verdict.WORDS`; "" where there is none.
        judged (text): ``confirmed``, ``contradicted`` or ``open``.
        source (text): where the prediction comes from; "" where nothing was given.
    """
    names = {arm["id"]: arm["name"] for arm in plan["arms"]}
    arms = {row["arm"]: (row["verdict"], row["pairs"]) for row in effects.to_dict("records")}
    levels = {
        (row["factor"], spelled(row["level"])): (row["verdict"], row["seeds"])
        for row in main_effects.to_dict("records")
    }
    rows = []
    for each in plan.get("expect") or ():
        arm, factor = each.get("arm"), each.get("factor")
        # Null is a level too, so it is the factor that says what the prediction is about.
        level = "" if factor is None else spelled(each.get("level"))
        verdict, seeds = arms.get(arm, ("", 0)) if factor is None else levels.get((factor, level), ("", 0))
        rows.append({
            "name": each.get("name") or (names.get(arm, "") if factor is None else f"{factor}={level}"),
            "effect": each["effect"], "verdict": verdict,
            "judged": judged(each["effect"], verdict, seeds=seeds, complete=complete),
            "source": " ".join((each.get("source") or "").split()),
        })  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS), dtype="str")


def judged(effect: str, verdict: str, *, seeds: int, complete: bool) -> str:
    """Whether a verdict, which rests on so many seeds, confirms or contradicts a prediction, or leaves it open."""
    if verdict in CONFIRMED[effect]:
        return "confirmed"
    if effect == "diverged":
        # Without a seed that came through, nothing speaks against it.
        known = complete and seeds > 0 and verdict != "not comparable"
        return "contradicted" if known else "open"
    return "contradicted" if verdict in CONTRADICTED[effect] else "open"


def predicted(row: Mapping[Hashable, Any]) -> str:
    """One prediction in words, as ``placement=post worse (Xiong et al. 2020, Fig. 2)``."""
    source = f" ({row['source']})" if row["source"] else ""
    return f"{row['name']} {row['effect'].replace('_', ' ')}{source}"
