"""Whether tuning found what it looked for: a best value at an edge may have a better one beyond."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ablate.analysis.prose import number
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
    found = {}
    for path, value in (arm.get("tuned") or {}).items():
        search = plan["tuning"]["params"][path]
        ends = search["log"] or search["linear"]
        if plan["tuning"]["method"] != "grid" and ends:
            share = _share(value, ends, log=search["log"] is not None)
            where = "near the lower end of its range" if share < NEAR else "near the upper end of its range"
            at_edge = not NEAR <= share <= 1 - NEAR
        else:
            values = {each for each in tried[f"tuned.{path}"] if _is_number(each)}
            at_edge = len(values) > 1 and _is_number(value) and value in (min(values), max(values))
            where = "the lowest that was tried" if at_edge and value == min(values) else "the highest that was tried"
        if at_edge:
            found[path] = where
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
