"""Which effects a factorial design asks for, and the cells that each is a contrast of."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ablate.analysis.blocks import FEW, Cell
from ablate.analysis.lattice import Lattice, combinations, levels_in_order
from ablate.records.frames import spelled
from ablate.records.tasks import task_factor

DESIGNS = ("full", "fractional")
"""The designs whose verdicts are on factors, not on arms."""


@dataclass(frozen=True, eq=False)
class Axis:
    """A factor, its reference level first; equal only to itself, since a level may be of any type."""

    name: str
    levels: tuple[Any, ...]

    @property
    def reference(self) -> object:
        """The level that the others are compared with."""
        return self.levels[0]

    @property
    def changes(self) -> tuple[Any, ...]:
        """The other levels."""
        return self.levels[1:]

    def at(self, level: object) -> str:
        """A level by name, as ``scale=off``."""
        return f"{self.name}={spelled(level)}"


@dataclass(frozen=True)
class Asked:
    """An effect that is asked for: of which level of which factor, with or at which level of another."""

    axis: Axis
    level: Any
    other: Axis | None = None
    other_level: Any = None
    both: bool = False
    """Whether both levels change, so that the effect is an interaction."""
    cells: Sequence[Cell] = ()
    lacking: Sequence[str] = ()
    """What no arm could have, since a factor is no part of it, in words."""

    @property
    def name(self) -> str:
        """As ``scale=off``, ``scale=off with residual=none`` or ``scale=off at residual=none``."""
        if self.other is None:
            return self.axis.at(self.level)
        return f"{self.axis.at(self.level)} {'with' if self.both else 'at'} {self.other.at(self.other_level)}"

    @property
    def against(self) -> str:
        """The factor's reference; "" for an interaction, which has none."""
        return "" if self.both else self.axis.at(self.axis.reference)


@dataclass(frozen=True)
class _Cells:
    """The cells of a contrast, each once, and what no arm could have."""

    cells: dict[object, Cell] = field(default_factory=dict)
    """By their arms, or by their names where arms are missing."""
    lacking: dict[str, list[str]] = field(default_factory=dict)
    """Labels of places by what is the matter with the factors there, as "heads is no part of"."""
    unmoved: dict[object, Cell] = field(default_factory=dict)
    """Cells in which a change changes nothing, since both of its levels are one arm."""

    def lacks(self, why: str, label: str) -> None:
        """Note a place that is left out, once."""
        labels = self.lacking.setdefault(why, [])
        if label not in labels:
            labels.append(label)

    def words(self) -> list[str]:
        """What no arm could have: the places, and the factors that are no part of them or change nothing there."""
        return [
            f"{'; '.join(labels[:FEW])}{f'; {len(labels) - FEW} more' if len(labels) > FEW else ''} "
            f"({why} {'it' if len(labels) == 1 else 'them'})"
            for why, labels in self.lacking.items()
        ]


class Contrasts:
    """The effects that a plan asks for; none unless its design is factorial, and main effects alone in a fraction.

    An effect that no arms could have, since a factor is no part of them, is not asked for; nor is one of a task, which
    is a block.
    """

    def __init__(self, plan: Mapping[str, Any]) -> None:
        """Lay out the factors and arms of a plan."""
        factors = plan["factors"] if plan["design"] in DESIGNS else []
        self._axes = [Axis(factor["name"], tuple(levels_in_order(factor))) for factor in factors]
        self._tasks = task_factor(plan)
        self._lattice = Lattice(plan)
        self.fraction: bool = plan["design"] == "fractional"
        self._plan = plan

    def arms(self, axis: Axis, level: object) -> list[str]:
        """The identities of all arms at a level of a factor."""
        return self._lattice.at(axis.name, spelled(level))

    @property
    def unrun(self) -> list[str]:
        """What a fraction of a design lacks of its own combinations, in words."""
        excluded = [_named(cell) for cell in self._plan["excluded"]]
        equal = [(alias, arm["name"]) for arm in self._plan["arms"] for alias in arm.get("aliases", ())]
        return [f"{name} (not in the plan)" for name in excluded] + [f"{one} (the same as {two})" for one, two in equal]

    @cached_property
    def main(self) -> list[Asked]:
        """Each level of each factor against its reference."""
        every = [(axis, level) for axis in self._axes if axis.name != self._tasks for level in axis.changes]
        if self.fraction:
            return [Asked(axis, level) for axis, level in every]
        return [self._possible(Asked(axis, level), {axis: level}, {}) for axis, level in every]

    @cached_property
    def interactions(self) -> list[Asked]:
        """Each two levels of two factors."""
        asked = [
            self._possible(Asked(a, x, b, y, both=True), {a: x, b: y}, {})
            for a, b in itertools.combinations([] if self.fraction else self._axes, 2)
            for x, y in itertools.product(a.changes, b.changes)
        ]
        return [each for each in asked if each.cells]

    @cached_property
    def simple(self) -> list[Asked]:
        """Each level of each factor at each level of each other."""
        asked = [
            self._possible(Asked(a, x, b, y), {a: x}, {b: y})
            for a, b in itertools.permutations([] if self.fraction else self._axes, 2)
            if a.name != self._tasks
            for x, y in itertools.product(a.changes, b.levels)
        ]
        return [each for each in asked if each.cells]

    def _possible(self, asked: Asked, changes: Mapping[Axis, Any], fixed: Mapping[Axis, Any]) -> Asked:
        """What is asked for with its cells: every combination of the factors that neither change nor are fixed.

        A factor that is no part of a cell's arms does not divide the cell, which is then there once. Nor does one whose
        levels fell together there. A cell in which what changes is one arm before and after says nothing of the change,
        and is left out like one that the factor is no part of; a main effect that has no other cells keeps them.
        """
        here = {axis.name: spelled(level) for axis, level in fixed.items()}
        needed = [axis.name for axis in (*changes, *fixed)]
        free = {axis.name: [spelled(level) for level in axis.levels] for axis in self._axes if axis.name not in needed}
        found = _Cells()
        for rest in combinations(free):
            self._add(found, here | rest, changes, needed)
        if asked.other is None and found.unmoved and not found.cells:
            return replace(asked, cells=tuple(found.unmoved.values()))
        return replace(asked, cells=tuple(found.cells.values()), lacking=tuple(found.words()))

    def _add(self, found: _Cells, here: dict[str, str], changes: Mapping[Axis, Any], needed: Sequence[str]) -> None:
        """Add the cell of a contrast at these levels of the other factors."""
        plus: list[str | None] = []
        minus: list[str | None] = []
        corners: dict[tuple[bool, ...], str | None] = {}
        lacking: set[str] = set()
        for moved in itertools.product((True, False), repeat=len(changes)):
            at = here | {
                axis.name: spelled(new if move else axis.reference)
                for move, (axis, new) in zip(moved, changes.items(), strict=True)
            }
            # One change in two undone counts against the contrast; both undone count for it again.
            side = minus if moved.count(False) % 2 else plus
            side.append(self._lattice.arm(at, needed))
            corners[moved] = side[-1]
            lacking |= set(self._lattice.lacking(at, needed)) if side[-1] is None else set()
        arms = [arm for arm in (*plus, *minus) if arm is not None]
        whole = len(arms) == len(plus) + len(minus)
        # Of a cell without all of its arms, every level is named: who is missing cannot be asked what it has.
        named = [
            f"{axis.name}={here[axis.name]}"
            for axis in self._axes
            if axis.name in here and (not whole or any(self._lattice.has(arm, axis.name) for arm in arms))
        ]
        label = ", ".join(named) or "the only cell"
        if lacking:
            why = " and ".join(axis.name for axis in self._axes if axis.name in lacking)
            found.lacks(f"{why} {'is' if len(lacking) == 1 else 'are'} no part of", label)
            return
        cell = Cell(label, tuple(plus), tuple(minus))
        cells = found.cells
        if unmoved := _unmoved(corners, [axis.name for axis in changes]):
            found.lacks(f"{' and '.join(unmoved)} {'changes' if len(unmoved) == 1 else 'change'} nothing in", label)
            cells = found.unmoved
        cells.setdefault((cell.plus, cell.minus) if whole else label, cell)


def _unmoved(corners: Mapping[tuple[bool, ...], str | None], names: Sequence[str]) -> list[str]:
    """The factors whose change leaves the arm as it is; ``corners`` has the arm by which of the factors change."""
    pairs = [
        (moved, (*moved[:at], False, *moved[at + 1 :]), at)
        for moved in corners
        for at in range(len(names))
        if moved[at]
    ]
    still = {at for moved, back, at in pairs if corners[moved] is not None and corners[moved] == corners[back]}
    return [name for at, name in enumerate(names) if at in still]


def _named(cell: Mapping[str, Any]) -> str:
    """The name of an excluded combination, by its levels where the plan gives it none."""
    levels = ", ".join(f"{factor}={spelled(level)}" for factor, level in cell["levels"].items())
    return str(cell.get("name") or levels)
