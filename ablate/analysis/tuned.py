"""What tuning means for the comparison: best values at an edge, and verdicts that turn round with the values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ablate.analysis.lattice import is_number
from ablate.analysis.prose import number
from ablate.analysis.verdict import Objective, measured
from ablate.records.spelling import in_words, short

NAMED = 8
"""So many arms are named with their values."""
NEAR = 0.1
"""Share of a range, at each end, that counts as its edge where values are drawn from it."""


def edges(plan: Mapping[str, Any], arm: Mapping[str, Any], tuning: pd.DataFrame) -> dict[str, str]:
    """The options of an arm whose best value lies at an edge of what was searched, each with where that is.

    Args:
        plan: the study's plan.
        arm: one of its arms, with its ``tuned`` values.
        tuning: the tuning trials, as :func:`ablate.records.tuning.tuning` gives them.
    """
    tried = tuning[tuning["arm"] == arm["id"]]
    at = {
        path: edge(value, tried[f"tuned.{path}"], path, plan["tuning"])
        for path, value in (arm.get("tuned") or {}).items()
    }
    return {path: where for path, where in at.items() if where}


def edge(value: object, tried: Iterable[object], path: str, search: Mapping[str, Any]) -> str:
    """Where a best value is, if it is at an edge of what was searched; else "".

    Args:
        value: the best one.
        tried: all values that were tried.
        path: the option's.
        search: what a plan says of tuning; empty where the values are a factor's levels.
    """
    range_of = search["params"][path] if search else {"log": None, "linear": None}
    ends = range_of["log"] or range_of["linear"]
    if search and search["method"] != "grid" and ends and is_number(value):
        share = _share(value, ends, log=range_of["log"] is not None)
        where = "near the lower end of its range" if share < NEAR else "near the upper end of its range"
        return "" if NEAR <= share <= 1 - NEAR else where
    values = {each for each in tried if is_number(each)}
    if len(values) < 2 or not is_number(value) or value not in (min(values), max(values)):
        return ""
    return "the lowest that was tried" if value == min(values) else "the highest that was tried"


def _share(value: float, ends: Sequence[float], *, log: bool) -> float:
    low, high, at = (math.log(each) if log else each for each in (*ends, value))
    return (at - low) / (high - low)


def tuning_caveats(plan: Mapping[str, Any], tuning: pd.DataFrame) -> Iterator[str]:
    """What to know of the tuned values before believing what they are compared at."""
    if not plan.get("tuning"):
        return
    arms = [arm for arm in plan["arms"] if arm.get("tuned")]
    values = "; ".join(f"{arm['name']} {in_words(arm['tuned'])}" for arm in arms[:NAMED])
    more = f"; and {len(arms) - NAMED} more" if len(arms) > NAMED else ""
    tried = number(plan["tuning"]["combinations"], "combination")
    if arms:
        yield f"Each arm is judged at its own best of {tried}: {values}{more}."
    if len(plan["tuning"]["seeds"]) == 1:
        yield "Values were chosen on a single tuning seed, so part of what was chosen is its noise."
    waiting = [arm["name"] for arm in plan["arms"] if arm.get("tuning") and "tuned" not in arm]
    if waiting:
        yield f"Not every arm is tuned yet: {', '.join(waiting)}."
    for arm in plan["arms"]:
        for path, where in edges(plan, arm, tuning).items():
            value = short(arm["tuned"][path])
            yield f"The best {path} of {arm['name']}, {value}, is {where}: a better one may lie beyond it."


def flips(effects: pd.DataFrame, at_baseline: pd.DataFrame) -> dict[str, str]:
    """What turns round between an arm's own best values and those best for the baseline, by the arm's identity.

    Args:
        effects: the arms at their own best values (:func:`ablate.analysis.effects.effects`).
        at_baseline: the same at the values that are best for the baseline.

    Returns:
        ``verdict`` where one says better and the other worse; ``sign`` where the effects alone have opposite signs;
        ``word`` where neither does, and the verdicts are two words.
    """
    again = {row["arm"]: row for row in at_baseline.to_dict("records")}
    found = {}
    for own in effects.to_dict("records"):
        other = again.get(own["arm"])
        if other is None:
            continue
        words = {str(row["verdict"]).partition(",")[0] for row in (own, other)}
        if own["effect"] * other["effect"] < 0:  # not where one is unknown
            found[str(own["arm"])] = "verdict" if words == {"better", "worse"} else "sign"
        elif own["verdict"] != other["verdict"]:
            found[str(own["arm"])] = "word"
    return found


def flip_caveats(objective: Objective, effects: pd.DataFrame, at_baseline: pd.DataFrame) -> Iterator[str]:
    """The arms for which the answer turns round with the values that they are compared at."""
    again = {row["arm"]: row for row in at_baseline.to_dict("records")}
    turned = flips(effects, at_baseline)
    for own in effects.to_dict("records"):
        if own["arm"] not in turned:
            continue
        at, best = (_told(row, objective) for row in (again[own["arm"]], own))
        what = {
            "verdict": f"The verdict on {own['name']} turns round",
            "sign": f"The sign of the effect of {own['name']} turns round",
            "word": f"The verdict on {own['name']} is another",
        }[turned[own["arm"]]]
        yield (
            f"{what} with the values that it is compared at: {at} at those that are best for the baseline; {best} at "
            "its own best."
        )


def _told(row: Mapping[Any, Any], objective: Objective) -> str:
    if not math.isfinite(row["effect"]):
        return str(row["verdict"])
    return f"{row['verdict']}, {measured(objective, row['effect'], row['low'], row['high'])},"
