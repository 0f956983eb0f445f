"""Ablation paths: what each part of a model changes by itself, all of them at once, and whether the parts add up.

For the designs ``leave_one_out``, where parts are removed from the full model, and ``add_one``, where they are added to
the bare one. The baseline is one end of the path, the arm in which every factor is changed the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ablate.analysis.comparability import incomparable
from ablate.analysis.effects import Grid, family_of
from ablate.analysis.lattice import Lattice, levels_in_order
from ablate.analysis.pairing import Contrast, Floats, contrast
from ablate.analysis.prose import joined, number
from ablate.analysis.verdict import Objective, excludes_zero, measured
from ablate.records.frames import spelled

DONE = {"leave_one_out": "removed", "add_one": "added"}
"""The designs that have a path, and what happens to a part on it."""
COLUMNS = (
    "kind", "name", "arm", "seeds", "planned", "effect", "low", "high", "low95", "high95", "family", "p",
    "p_sign_flip", "agree", "diverged", "left_out", "finding",
)  # fmt: skip
"""The columns of :func:`ablation`."""
_KINDS = {
    "seeds": "int64", "planned": "int64", "family": "int64", "agree": "int64", "diverged": "int64",
    "kind": "str", "name": "str", "arm": "str", "left_out": "str", "finding": "str",
}  # fmt: skip


def ablation(plan: Mapping[str, Any], trials: pd.DataFrame) -> pd.DataFrame:
    """The path from the baseline to the other end; no rows unless the design has one, of two parts or more.

    Columns:
        kind (text): ``part``, a row for each factor; then one row each of ``sum``, of the parts; ``whole``, all parts
            at once; ``difference``, the whole minus the sum, which is 0 where parts add up. With two parts it is their
            interaction.
        name (text): as ``scale=off``. arm (text): the arm's identity; "" for the sum and the difference.
        seeds (int): seeds that count. planned (int): seeds planned.
        effect (float): the change of the objective when the part is removed (``leave_one_out``) or added
            (``add_one``), mean over seeds; the metric's unit.
        low, high (float): 95% interval, paired t; simultaneous (Bonferroni) over ``family`` effects. family (int): for
            parts and whole, all arms that are planned, as in :func:`ablate.analysis.effects.effects`; the sum and the
            difference have intervals of their own. low95, high95 (float): 95% interval of this effect alone.
        p, p_sign_flip (float), agree (int): as in :func:`ablate.analysis.effects.effects`.
        diverged (int): seeds of the arm. left_out (text): what the effect does without, and why.
        finding (text): of the difference, ``adds up``: its interval is inside the smallest effect that matters;
            ``interacts``: its interval excludes zero; ``open``; "" where it cannot be computed.

    A sum is of the seeds that have every arm, and there is none where a trial of one of them diverged, or an arm is not
    there.
    """
    if plan["design"] not in DONE or len(plan["factors"]) < 2:
        return pd.DataFrame({key: pd.Series(dtype=_KINDS.get(key, "float64")) for key in COLUMNS})
    objective, lattice = Objective.of(plan), Lattice(plan)
    grid = Grid.of(plan, trials, objective.metric)
    changes = _changes(plan)
    base = {factor["name"]: spelled(levels_in_order(factor)[0]) for factor in plan["factors"]}
    arms = {f"{key}={to}": lattice.arm(base | {key: to}, [key]) for key, to in changes.items()}
    whole = all_at_once(plan, lattice)
    rows = [_arm_row(plan, grid, "part", name, arm) for name, arm in arms.items()]
    every = {**arms, ", ".join(arms): whole}
    left_out, values = _together(plan, grid, every)
    parts, ends = values[:-1].sum(axis=0), values[-1]
    difference = contrast(ends - parts, 1)
    named = {"planned": len(grid.seeds), "family": 1, "left_out": left_out, "arm": "", "diverged": 0}
    rows += [
        {"kind": "sum", "name": "sum of the parts", **named, **contrast(parts, 1).columns()},
        _arm_row(plan, grid, "whole", ", ".join(arms), whole),
        {"kind": "difference", "name": "whole minus sum", **named, **difference.columns(),
         "finding": _finding(difference, objective)},
    ]  # fmt: skip
    columns = {key: [row.get(key, "") for row in rows] for key in COLUMNS}
    return pd.DataFrame({key: pd.Series(each, dtype=_KINDS.get(key, "float64")) for key, each in columns.items()})


def all_at_once(plan: Mapping[str, Any], lattice: Lattice) -> str | None:
    """The identity of the arm in which every part is changed; None in other designs, and where there is one part."""
    return lattice.arm(_changes(plan)) if plan["design"] in DONE and len(plan["factors"]) > 1 else None


def _changes(plan: Mapping[str, Any]) -> dict[str, str]:
    """The level that is not the baseline's, of each factor."""
    return {factor["name"]: spelled(levels_in_order(factor)[-1]) for factor in plan["factors"]}


def sentence(plan: Mapping[str, Any], path: pd.DataFrame) -> str:
    """Whether the parts of a path add up to the whole, in a sentence or two; "" where there is no path."""
    if path.empty:
        return ""
    objective, done = Objective.of(plan), DONE[plan["design"]]
    count = number(int((path["kind"] == "part").sum()), "part")
    row: dict[str, Any] = {str(each["kind"]): each for each in path.to_dict("records")}
    total, found = row["sum"], row["difference"]
    if not found["seeds"]:
        return f"Whether the {count} add up cannot be said: {found['left_out']}."
    # The whole is here of the same seeds as the sum, which may be fewer than it has by itself.
    sizes = (
        f"{done.capitalize()} one at a time, the {count} change {objective.metric} by "
        f"{_change(objective, total['effect'])} in sum; {done} all at once, by "
        f"{_change(objective, total['effect'] + found['effect'])}."
    )
    size = measured(objective, found["effect"], found["low"], found["high"], interval="95% CI")
    ends = {
        "adds up": f"The parts add up: the difference, {size}, lies within ±{objective.smallest_effect:g}",
        "interacts": (
            f"They interact: all at once it ends {_way(found['effect'], objective)} than the parts' sum, by {size}"
        ),
        "open": f"Whether they add up is open: the difference is {size}",
    }
    alone = "; one seed gives no interval" if found["seeds"] == 1 else ""
    without = f"; left out: {found['left_out']}" if found["left_out"] else ""
    return f"{sizes} {ends[found['finding']]}{alone}{without}."


def _change(objective: Objective, effect: float) -> str:
    return measured(objective, effect).removesuffix(f" {objective.metric}")


def _way(effect: float, objective: Objective) -> str:
    return f"{'higher' if effect > 0 else 'lower'} ({'worse' if objective.worse(effect) > 0 else 'better'})"


def _finding(difference: Contrast, objective: Objective) -> str:
    d = objective.smallest_effect
    if not difference.pairs:
        return ""
    if difference.identical or (-d < difference.low and difference.high < d):
        return "adds up"
    return "interacts" if excludes_zero(difference) else "open"


def _arm_row(plan: Mapping[str, Any], grid: Grid, kind: str, name: str, arm: str | None) -> dict[str, Any]:
    """One arm against the baseline, with the interval that it has among all effects."""
    base, family = plan["baseline"], family_of(plan)
    row = {"kind": kind, "name": name, "arm": arm or "", "planned": len(grid.seeds), "family": family, "diverged": 0}
    if arm is None:
        return row | {"left_out": "not in the plan", **contrast([], family).columns()}
    reason = incomparable(plan, [base, arm], plan["objective"]["metric"])
    differences = grid.values[arm] - grid.values[base]
    found = contrast([] if reason else differences[np.isfinite(differences)], family)
    same = "the same arm as the baseline" if arm == base else ""
    return row | {
        "planned": grid.planned(arm), "diverged": grid.number(arm, "diverged"), "left_out": reason or same,
        **found.columns(),
    }  # fmt: skip


def _together(plan: Mapping[str, Any], grid: Grid, arms: Mapping[str, str | None]) -> tuple[str, Floats]:
    """The differences of all arms to the baseline in the seeds that have every one, and what is left out and why."""
    known = {name: arm for name, arm in arms.items() if arm is not None}
    everyone = {"baseline": plan["baseline"], **known}
    none = np.empty((len(arms), 0))
    gone = [f"{name} is not in the plan" for name, arm in arms.items() if arm is None]
    gone += [
        f"{name} diverged in {number(lost, 'seed')}"
        for name, arm in everyone.items()
        if (lost := grid.number(arm, "diverged"))
    ]
    reason = incomparable(plan, everyone.values(), plan["objective"]["metric"])
    if gone or reason:
        return joined([*gone, reason] if reason else gone), none
    differences = np.array([grid.values[arm] - grid.values[plan["baseline"]] for arm in known.values()])
    there = np.isfinite(differences).all(axis=0)
    missing = [
        f"seed {seed} ({joined([n for n, arm in everyone.items() if not math.isfinite(grid.values[arm][place])])})"
        for place, seed in enumerate(grid.seeds)
        if not there[place]
    ]
    if not there.any():
        return "no seed has completed all of the arms", none
    return joined(missing) if missing else "", differences[:, there]
