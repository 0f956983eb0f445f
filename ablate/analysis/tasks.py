"""Several tasks in one experiment: effects by task, scores that all tasks have in common, and their summary.

A score is a value of the objective between a task's floor (0) and its ceiling (1), as the task states them. Ten tasks
or more are summarised by the interquartile mean with a bootstrap interval and by performance profiles (Agarwal et al.
2021, Deep Reinforcement Learning at the Edge of the Statistical Precipice, §4); of fewer a summary says more about
which tasks were taken than about the architectures.

The formulas are those of `rliable` 1.2.0, which cannot be installed beside pandas 3: it needs a version of `arch` that
pandas 3 breaks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import trim_mean

from ablate.analysis.comparability import unit_of
from ablate.analysis.lattice import changes, levels_in_order
from ablate.analysis.prose import joined
from ablate.records.spelling import spelled
from ablate.records.tasks import level_of, range_of, task_factor

ENOUGH = 10
"""The fewest tasks that are summarised."""
DRAWS = 2000
"""Bootstrap samples of a summary."""
THRESHOLDS = 51
"""Scores at which a performance profile is taken, from floor to ceiling."""
BY_TASK = ("name", "task", "effect", "low", "high", "unit", "seeds", "planned", "diverged", "verdict")
"""The columns of :func:`by_task`."""
SCORES = ("name", "task", "seed", "end", "value", "score")
"""The columns of :func:`scores`."""
SUMMARY = ("name", "tasks", "seeds", "planned", "iqm", "low", "high", "diverged")
"""The columns of :func:`summary`."""
PROFILES = ("name", "threshold", "share", "low", "high")
"""The columns of :func:`profiles`."""

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tasks:
    """The tasks of a plan, each with its floor and its ceiling where it states them."""

    factor: str
    """The factor whose levels they are."""
    names: tuple[str, ...]
    """The levels, the baseline's first."""
    ranges: Mapping[str, tuple[float, float]]
    """Floor and ceiling of the objective, by task; only of those that state both."""
    metric: str

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Tasks | None:
        """The tasks of a plan; None where there is one alone, or no one factor says which it is."""
        name = task_factor(plan)
        if name is None:
            return None
        factor = next(each for each in plan["factors"] if each["name"] == name)
        present = {level_of(arm, name) for arm in plan["arms"]}
        metric = plan["objective"]["metric"]
        ranges = {}
        for arm in plan["arms"]:
            floor, ceiling = range_of(plan, arm)
            if floor is not None and ceiling is not None and floor != ceiling:
                ranges[level_of(arm, name)] = (float(floor), float(ceiling))
        names = tuple(level for level in map(spelled, levels_in_order(factor)) if level in present)
        return cls(name, names, ranges, metric)

    @property
    def unranged(self) -> list[str]:
        """The tasks that do not state between which values the objective lies."""
        return [name for name in self.names if name not in self.ranges]

    def unsummarised(self) -> str:
        """Why there is no summary over the tasks, as a sentence; "" where there is one."""
        if self.unranged:
            return (
                f"Scores cannot be normalised, and so not be summarised over tasks: {joined(self.unranged)} "
                f"{'states' if len(self.unranged) == 1 else 'state'} no floor and ceiling of {self.metric}."
            )
        if len(self.names) < ENOUGH:
            return (
                f"There is no summary over tasks: with {len(self.names)} it would say more about which tasks were "
                f"taken than about the architectures; {ENOUGH} are the fewest that are summarised."
            )
        return ""


def by_task(plan: Mapping[str, Any], effects: pd.DataFrame, simple: pd.DataFrame) -> pd.DataFrame:
    """One row for each effect at each task, in the objective's unit there; none where there is one task alone.

    Args:
        plan: the study's plan.
        effects: the arms' (:func:`ablate.analysis.effects.effects`).
        simple: the simple effects of a full design; the effects are these where there are any.

    Columns:
        name (text): what changes, as ``scale=off``. task (text): the level of the factor of tasks.
        effect, low, high (float): with the simultaneous interval of its family. unit (text): theirs.
        seeds, planned (int): seeds in it, and planned. diverged (int): trials. verdict (text).
    """
    tasks = Tasks.of(plan)
    rows: list[dict[str, Any]] = []
    if tasks is None:
        return pd.DataFrame(rows, columns=list(BY_TASK))
    arms = {arm["id"]: arm for arm in plan["arms"]}
    units = {level_of(arm, tasks.factor): unit_of(plan, arm["id"]) for arm in plan["arms"]}
    shared = ("effect", "low", "high", "diverged", "planned", "verdict")
    for row in simple[simple["at_factor"] == tasks.factor].to_dict("records") if len(simple) else ():
        task = spelled(row["at_level"])
        if task not in units:  # every arm of it is excluded
            continue
        name = f"{row['factor']}={spelled(row['level'])}"
        rows.append({"name": name, "task": task, "unit": units[task], "seeds": row["seeds"]} | _only(row, shared))
    if plan["design"] not in ("full", "fractional"):
        base = arms[plan["baseline"]]["levels"]
        for row in effects.to_dict("records"):
            levels, task = arms[row["arm"]]["levels"], level_of(arms[row["arm"]], tasks.factor)
            name = changes(levels, base, tasks.factor)
            if name:
                rows.append(
                    {"name": name, "task": task, "unit": units[task], "seeds": row["pairs"]} | _only(row, shared)
                )
    frame = pd.DataFrame(rows, columns=list(BY_TASK))
    order = {name: place for place, name in enumerate(dict.fromkeys(frame["name"]))}
    places = frame["name"].map(order) * len(tasks.names) + frame["task"].map(tasks.names.index)
    return frame.iloc[places.argsort(kind="stable")].reset_index(drop=True)


def scores(plan: Mapping[str, Any], trials: pd.DataFrame) -> pd.DataFrame:
    """One row for each trial of each architecture on each task; none where there is one task alone.

    Columns:
        name (text): the architecture, by the levels in which it differs from the baseline; ``baseline`` for none.
        task (text): the level of the factor of tasks. seed (int). end (text): as in a frame of trials.
        value (float): the objective in its unit. score (float): 0 at the task's floor, 1 at its ceiling, and beyond
            where it is worse than chance. A trial that diverged has the lower of 0 and the worst score of any trial
            that completed on that task, so that none is better for diverging; NaN for one without a result, and for
            tasks that state no floor and ceiling.
    """
    tasks = Tasks.of(plan)
    if tasks is None:
        return pd.DataFrame(columns=list(SCORES))
    arms = {arm["id"]: arm for arm in plan["arms"]}
    base = arms[plan["baseline"]]["levels"]
    rows = []
    known = trials[trials["trial"] != ""]
    for id, seed, end, value in zip(*(known[key] for key in ("arm", "seed", "end", tasks.metric)), strict=True):
        task = level_of(arms[id], tasks.factor)
        floor, ceiling = tasks.ranges.get(task, (math.nan, math.nan))
        score = (value - floor) / (ceiling - floor) if end == "complete" else math.nan
        name = changes(arms[id]["levels"], base, tasks.factor) or "baseline"
        rows.append({"name": name, "task": task, "seed": seed, "end": end, "value": value, "score": score})
    found = pd.DataFrame(rows, columns=list(SCORES))
    bottom = found.groupby("task")["score"].transform("min").fillna(0).clip(upper=0)
    lost = (found["end"] == "diverged") & found["task"].isin(list(tasks.ranges))
    return found.assign(score=found["score"].mask(lost, bottom))


def summary(plan: Mapping[str, Any], found: pd.DataFrame) -> pd.DataFrame:
    """One row for each architecture that has run on every task: its interquartile mean over tasks and seeds.

    Args:
        plan: the study's plan.
        found: its :func:`scores`.

    Columns:
        name (text): the architecture. tasks (int). seeds, planned (int): seeds that have a score on every task.
        iqm (float): the mean of the middle half of all scores. low, high (float): 95% interval of this architecture
            alone: percentiles of a bootstrap that draws seeds within each task, so it holds for these tasks; NaN below
            two seeds.
        diverged (int): trials that diverged; what they count with, :func:`scores` says.

    No rows with fewer than :data:`ENOUGH` tasks, or where one of them states no floor and ceiling.
    """
    rows = []
    for name, matrix, lost in _matrices(plan, found):
        low, high = _interval(matrix, _iqm)
        rows.append({"name": name, "tasks": matrix.shape[1], "seeds": matrix.shape[0], "planned": len(plan["seeds"]),
                     "iqm": float(_iqm(matrix)), "low": float(low), "high": float(high), "diverged": lost})  # fmt: skip
    return pd.DataFrame(rows, columns=list(SUMMARY))


def profiles(plan: Mapping[str, Any], found: pd.DataFrame) -> pd.DataFrame:
    """The share of runs that score above each threshold, for each architecture that has run on every task.

    Columns:
        name (text). threshold (float): a score, from 0 to 1. share (float): of all seeds and tasks whose score is
        above. low, high (float): its pointwise 95% interval, as that of :func:`summary`.

    No rows where :func:`summary` has none.
    """
    thresholds = np.linspace(0, 1, THRESHOLDS)
    parts = []
    for name, matrix, _ in _matrices(plan, found):
        low, high = _interval(matrix, lambda scores: _above(scores, thresholds))
        share = _above(matrix, thresholds)
        columns = {"name": name, "threshold": thresholds, "share": share, "low": low, "high": high}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(PROFILES))


def _matrices(plan: Mapping[str, Any], found: pd.DataFrame) -> list[tuple[str, Matrix, int]]:
    """Each architecture's scores by seed and task, without the seeds that lack one; and how many diverged."""
    tasks = Tasks.of(plan)
    if tasks is None or tasks.unsummarised():
        return []
    matrices = []
    for name in dict.fromkeys(found["name"]):
        own = found[found["name"] == name]
        wide = own.pivot(index="seed", columns="task", values="score").reindex(columns=list(tasks.names)).dropna()
        if len(wide):
            lost = int(((own["end"] == "diverged") & own["seed"].isin(wide.index)).sum())
            matrices.append((str(name), wide.to_numpy(dtype=np.float64), lost))
    return matrices


def _iqm(scores: Matrix) -> Any:
    """The interquartile mean over seeds and tasks, the last two axes."""
    return trim_mean(scores.reshape(*scores.shape[:-2], -1), 0.25, axis=-1)


def _above(scores: Matrix, thresholds: Matrix) -> Matrix:
    flat = np.sort(scores.reshape(*scores.shape[:-2], -1), axis=-1)
    if flat.ndim == 1:
        return 1 - np.searchsorted(flat, thresholds, side="right") / flat.size
    return np.stack([1 - np.searchsorted(each, thresholds, side="right") / each.size for each in flat])


def _interval(matrix: Matrix, statistic: Callable[[Matrix], Any]) -> tuple[Any, Any]:
    """Percentiles of a statistic where seeds are drawn anew within each task, always by the same random numbers."""
    seeds, tasks = matrix.shape
    if seeds < 2:
        blank = np.full(np.shape(statistic(matrix)), math.nan)
        return blank, blank
    drawn = np.random.default_rng(0).integers(seeds, size=(DRAWS, seeds, tasks))
    samples = statistic(matrix[drawn, np.arange(tasks)])
    low, high = np.percentile(samples, (2.5, 97.5), axis=0)
    return low, high


def _only(row: Mapping[Any, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: row[key] for key in keys}
