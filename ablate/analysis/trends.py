"""How the objective moves with a numeric factor: its slope over the logarithm of the level, seed by seed."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ablate.analysis.comparability import incomparable
from ablate.analysis.effects import Grid
from ablate.analysis.lattice import Lattice, is_number
from ablate.analysis.pairing import Floats, contrast
from ablate.analysis.prose import decimals, estimate, fixed, number
from ablate.analysis.sensitivity import sets_rate
from ablate.analysis.verdict import Objective
from ablate.records.frames import spelled

LEAST = 3
"""The fewest levels that a trend is fitted to."""
COLUMNS = (
    "factor", "scale", "levels", "low_level", "high_level", "slope", "low95", "high95", "intercept", "seeds", "planned",
    "cells", "cells_planned", "diverged", "doubling", "doubling_low95", "doubling_high95", "misfit", "left_out",
)  # fmt: skip
"""The columns of :func:`trends`."""


@dataclass(frozen=True)
class Trend:
    """The values that a trend is fitted to, for one factor."""

    factor: str
    levels: tuple[float, ...]
    """The levels that are fitted, ascending."""
    values: pd.DataFrame
    """The objective by seed (rows) and level, averaged over the cells; seeds that lack none of them."""
    cells: int
    cells_planned: int
    diverged: Mapping[float, int]
    """By level, also those that are not fitted, how many of its trials diverged."""
    planned: int
    """How many seeds the study has."""
    left_out: tuple[str, ...]

    @property
    def log(self) -> bool:
        """Whether the objective's logarithm is fitted: where all of it is positive."""
        return bool((self.values > 0).to_numpy().all())

    def fits(self) -> Floats:
        """Slope and intercept of each seed (rows), by least squares over the logarithm of the level."""
        if self.values.empty:
            return np.empty((0, 2))
        x = np.log(self.levels)
        y = self.values.to_numpy(dtype=float)
        y = np.log(y) if self.log else y
        slopes = (y - y.mean(axis=1, keepdims=True)) @ (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        return np.stack([slopes, y.mean(axis=1) - slopes * x.mean()], axis=1)

    def centres(self) -> Floats:
        """The mean of each level over the seeds, in the objective's unit: geometric where its logarithm is fitted."""
        values = self.values.to_numpy(dtype=float)
        return np.asarray(np.exp(np.log(values).mean(axis=0)) if self.log else values.mean(axis=0), dtype=float)

    def line(self, at: Floats) -> Floats:
        """The mean fitted line at some levels, in the objective's unit."""
        slope, intercept = self.fits().mean(axis=0)
        line = np.asarray(intercept + slope * np.log(at))
        return np.exp(line) if self.log else line


def fitted(plan: Mapping[str, Any], trials: pd.DataFrame) -> list[Trend]:
    """What a trend is fitted to, for each factor with three positive numeric levels that is not the learning rate.

    Within a seed the objective is averaged over the cells: the combinations of the other factors that have every level.
    Left out, and named: a level or a cell that diverged in over half of its trials or that no seed has; then each seed
    in which a trial is missing.
    """
    objective, lattice = Objective.of(plan), Lattice(plan)
    grid = Grid.of(plan, trials, objective.metric)
    found = []
    for index, factor in enumerate(plan["factors"]):
        levels = sorted(filter(_positive, factor["levels"]))
        if _distinct(levels) >= LEAST and not sets_rate(factor):
            others = [spelled(level) for level in factor["levels"] if not _positive(level)]
            left_out = [f"{factor['name']}={level} (no positive number)" for level in others]
            found.append(_fitted(plan, grid, objective, factor["name"], *_cells(lattice, index, levels, left_out)))
    return found


def _positive(level: object) -> bool:
    return is_number(level) and 0 < level <= sys.float_info.max


def _distinct(levels: Iterable[float]) -> int:
    """How many places on the axis of a trend they have: 1 and 1.0 are two levels at one place."""
    return len({math.log(level) for level in levels})


def _cells(
    lattice: Lattice, index: int, levels: Sequence[float], left_out: Sequence[str]
) -> tuple[list[float], dict[str, list[str]], list[str]]:
    """The levels that have an arm, and the arms at them by each combination of the other factors that has them all.

    The third is what is left out, in words, with the combinations that lack some of the levels.
    """
    factor = lattice.factors[index]
    others = [name for name in lattice.factors if name != factor]
    at: dict[tuple[str | None, ...], dict[str, str]] = {}
    for place, arm in lattice.arms.items():
        if (level := place[index]) is not None:
            at.setdefault((*place[:index], *place[index + 1 :]), {})[level] = arm
    there = [level for level in levels if any(spelled(level) in arms for arms in at.values())]
    left = [*left_out, *(f"{factor}={spelled(level)} (not in the plan)" for level in levels if level not in there)]
    found = {}
    for rest, arms in at.items():
        row = [arms[level] for level in map(spelled, there) if level in arms]
        named = [f"{name}={level}" for name, level in zip(others, rest, strict=True) if level is not None]
        cell = ", ".join(named) or "the only cell"
        if len(set(row)) > 1 and len(row) < len(there):
            left.append(f"{cell} (a level is not in the plan)")
        elif len(set(row)) > 1:  # else the factor changes nothing there
            found[cell] = row
    return there, found, left


def _fitted(
    plan: Mapping[str, Any],
    grid: Grid,
    objective: Objective,
    factor: str,
    levels: Sequence[float],
    cells: Mapping[str, Sequence[str]],
    left_out: list[str],
) -> Trend:
    rows = list(cells.values())
    columns = [[row[place] for row in rows] for place in range(len(levels))]
    diverged = dict.fromkeys(levels, 0)
    for level, arms in zip(levels, columns, strict=True):
        diverged[level] += sum(grid.number(arm, "diverged") for arm in arms)
    kept = []
    for place, (level, arms) in enumerate(zip(levels, columns, strict=True)):
        if why := _gone(grid, arms):
            left_out.append(f"{factor}={spelled(level)} ({why})")
        else:
            kept.append(place)
    used: list[list[str]] = []
    for name, row in cells.items():
        arms = [row[place] for place in kept]
        if why := next(filter(None, (_gone(grid, [arm]) for arm in arms)), ""):
            left_out.append(f"{name} ({why})")
        else:
            used.append(arms)
    if reason := incomparable(plan, [arm for row in rows for arm in row], objective.metric):
        used, left_out = [], [*left_out, reason]
    if _distinct(levels[place] for place in kept) < LEAST or not used:
        used, kept = [], []
    values = np.mean([[grid.values[arm] for arm in row] for row in used], axis=0) if used else np.empty((0, 0))
    frame = pd.DataFrame(values.T, columns=[levels[place] for place in kept],
                         index=list(grid.seeds) if used else None)  # fmt: skip
    whole = frame.dropna()
    names = {arm["id"]: arm["name"] for arm in plan["arms"]}
    for place, seed in enumerate(grid.seeds if used else ()):
        if seed not in whole.index:
            blamed = [arm for row in used for arm in row if not math.isfinite(grid.values[arm][place])]
            more = f"; {len(blamed) - 1} more" if len(blamed) > 1 else ""
            left_out.append(f"seed {seed} ({names[blamed[0]]}: {grid.ends[blamed[0]][place]}{more})")
    return Trend(factor, tuple(float(level) for level in whole.columns), whole, len(used), len(cells), diverged,
                 len(grid.seeds), tuple(left_out))  # fmt: skip


def _gone(grid: Grid, arms: Sequence[str]) -> str:
    """Why the trials of these arms are left out together; "" where they are not."""
    diverged = sum(grid.number(arm, "diverged") for arm in arms)
    there = sum(int(np.isfinite(grid.values[arm]).sum()) for arm in arms)
    if 2 * diverged > diverged + there:
        return f"diverged in {diverged} of {number(diverged + there, 'trial')}"
    return "" if there else "no seed has it"


def trends(found: Sequence[Trend]) -> pd.DataFrame:
    """One row for each factor with at least three positive numeric levels: the slope of the objective over its level.

    Args:
        found: what is fitted, as :func:`fitted` gives it.

    Columns:
        factor (text). scale (text): ``log-log`` where every value is positive, else ``linear-log``: the objective
            itself over the logarithm of the level.
        levels (int), low_level, high_level (float): those that are fitted.
        slope (float): mean over the seeds of each seed's least-squares slope: of ln(objective), or of the objective,
            over ln(level). low95, high95 (float): Student's t interval over the seeds, for this factor alone.
        intercept (float): of the mean line, at level 1.
        seeds, planned (int): those that have every trial; those of the study.
        cells, cells_planned (int): combinations of the other factors that are averaged over; that there are.
        diverged (int): trials at the factor's levels, also at those that are left out.
        doubling, doubling_low95, doubling_high95 (float): what doubling the level changes, by the line: in % of the
            objective where it is log-log, else in the objective's unit; NaN where it is beyond all numbers.
        misfit (float): the largest distance of a level's mean, geometric where it is log-log, from the mean line; the
            objective's unit.
        left_out (text): levels, cells and seeds that are left out, and why.
    """
    return pd.DataFrame([_row(trend) for trend in found], columns=list(COLUMNS))


def _row(trend: Trend) -> dict[str, Any]:
    fits = trend.fits()
    c = contrast(fits[:, 0], 1)
    there = c.pairs > 0
    off = trend.centres() - trend.line(np.array(trend.levels)) if there else np.array([math.nan])
    doubled = np.array([c.effect, c.low95, c.high95]) * math.log(2)
    with np.errstate(over="ignore"):  # of levels that are close together
        doubled = 100 * np.expm1(doubled) if trend.log else doubled
    doubling, low, high = np.where(np.isfinite(doubled), doubled, math.nan).tolist()
    return {
        "factor": trend.factor, "scale": "log-log" if trend.log else "linear-log", "levels": _distinct(trend.levels),
        "low_level": min(trend.levels, default=math.nan), "high_level": max(trend.levels, default=math.nan),
        "slope": c.effect, "low95": c.low95, "high95": c.high95,
        "intercept": float(fits[:, 1].mean()) if there else math.nan, "seeds": c.pairs, "planned": trend.planned,
        "cells": trend.cells, "cells_planned": trend.cells_planned, "diverged": sum(trend.diverged.values()),
        "doubling": doubling, "doubling_low95": low, "doubling_high95": high, "misfit": float(np.abs(off).max()),
        "left_out": "; ".join(trend.left_out),
    }  # fmt: skip


def sentence(row: Mapping[str, Any], objective: Objective) -> str:
    """One trend in words: its slope, what doubling does, how well a line describes it, and what is left out."""
    factor, metric = row["factor"], objective.metric
    missing = f" Left out: {row['left_out']}." if row["left_out"] else ""
    if not row["seeds"]:
        return f"{factor}: no trend, since fewer than {LEAST} levels have every trial in a seed.{missing}"
    log, unit = row["scale"] == "log-log", objective.spoken
    span = f"{number(row['levels'], 'level')}, {row['low_level']:g} to {row['high_level']:g}"
    seeds = number(row["seeds"], "seed")
    over = f", averaged over {number(row['cells'], 'combination')} of the other factors" if row["cells"] > 1 else ""
    per = "on log-log axes" if log else f"{unit} per ln({factor})".strip()
    slope = estimate(row["slope"], row["low95"], row["high95"])
    change = "%" if log else f" {unit}".rstrip()
    doubling = f"doubling {factor} changes {metric} by "
    doubling += estimate(row["doubling"], row["doubling_low95"], row["doubling_high95"], change)
    if not math.isfinite(row["doubling"]):
        doubling = f"the levels are too close together to say what doubling {factor} does"
    scale = "" if log else f" Not every {metric} is positive, so it is fitted as it is and not its logarithm."
    bent = ""
    if row["misfit"] > objective.smallest_effect:
        off = f"{fixed(row['misfit'], decimals(objective.smallest_effect))} {unit}".rstrip()
        bent = f" A straight line misses a level's mean by up to {off}, which is more than what matters."
    return f"{factor}: slope {slope} {per}, over {span}, by {seeds}{over}: {doubling}.{scale}{bent}{missing}"
