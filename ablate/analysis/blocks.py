"""A contrast over the cells of a grid, with seeds as blocks.

Within a seed the contrast is the mean over its cells; over the seeds, Student's t. A cell that is missing or diverged
is named, never filled: a cell that diverged in over half of its seeds, or that no seed has, is left out of the mean;
a seed in which any other cell is missing is left out of the sample.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ablate.analysis.comparability import incomparable
from ablate.analysis.effects import Grid, unigram_entropy
from ablate.analysis.lattice import Lattice
from ablate.analysis.pairing import Floats, contrast, ranked_direction, settling
from ablate.analysis.prose import joined, number
from ablate.analysis.verdict import Evidence, Objective
from ablate.records.tasks import task_factor

FEW = 3
"""So many trials are named for a seed that is left out; of the rest, their number is given."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Cell:
    """One place that a contrast is taken at: arms that count for it, and arms that count against it.

    An arm is None where the plan has none, because a rule excludes it.
    """

    label: str
    plus: tuple[str | None, ...]
    minus: tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class CellEffect:
    """An effect over cells, with what had to be left out, each item named."""

    evidence: Evidence
    differences: Floats
    """The contrast within each seed that has it."""
    cells: int
    cells_planned: int
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class _Side:
    """One side of a contrast; arrays by cell and seed."""

    values: Floats
    """The sum over the side's arms; NaN unless all of them completed."""
    diverged: Flags
    """Whether any of them diverged."""
    trials_diverged: int
    trials_ended: int
    stuck: int


class Blocks:
    """A study's values of its objective, ready for contrasts over cells."""

    def __init__(self, plan: Mapping[str, Any], trials: pd.DataFrame, stuck: Collection[str] = ()) -> None:
        """Lay out a study; ``stuck`` names the trials that ended at the unigram entropy."""
        self.objective = Objective.of(plan)
        self._grid = Grid.of(plan, trials, self.objective.metric, stuck)
        self._diverged = {arm: np.array([end == "diverged" for end in ends]) for arm, ends in self._grid.ends.items()}
        self._names = {arm["id"]: arm["name"] for arm in plan["arms"]}
        self._entropy = unigram_entropy(plan, trials)
        self._plan = plan
        self._within = task_factor(plan) is not None  # no effect is asked for that is one of a task
        self._lattice = Lattice(plan)

    @property
    def seeds(self) -> int:
        """How many seeds are planned."""
        return len(self._grid.seeds)

    def effect(
        self,
        name: str,
        against: str,
        cells: Sequence[Cell],
        *,
        family: int,
        note: str = "",
        lacking: Sequence[str] = (),
    ) -> CellEffect:
        """The effect over these cells, as one of ``family``; ``lacking`` is what was left out before, in words.

        What it says of divergence: any diverged trial on the plus side counts for the effect; the reference counts as
        diverged where it did so in a cell and seed that the plus side came through.
        """
        whole = [cell for cell in cells if None not in cell.plus + cell.minus]
        left_out = [*lacking]
        left_out += [f"{cell.label} (not in the plan)" for cell in cells if None in cell.plus + cell.minus]
        plus, minus = self._side([cell.plus for cell in whole]), self._side([cell.minus for cell in whole])
        values, either = plus.values - minus.values, plus.diverged | minus.diverged
        there = np.isfinite(values)
        gone = 2 * either.sum(axis=1) > either.sum(axis=1) + there.sum(axis=1)
        kept = ~gone & there.any(axis=1)
        seeds = there[kept].all(axis=0) & bool(kept.any())
        for i in np.flatnonzero(~kept):
            count = f"diverged in {either[i].sum()} of {(either[i] | there[i]).sum()} seeds"
            left_out.append(f"{whole[i].label} ({count if gone[i] else 'no seed has it'})")
        remaining = [cell for cell, keep in zip(whole, kept, strict=True) if keep]
        left_out += [self._missing(remaining, int(i)) for i in np.flatnonzero(~seeds) if remaining]
        arms = [arm for cell in whole for arm in (*cell.plus, *cell.minus) if arm is not None]
        reason = incomparable(self._plan, arms, self.objective.metric, within=self._within)
        differences = values[kept][:, seeds].mean(axis=0) if seeds.any() and not reason else np.empty(0)
        c = contrast(differences, family)
        # Ranks see every cell and seed, also those that the mean leaves out.
        ranked = [self.objective.worse(value) for value in values[there]]
        alone = int((plus.diverged & np.isfinite(minus.values)).sum())
        survived = bool((minus.diverged & ~plus.diverged).any())
        evidence = Evidence(
            name=name, against=against, contrast=c, planned=self.seeds, diverged=plus.trials_diverged,
            ended=plus.trials_ended, baseline_diverged=minus.trials_diverged if survived else 0,
            baseline_ended=minus.trials_ended, ranks=ranked_direction(ranked, alone), stuck=plus.stuck,
            baseline_stuck=minus.stuck, settle=settling(c, self.objective.smallest_effect, family),
            unigram_entropy=self._entropy, noun="trials", note=note, incomparable=reason,
            where=f" on average over {number(len(remaining), 'cell')}" if len(cells) > 1 else "",
        )  # fmt: skip
        return CellEffect(evidence, differences, len(remaining), len(cells), tuple(left_out))

    def difference(
        self,
        name: str,
        against: str,
        plus: Sequence[str],
        minus: Sequence[str],
        *,
        factor: str,
        family: int,
        lacking: Sequence[str] = (),
    ) -> CellEffect:
        """The mean over some arms minus the mean over others, seed by seed: an effect in a fraction of a design.

        An arm that diverged in over half of its seeds, or that no seed has, is left out of its mean; a seed in which
        any other arm is missing is left out of the sample. Both are named. Where the arms that are left do not balance
        the factors beside ``factor``, their effects are mixed into this one, which is then not comparable.
        """
        left_out, kept = [*lacking], []
        for side in (plus, minus):
            found = {arm: self._gone(arm) for arm in side}
            left_out += [f"{self._names[arm]} ({why})" for arm, why in found.items() if why]
            kept.append([arm for arm, why in found.items() if not why])
        both, blank = [*kept[0], *kept[1]], np.full((1, self.seeds), math.nan)
        means = [np.mean([self._grid.values[arm] for arm in side] or blank, axis=0) for side in kept]
        values = means[0] - means[1]
        seeds = np.isfinite(values)
        if kept[0] and kept[1]:
            cells = [Cell("", tuple(both), ())]
            left_out += [self._missing(cells, int(i)) for i in np.flatnonzero(~seeds)]
        reason = incomparable(self._plan, [*plus, *minus], self.objective.metric, within=self._within)
        differences = values[seeds] if not reason else np.empty(0)
        c = contrast(differences, family)
        uneven = self._lattice.unbalanced(kept[0], kept[1], factor)
        mixed = f"the arms that are left do not balance {joined(uneven)}" if uneven else ""
        # Ranks see every arm at the level, in each seed against the mean of the reference's.
        each = np.array([self._grid.values[arm] for arm in plus] or blank) - means[1]
        there, gone = (
            np.sum([self._diverged[arm] for arm in side] or np.zeros_like(blank), axis=0) for side in (plus, minus)
        )
        alone = int(there[np.isfinite(means[1])].sum())
        evidence = Evidence(
            name=name, against=against, contrast=c, planned=self.seeds, diverged=int(there.sum()),
            ended=sum(self._grid.number(arm, "complete", "diverged") for arm in plus),
            # Another factor's fault strikes both sides alike; the reference's own leaves more of it diverged.
            baseline_diverged=int(gone.sum()) if (gone > there).any() else 0,
            baseline_ended=sum(self._grid.number(arm, "complete", "diverged") for arm in minus),
            ranks=ranked_direction([self.objective.worse(v) for v in each[np.isfinite(each)]], alone),
            stuck=sum(sum(self._grid.stuck[arm]) for arm in plus),
            baseline_stuck=sum(sum(self._grid.stuck[arm]) for arm in minus),
            settle=settling(c, self.objective.smallest_effect, family), unigram_entropy=self._entropy, noun="trials",
            where=f" on average over {number(len(both), 'arm')}", incomparable=reason or mixed,
        )  # fmt: skip
        return CellEffect(evidence, differences, len(both), len(plus) + len(minus), tuple(left_out))

    def _gone(self, arm: str) -> str:
        """Why an arm is left out of a mean; "" where it is not."""
        ended, there = self._diverged[arm].sum(), np.isfinite(self._grid.values[arm]).sum()
        if 2 * ended > ended + there:
            return f"diverged in {ended} of {ended + there} seeds"
        return "" if there else "no seed has it"

    def _side(self, arms: Sequence[Sequence[str | None]]) -> _Side:
        rows = [[arm for arm in row if arm is not None] for row in arms]
        every = list(dict.fromkeys(arm for row in rows for arm in row))
        values, diverged = np.empty((len(rows), self.seeds)), np.zeros((len(rows), self.seeds), dtype=bool)
        for i, row in enumerate(rows):
            values[i] = np.sum([self._grid.values[arm] for arm in row], axis=0)
            diverged[i] = np.any([self._diverged[arm] for arm in row], axis=0)
        return _Side(
            values, diverged, sum(self._grid.number(arm, "diverged") for arm in every),
            sum(self._grid.number(arm, "complete", "diverged") for arm in every),
            sum(sum(self._grid.stuck[arm]) for arm in every),
        )  # fmt: skip

    def _missing(self, cells: Sequence[Cell], seed: int) -> str:
        """A seed that is left out, with the trials that it lacks."""
        arms = dict.fromkeys(arm for cell in cells for arm in (*cell.plus, *cell.minus) if arm is not None)
        blamed = [
            f"{self._names[arm]}: {self._grid.ends[arm][seed]}"
            for arm in arms
            if not math.isfinite(self._grid.values[arm][seed])
        ]
        more = f"; {len(blamed) - FEW} more" if len(blamed) > FEW else ""
        return f"seed {self._grid.seeds[seed]} ({'; '.join(blamed[:FEW])}{more})"
