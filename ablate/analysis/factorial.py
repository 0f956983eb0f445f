"""Effects in a factorial design: what each factor does on average, and where that average misleads.

In a full design every effect is a contrast between cells that differ in nothing but the factor, with seeds as blocks
(:mod:`ablate.analysis.blocks`). There are three families of effects, and the simultaneous intervals (Bonferroni) hold
together for each family: the main effects, the two-way interactions, the simple effects. A factor that is no part of
some arms, or changes nothing in them, has its effects over the others; an effect that no arms could have is in no
family.

In a fraction of a design there are main effects alone, the mean of the arms at a level minus that of the arms at its
reference: interactions cannot be told apart from each other.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from ablate.analysis.blocks import Blocks, CellEffect
from ablate.analysis.comparability import unit_of
from ablate.analysis.contrasts import Asked, Contrasts
from ablate.analysis.pairing import Floats, holm
from ablate.analysis.verdict import Evidence, Verdict, excludes_zero, judge, word
from ablate.records.tasks import task_factor

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


@dataclass(frozen=True)
class _Found:
    """One effect, and what was asked for."""

    asked: Asked
    effect: CellEffect


class Factorial:
    """The factorial effects of one study; empty unless its plan's design is ``full`` or ``fractional``.

    A level's reference is the factor's level in the baseline; where the baseline is outside of the grid, the factor's
    first level.
    """

    def __init__(self, plan: Mapping[str, Any], trials: pd.DataFrame, stuck: Collection[str] = ()) -> None:
        """Lay out a study; ``stuck`` names the trials that ended at the unigram entropy."""
        self._blocks = Blocks(plan, trials, stuck)
        self._contrasts = Contrasts(plan)
        self._tasks = task_factor(plan)
        self._plan = plan

    @property
    def families(self) -> dict[str, int]:
        """For how many effects the simultaneous intervals of each kind hold together."""
        asked = self._contrasts
        rest = {"interactions": len(asked.interactions), "simple effects": len(asked.simple)}
        return {"main effects": len(asked.main)} | ({} if asked.fraction else rest)

    def main_effects(self) -> pd.DataFrame:
        """One row for each level of each factor but its reference: its effect averaged over all other factors.

        Columns:
            name (text): as ``placement=post``. factor (text). level, against (object): the level and its reference.
            seeds (int): seeds in which every cell is there. planned (int): seeds planned.
            cells, cells_planned (int): combinations of the other factors that are averaged over, and that there are;
            in a fraction of a design, arms.
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
            asked = found.asked
            assert asked.other is not None
            other = {"other": asked.other.name, "other_level": asked.other_level}
            other |= {"other_against": asked.other.reference}
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
            assert found.asked.other is not None
            at = {"at_factor": found.asked.other.name, "at_level": found.asked.other_level}
            judged = {"judged": found.effect.evidence.name in self._dependent}
            rows.append(self._row(found) | at | judged | self._judged(found.effect.evidence))
        return _frame(rows, SIMPLE)

    def verdicts(self) -> list[Verdict]:
        """Verdicts on the main effects, and on the simple effects where an interaction is large."""
        return [judge(evidence, self._blocks.objective, kind=kind) for kind, evidence in self.evidence()]

    def evidence(self) -> list[tuple[str, Evidence]]:
        """What each verdict depends on, with its kind, ``main effect`` or ``simple effect``."""
        main = [("main effect", found.effect.evidence) for found in self._main]
        simple = [found for found in self._simple if found.effect.evidence.name in self._dependent]
        at = [replace(found.effect.evidence, unit=self._unit_at(found.asked)) for found in simple]
        return main + [("simple effect", evidence) for evidence in at]

    def left_out(self) -> dict[str, tuple[str, ...]]:
        """For each main effect that lacks a cell or a seed, by its name: what it lacks."""
        return {found.effect.evidence.name: found.effect.left_out for found in self._main if found.effect.left_out}

    def differences(self) -> dict[str, Floats]:
        """For each main effect, by its name: the effect within each seed that has it."""
        return {found.effect.evidence.name: found.effect.differences for found in self._main}

    @cached_property
    def _interactions(self) -> list[_Found]:
        return [self._found(asked, "interactions") for asked in self._contrasts.interactions]

    @cached_property
    def _main(self) -> list[_Found]:
        if self._contrasts.fraction:
            return [self._of_arms(asked) for asked in self._contrasts.main]
        depends: dict[str, list[str]] = {}
        for asked in (found.asked for found in self._interactions if self._large(found)):
            assert asked.other is not None
            depends.setdefault(asked.axis.at(asked.level), []).append(asked.other.name)
            depends.setdefault(asked.other.at(asked.other_level), []).append(asked.axis.name)
        effects = []
        for asked in self._contrasts.main:
            others = list(dict.fromkeys(depends.get(asked.name, [])))
            note = f"it depends on {' and '.join(others)}, see its simple effects" if others else ""
            effects.append(self._found(asked, "main effects", note))
        return effects

    @cached_property
    def _simple(self) -> list[_Found]:
        return [self._found(asked, "simple effects") for asked in self._contrasts.simple]

    def _found(self, asked: Asked, family: str, note: str = "") -> _Found:
        effect = self._blocks.effect(
            asked.name, asked.against, asked.cells, family=self.families[family], note=note, lacking=asked.lacking
        )
        return _Found(asked, effect)

    def _of_arms(self, asked: Asked) -> _Found:
        """An effect in a fraction: the arms at the level against those at the reference."""
        plus, minus = (self._contrasts.arms(asked.axis, level) for level in (asked.level, asked.axis.reference))
        effect = self._blocks.difference(
            asked.name, asked.against, plus, minus, factor=asked.axis.name, family=self.families["main effects"],
            lacking=self._contrasts.unrun,
        )  # fmt: skip
        return _Found(asked, effect)

    @cached_property
    def _dependent(self) -> set[str]:
        """Names of the simple effects whose two factors interact largely at the levels in question."""
        names: set[str] = set()
        for asked in (found.asked for found in self._interactions if self._large(found)):
            a, x, b, y = asked.axis, asked.level, asked.other, asked.other_level
            assert b is not None
            names |= {f"{a.at(x)} at {b.at(level)}" for level in (b.reference, y)}
            if b.name != self._tasks:
                names |= {f"{b.at(y)} at {a.at(level)}" for level in (a.reference, x)}
        apart = {found.asked.name for found in self._main if self._tasks and found.effect.evidence.incomparable}
        for asked in (found.asked for found in self._simple):
            assert asked.other is not None
            if asked.other.name == self._tasks and asked.axis.at(asked.level) in apart:
                names.add(asked.name)
        return names

    def _unit_at(self, asked: Asked) -> str | None:
        """The objective's unit where an effect is taken; None where no arm is there."""
        arm = next((arm for cell in asked.cells for arm in cell.plus if arm is not None), None)
        return None if arm is None else unit_of(self._plan, arm)

    def _large(self, found: _Found) -> bool:
        c = found.effect.evidence.contrast
        return excludes_zero(c) and abs(c.effect) > self._blocks.objective.smallest_effect

    def _row(self, found: _Found) -> dict[str, Any]:
        effect, c = found.effect, found.effect.evidence.contrast
        t2 = (c.effect / c.sd) ** 2 * c.pairs if c.sd > 0 else math.nan
        return {
            "name": effect.evidence.name, "factor": found.asked.axis.name, "level": found.asked.level,
            "against": found.asked.axis.reference, "seeds": c.pairs, "planned": self._blocks.seeds,
            "cells": effect.cells, "cells_planned": effect.cells_planned, "effect": c.effect, "low": c.low,
            "high": c.high, "low95": c.low95, "high95": c.high95, "p": c.p, "p_sign_flip": c.p_sign_flip,
            "agree": c.agree, "partial_eta2": t2 / (t2 + c.pairs - 1), "left_out": "; ".join(effect.left_out),
        }  # fmt: skip

    def _judged(self, evidence: Evidence) -> dict[str, Any]:
        verdict = word(evidence, self._blocks.objective)
        settle = evidence.settle if verdict == "undecided" and not evidence.diverged else None
        return {"diverged": evidence.diverged, "stuck": evidence.stuck, "settle": settle, "verdict": verdict}


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
