"""Shapley shares over a full design: how much of the way from one corner to the opposite one is each factor's.

A factor's share is what changing it does on average over all orders in which the factors can be changed one after
another; the shares sum to the whole difference exactly. Source: Shapley 1953, A Value for n-Person Games.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ablate.analysis.comparability import incomparable
from ablate.analysis.effects import Grid
from ablate.analysis.lattice import Lattice, levels_in_order
from ablate.analysis.pairing import Floats, contrast
from ablate.analysis.prose import joined, number
from ablate.analysis.verdict import excludes_zero
from ablate.records.frames import spelled
from ablate.records.tasks import task_factor

MOST_CORNERS = 12
"""So many ways in which every factor is changed are looked at: where factors have many levels there are many more."""
COLUMNS = (
    "kind", "corner", "name", "factor", "level", "against", "seeds", "planned", "effect", "low", "high", "low95",
    "high95", "family", "p", "share", "left_out",
)  # fmt: skip
"""The columns of :func:`shapley`."""
_TYPES = {
    "kind": "str", "corner": "str", "name": "str", "factor": "str", "level": "object", "against": "object",
    "seeds": "int64", "planned": "int64", "family": "int64", "left_out": "str",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Change:
    """A factor that is changed, and from which level to which."""

    factor: str
    level: Any
    against: Any

    @property
    def name(self) -> str:
        return f"{self.factor}={spelled(self.level)}"


def shapley(plan: Mapping[str, Any], trials: pd.DataFrame) -> pd.DataFrame:
    """Each factor's share of the way to every corner in which all factors are changed.

    No rows unless the design is ``full``, has two factors or more, and none of them is one over tasks. A way starts
    from the reference level of every factor, the baseline's; with factors of two levels there is one corner, otherwise
    one for each choice of other levels, of which the first :data:`MOST_CORNERS` in the plan's order are given
    (:func:`corners` counts them).

    Columns:
        kind (text): ``share``, a row for each factor, or ``whole``, one for the way itself, their sum.
        corner (text): as ``scale=off, residual=none``. name, factor (text). level, against (object): of a share, the
            factor's level at the corner and its reference; None is a level, and pd.NA stands in the row of the whole.
        seeds (int): seeds that have every combination on the way. planned (int): seeds planned.
        effect (float): Shapley value within each seed, mean over seeds; the objective's unit.
        low, high (float): 95% interval (Student's t), simultaneous (Bonferroni) over ``family`` effects. family (int):
            all shares of all corners given, or all of their wholes. low95, high95 (float): of this effect alone.
        p (float): paired t. share (float): % of the whole; NaN unless the whole's interval excludes zero. A share is
            negative, or beyond 100, where a factor works against the others.
        left_out (text): what is missing. There is no value where a combination on the way is not in the plan, or a
            trial of one diverged: nothing is filled in.
    """
    rows: list[dict[str, Any]] = []
    if corners(plan):
        lattice, grid = Lattice(plan), Grid.of(plan, trials, plan["objective"]["metric"])
        ways = list(itertools.islice(_ways(plan), MOST_CORNERS))
        for way in ways:
            rows += _rows(plan, lattice, grid, way, len(ways))
    columns = {key: [row.get(key) for row in rows] for key in COLUMNS}
    return pd.DataFrame({key: pd.Series(each, dtype=_TYPES.get(key, "float64")) for key, each in columns.items()})


def corners(plan: Mapping[str, Any]) -> int:
    """How many corners there are in which every factor is changed; 0 where the design has no Shapley shares."""
    if plan["design"] != "full" or task_factor(plan) is not None or len(plan["factors"]) < 2:
        return 0
    return math.prod(len(factor["levels"]) - 1 for factor in plan["factors"])


def values_of(worth: Floats) -> Floats:
    """Shapley values of k players from the worth of every coalition.

    Args:
        worth: (2^k, n) array; row m is the worth of the players whose bits are set in m, in each of n games.

    Returns:
        (k, n) array; its sum over the players is the worth of all less that of none.
    """
    players = len(worth).bit_length() - 1
    masks = np.arange(len(worth))
    sizes = np.array([mask.bit_count() for mask in range(len(worth))])
    # How often a player joins just this coalition, of all orders in which the players can come.
    weights = np.array([1 / (players * math.comb(players - 1, size)) for size in range(players)])
    found = np.empty((players, worth.shape[1]))
    for player in range(players):
        without = masks[masks & (1 << player) == 0]
        found[player] = weights[sizes[without]] @ (worth[without | (1 << player)] - worth[without])
    return found


def _ways(plan: Mapping[str, Any]) -> Iterator[list[_Change]]:
    """For every corner, what is changed on the way to it."""
    ordered = {factor["name"]: levels_in_order(factor) for factor in plan["factors"]}
    choices = [[_Change(name, level, levels[0]) for level in levels[1:]] for name, levels in ordered.items()]
    for way in itertools.product(*choices):
        yield list(way)


def _rows(
    plan: Mapping[str, Any], lattice: Lattice, grid: Grid, way: Sequence[_Change], ways: int
) -> list[dict[str, Any]]:
    """The shares of one corner, and their sum."""
    places = [
        {each.factor: spelled(each.level if mask >> at & 1 else each.against) for at, each in enumerate(way)}
        for mask in range(2 ** len(way))
    ]
    arms = [lattice.arm(place) for place in places]
    left_out, worth = _worth(plan, grid, places, arms)
    named = {"corner": ", ".join(each.name for each in way), "planned": len(grid.seeds), "left_out": left_out}
    whole = contrast(worth[-1] - worth[0], ways)
    family = ways * len(way)
    rows: list[dict[str, Any]] = []
    for each, values in zip(way, values_of(worth), strict=True):
        share = contrast(values, family)
        part = 100 * share.effect / whole.effect if excludes_zero(whole) else math.nan
        about = {"name": each.name, "factor": each.factor, "level": each.level, "against": each.against}
        rows.append({"kind": "share", **about, "family": family, "share": part, **share.columns()} | named)
    of_all = 100.0 if excludes_zero(whole) else math.nan
    about = {"name": "all of them", "factor": "", "level": pd.NA, "against": pd.NA, "family": ways, "share": of_all}
    return [*rows, {"kind": "whole", **about, **whole.columns()} | named]


def _worth(
    plan: Mapping[str, Any], grid: Grid, places: Sequence[Mapping[str, str]], arms: Sequence[str | None]
) -> tuple[str, Floats]:
    """The objective at every combination on the way (rows) in the seeds that have all, and what is missing."""
    none = np.empty((len(arms), 0))
    missing = [_name(place) for place, arm in zip(places, arms, strict=True) if arm is None]
    there = list(dict.fromkeys(arm for arm in arms if arm is not None))
    names = {arm["id"]: arm["name"] for arm in plan["arms"]}
    gone = [f"not in the plan: {joined(missing)}"] if missing else []
    diverged = [f"{names[arm]} ({number(n, 'seed')})" for arm in there if (n := grid.number(arm, "diverged"))]
    gone += [f"diverged: {joined(diverged)}"] if diverged else []
    gone += [reason] if (reason := incomparable(plan, there, plan["objective"]["metric"])) else []
    if gone:
        return "; ".join(gone), none
    worth = np.array([grid.values[arm] for arm in arms if arm is not None])
    whole = np.isfinite(worth).all(axis=0)
    if not whole.any():
        return "no seed has completed all of the combinations", none
    lacking = [
        f"seed {seed} ({joined([names[arm] for arm in there if not math.isfinite(grid.values[arm][place])])})"
        for place, seed in enumerate(grid.seeds)
        if not whole[place]
    ]
    return "; ".join(lacking), worth[:, whole]


def _name(place: Mapping[str, str]) -> str:
    return ", ".join(f"{factor}={level}" for factor, level in place.items())
