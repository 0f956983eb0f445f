"""Effects in a full factorial design: what each factor does on average, and where that average misleads.

Every effect is a contrast between cells that differ in nothing but the factor, with seeds as blocks
(:mod:`ablate.analysis.blocks`). There are three families of effects, and the simultaneous intervals (Bonferroni) hold
together for each family: the main effects, the two-way interactions, the simple effects.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from ablate.analysis.blocks import Blocks, Cell, CellEffect
from ablate.analysis.pairing import holm
from ablate.analysis.verdict import Evidence, Verdict, excludes_zero, judge, word
from ablate.records.frames import spelled

_ESTIMATE = (
    "seeds", "planned", "cells", "cells_planned", "effect", "low", "high", "low95", "high95", "p", "p_holm",
    "p_sign_flip", "agree", "partial_eta2",
)  # fmt: skip
MAIN = ("name", "factor", "level", "against", *_ESTIMATE, "diverged", "stuck", "settle", "left_out", "verdict")
"""The columns of :meth:`Factorial.main_effects`."""
INTERACTIONS = (
    "name", "factor", "level", "against", "other", "other_level", "other_against", *_ESTIMATE, "large", "left_out",
)  # fmt: skip
"""The columns of :meth:`Factorial.interactions`."""
SIMPLE = (
    "name", "factor", "level", "against", "at_factor", "at_level", *_ESTIMATE, "diverged", "stuck", "settle",
    "left_out", "judged", "verdict",
)  # fmt: skip
"""The columns of :meth:`Factorial.simple_effects`."""


@dataclass(frozen=True, eq=False)
class _Axis:
    """A factor, its reference level first; equal only to itself, since a level may be of any type."""

    name: str
    levels: tuple[Any, ...]

    @property
    def reference(self) -> object:
        return self.levels[0]

    @property
    def changes(self) -> tuple[Any, ...]:
        return self.levels[1:]

    def at(self, level: object) -> str:
        return f"{self.name}={spelled(level)}"


@dataclass(frozen=True)
class _Found:
    """One effect of one level of a factor, and what it is about."""

    axis: _Axis
    level: Any
    effect: CellEffect
    other: _Axis | None = None
    other_level: Any = None


class Factorial:
    """The factorial effects of one study; empty unless its plan's design is ``full``.

    A level's reference is the factor's level in the baseline; where the baseline is outside of the grid, the factor's
    first level.
    """

    def __init__(self, plan: Mapping[str, Any], trials: pd.DataFrame, stuck: Collection[str] = ()) -> None:
        """Lay out a study; ``stuck`` names the trials that ended at the unigram entropy."""
        self._blocks = Blocks(plan, trials, stuck)
        self._axes = [_axis(factor) for factor in plan["factors"]] if plan["design"] == "full" else []
        self._arms = {self._key(arm["levels"]): arm["id"] for arm in plan["arms"]}

    @property
    def families(self) -> dict[str, int]:
        """For how many effects the simultaneous intervals of each kind hold together."""
        sizes = [len(axis.changes) for axis in self._axes]
        return {
            "main effects": sum(sizes),
            "interactions": sum(a * b for a, b in itertools.combinations(sizes, 2)),
            "simple effects": sum(a * (b + 1) for a, b in itertools.permutations(sizes, 2)),
        }

    def main_effects(self) -> pd.DataFrame:
        """One row for each level of each factor but its reference: its effect averaged over all other factors.

        Columns:
            name (text): as ``placement=post``. factor (text). level, against (object): the level and its reference.
            seeds (int): seeds in which every cell is there. planned (int): seeds planned.
            cells, cells_planned (int): combinations of the other factors that are averaged over, and that there are.
            effect (float): in the objective's unit. low, high (float): simultaneous 95% interval (Bonferroni over all
            main effects); it carries the verdict. low95, high95 (float): 95% interval of this effect alone.
            p, p_holm, p_sign_flip (float), agree (int): as in :func:`ablate.analysis.effects.effects`, by seeds.
            partial_eta2 (float): t^2 / (t^2 + seeds - 1), with the seed as a block.
            diverged, stuck (int): trials of the level. settle (Int64): rough number of seeds that would settle an
            undecided effect. left_out (text): cells and seeds that are left out, and why. verdict (text).
        """
        return _frame([self._row(found) | self._judged(found.effect.evidence) for found in self._main], MAIN)

    def interactions(self) -> pd.DataFrame:
        """One row for each pair of factors and levels: how one's effect changes with the other's level.

        Columns:
            name (text): as ``scale=off with residual=none``. factor, other (text). level, against, other_level,
            other_against (object): the levels and their references.
            effect (float): the difference of differences, averaged over the remaining factors; the objective's unit.
            large (bool): the simultaneous interval (Bonferroni over all interactions) excludes zero and the effect's
            size exceeds the smallest effect that matters.
            The others are as in :meth:`main_effects`.
        """
        rows = []
        for found in self._interactions:
            assert found.other is not None
            other = {"other": found.other.name, "other_level": found.other_level}
            other |= {"other_against": found.other.reference}
            rows.append(self._row(found) | other | {"large": self._large(found)})
        return _frame(rows, INTERACTIONS)

    def simple_effects(self) -> pd.DataFrame:
        """One row for each level of each factor at each level of each other factor.

        Columns:
            name (text): as ``scale=off at residual=none``. factor, at_factor (text). level, against, at_level (object).
            judged (bool): a large interaction involves both levels, so this effect gets a verdict in words.
            The others are as in :meth:`main_effects`, the family of the intervals being all simple effects.
        """
        rows = []
        for found in self._simple:
            assert found.other is not None
            at = {"at_factor": found.other.name, "at_level": found.other_level}
            judged = {"judged": found.effect.evidence.name in self._dependent}
            rows.append(self._row(found) | at | judged | self._judged(found.effect.evidence))
        return _frame(rows, SIMPLE)

    def verdicts(self) -> list[Verdict]:
        """Verdicts on the main effects, and on the simple effects where an interaction is large."""
        objective = self._blocks.objective
        main = [judge(found.effect.evidence, objective, kind="main effect") for found in self._main]
        simple = [found.effect.evidence for found in self._simple if found.effect.evidence.name in self._dependent]
        return main + [judge(evidence, objective, kind="simple effect") for evidence in simple]

    def left_out(self) -> dict[str, tuple[str, ...]]:
        """For each main effect that lacks a cell or a seed, by its name: what it lacks."""
        return {found.effect.evidence.name: found.effect.left_out for found in self._main if found.effect.left_out}

    @cached_property
    def _interactions(self) -> list[_Found]:
        found = []
        for a, b in itertools.combinations(self._axes, 2):
            for x, y in itertools.product(a.changes, b.changes):
                cells = self._cells({a: x, b: y}, {})
                family = self.families["interactions"]
                effect = self._blocks.effect(f"{a.at(x)} with {b.at(y)}", "", cells, family=family)
                found.append(_Found(a, x, effect, b, y))
        return found

    @cached_property
    def _main(self) -> list[_Found]:
        depends: dict[str, list[str]] = {}
        for found in self._interactions:
            if found.other is not None and self._large(found):
                depends.setdefault(found.axis.at(found.level), []).append(found.other.name)
                depends.setdefault(found.other.at(found.other_level), []).append(found.axis.name)
        effects = []
        for axis, level in [(each, level) for each in self._axes for level in each.changes]:
            others = list(dict.fromkeys(depends.get(axis.at(level), [])))
            note = f"it depends on {' and '.join(others)}, see its simple effects" if others else ""
            cells, family = self._cells({axis: level}, {}), self.families["main effects"]
            effect = self._blocks.effect(axis.at(level), axis.at(axis.reference), cells, family=family, note=note)
            effects.append(_Found(axis, level, effect))
        return effects

    @cached_property
    def _simple(self) -> list[_Found]:
        found = []
        for a, b in itertools.permutations(self._axes, 2):
            for x, y in itertools.product(a.changes, b.levels):
                cells, family = self._cells({a: x}, {b: y}), self.families["simple effects"]
                effect = self._blocks.effect(f"{a.at(x)} at {b.at(y)}", a.at(a.reference), cells, family=family)
                found.append(_Found(a, x, effect, b, y))
        return found

    @cached_property
    def _dependent(self) -> set[str]:
        """Names of the simple effects whose two factors interact largely at the levels in question."""
        names: set[str] = set()
        for found in self._interactions:
            a, x, b, y = found.axis, found.level, found.other, found.other_level
            if b is not None and self._large(found):
                names |= {f"{a.at(x)} at {b.at(level)}" for level in (b.reference, y)}
                names |= {f"{b.at(y)} at {a.at(level)}" for level in (a.reference, x)}
        return names

    def _large(self, found: _Found) -> bool:
        c = found.effect.evidence.contrast
        return excludes_zero(c) and abs(c.effect) > self._blocks.objective.smallest_effect

    def _cells(self, changes: Mapping[_Axis, Any], fixed: Mapping[_Axis, Any]) -> list[Cell]:
        """The cells of a contrast: every combination of the factors that neither change nor are fixed."""
        free = [axis for axis in self._axes if axis not in changes and axis not in fixed]
        return [
            self._cell(changes, dict(fixed) | dict(zip(free, combination, strict=True)))
            for combination in itertools.product(*(axis.levels for axis in free))
        ]

    def _cell(self, changes: Mapping[_Axis, Any], here: Mapping[_Axis, Any]) -> Cell:
        plus: list[str | None] = []
        minus: list[str | None] = []
        for moved in itertools.product((True, False), repeat=len(changes)):
            levels = dict(here) | {
                axis: new if move else axis.reference for move, (axis, new) in zip(moved, changes.items(), strict=True)
            }
            # One change in two undone counts against the contrast; both undone count for it again.
            side = minus if moved.count(False) % 2 else plus
            side.append(self._arms.get(self._key({axis.name: level for axis, level in levels.items()})))
        label = ", ".join(axis.at(here[axis]) for axis in self._axes if axis in here)
        return Cell(label or "the only cell", tuple(plus), tuple(minus))

    def _key(self, levels: Mapping[str, Any]) -> tuple[str, ...]:
        """Levels as a key that keeps 1, 1.0, true and null apart."""
        return tuple(spelled(levels.get(axis.name)) for axis in self._axes)

    def _row(self, found: _Found) -> dict[str, Any]:
        effect, c = found.effect, found.effect.evidence.contrast
        t2 = (c.effect / c.sd) ** 2 * c.pairs if c.sd > 0 else math.nan
        return {
            "name": effect.evidence.name, "factor": found.axis.name, "level": found.level,
            "against": found.axis.reference, "seeds": c.pairs, "planned": self._blocks.seeds, "cells": effect.cells,
            "cells_planned": effect.cells_planned, "effect": c.effect, "low": c.low, "high": c.high, "low95": c.low95,
            "high95": c.high95, "p": c.p, "p_sign_flip": c.p_sign_flip, "agree": c.agree,
            "partial_eta2": t2 / (t2 + c.pairs - 1), "left_out": "; ".join(effect.left_out),
        }  # fmt: skip

    def _judged(self, evidence: Evidence) -> dict[str, Any]:
        verdict = word(evidence, self._blocks.objective)
        settle = evidence.settle if verdict == "undecided" and not evidence.diverged else None
        return {"diverged": evidence.diverged, "stuck": evidence.stuck, "settle": settle, "verdict": verdict}


def _axis(factor: Mapping[str, Any]) -> _Axis:
    reference = spelled(factor["baseline"])
    return _Axis(factor["name"], tuple(sorted(factor["levels"], key=lambda level: spelled(level) != reference)))


def _frame(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """The rows with Holm's p over them; levels keep their own types."""
    adjusted = holm([row["p"] for row in rows], len(rows))
    data: dict[str, pd.Series[Any]] = {}
    for column, kind in zip(columns, _kinds(columns), strict=True):
        values = adjusted if column == "p_holm" else [row[column] for row in rows]
        data[column] = pd.Series(values, dtype=kind)
    return pd.DataFrame(data)


def _kinds(columns: Sequence[str]) -> Iterator[str]:
    whole = ("seeds", "planned", "cells", "cells_planned", "agree", "diverged", "stuck")
    text = ("name", "factor", "other", "at_factor", "left_out", "verdict")
    for column in columns:
        if column == "level" or column.endswith(("against", "_level")):
            yield "object"
        elif column in ("large", "judged"):
            yield "bool"
        else:
            yield (
                "int64" if column in whole else "str" if column in text else "Int64" if column == "settle" else "float"
            )
