"""The cells of a design, sorted into arms, further names of arms, and what rules leave out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ablate.errors import Diagnostic
from ablate.experiment.designs import Chosen
from ablate.experiment.factors import Axis, holds
from ablate.experiment.levels import Bench, Level, setup_key, shown
from ablate.experiment.paths import overlap
from ablate.experiment.rules import Rule
from ablate.experiment.settings import Setup, Trained

FACTORIAL = ("full", "fractional")
"""Designs whose verdicts are on main effects."""


@dataclass(frozen=True)
class Arm:
    """One combination of levels, and what it resolves to."""

    name: str
    chosen: Mapping[str, Level]
    """The level of each factor that is part of the arm."""
    setup: Setup
    steps: int
    """For how many steps it is trained, unless `match` adjusts them."""
    aliases: tuple[str, ...] = ()
    """Names of further combinations that resolve to the same setup and steps."""
    also: tuple[Mapping[str, Level], ...] = ()
    """The levels of those combinations."""

    @property
    def levels(self) -> dict[str, Any]:
        """The label of each factor's level."""
        return {factor: level.label for factor, level in self.chosen.items()}


@dataclass(frozen=True)
class Excluded:
    """A cell of the design that a rule leaves out."""

    name: str
    chosen: Mapping[str, Level]
    why: str
    rule: int
    """The rule's index."""
    trained: Trained | None
    """What it would have been, if it is a valid setup at all."""


class Cells:
    """The cells of a design, sorted into arms and what rules leave out."""

    def __init__(self, bench: Bench, axes: Sequence[Axis], rules: Sequence[Rule]) -> None:
        self.arms: dict[str, Arm] = {}
        self.excluded: dict[str, Excluded] = {}
        self.struck: dict[int, int] = {}
        self.levels: dict[str, dict[int, Level]] = {axis.name: {} for axis in axes}
        """The levels of each factor that are part of some cell."""
        self._bench = bench
        self._axes = axes
        self._rules = rules
        self._conditional = _in_order([axis for axis in axes if axis.conditions])
        self._seen: set[tuple[tuple[str, int], ...]] = set()
        # A level can be dead only where another factor sets what is around it.
        around = {axis.name: {path for other in axes if other is not axis for path in other.paths} for axis in axes}
        self._nested = [
            axis.name
            for axis in axes
            if any(outer == path[: len(outer)] for path in axis.paths for outer in around[axis.name])
        ]

    @property
    def count(self) -> int:
        """How many cells there are; combinations that differ in levels that are no part of them are one cell."""
        return len(self._seen)

    def add(self, chosen: Chosen, *, is_baseline: bool) -> None:
        """Sort in one combination."""
        part = self._part(chosen)
        cell = tuple((factor, id(level)) for factor, level in part.items())
        if cell in self._seen:
            return
        self._seen.add(cell)
        for factor, level in part.items():
            self.levels[factor][id(level)] = level
        name = "baseline" if is_baseline else self._name(part)
        matching = [index for index, rule in enumerate(self._rules) if rule.matches(part)]
        for index in matching:
            self.struck[index] = self.struck.get(index, 0) + 1
            if is_baseline:
                words = f"this rule leaves out the baseline, which is {self._name(part)}"
                self._bench.report("G212", words, self._rules[index].place)
        if matching:
            trained = self._bench.setup(part.values(), quietly=True)
            self.excluded[name] = Excluded(name, part, self._rules[matching[0]].why, matching[0], trained)
            return
        trained = self._bench.setup(part.values())
        if trained is None:
            return
        known = self.arms.get(key := setup_key(trained))
        if known is None:
            self.arms[key] = Arm(name, part, trained.setup, trained.budget.steps)
            return
        self.arms[key] = replace(known, aliases=(*known.aliases, name), also=(*known.also, part))

    def check_effects(self) -> None:
        """Note a level that is in no arm but the baseline: cells that have it are the baseline in other words."""
        baseline, *others = self.arms.values()
        there = {id(level) for arm in others for part in (arm.chosen, *arm.also) for level in part.values()}
        for name, part in zip(baseline.aliases, baseline.also, strict=True):
            changed = [level for factor, level in part.items() if baseline.chosen.get(factor) is not level]
            if not any(id(level) in there for level in changed):
                words = f"`{name}` has no effect: it is the baseline in other words"
                help = "something else in `model` decides here; or say `allow_noop: true` where this is meant"
                self._bench.report("G216", words, changed[0].source if changed else ("factors",), otherwise=help)

    def warnings(self) -> Iterator[Diagnostic]:
        """Rules that leave out one name of an arm that runs under another."""
        for cell in self.excluded.values():
            arm = self.arms.get(setup_key(cell.trained)) if cell.trained else None
            if arm:
                words = f"this rule leaves out `{cell.name}`, which is the same arm as `{arm.name}`, and that runs"
                yield self._bench.document.diagnose("W013", words, self._rules[cell.rule].place)

    def _part(self, chosen: Chosen) -> Chosen:
        """The levels of those factors that are part of the arm: their condition holds, and what they set is there."""
        if not self._conditional and not self._nested:
            return chosen
        kept = {axis.name: chosen[axis.name] for axis in self._axes if not axis.conditions}
        for axis in self._conditional:
            if holds(self._bench, axis.conditions, self._bench.tree(kept.values())):
                kept[axis.name] = chosen[axis.name]
        raw = self._bench.tree(kept.values())
        dead = {
            name
            for name in self._nested
            if name in kept and all(self._bench.dead(path, raw) for path in kept[name].changes)
        }
        return {name: level for name, level in chosen.items() if name in kept and name not in dead}

    def _name(self, part: Chosen) -> str:
        """The levels that differ from the baseline, or every level where there is no single change to speak of."""
        every = self._bench.settings.design_name in FACTORIAL
        named = [axis for axis in self._axes if axis.name in part]
        parts = [axis for axis in named if every or part[axis.name] is not axis.baseline] or named
        return ", ".join(f"{axis.name}={shown(part[axis.name].label)}" for axis in parts) or "baseline"


def check_circles(bench: Bench, axes: Sequence[Axis]) -> None:
    """Note factors whose conditions wait for each other."""
    left = [axis for axis in axes if axis.conditions]
    while free := [axis for axis in left if not any(_looks_at(axis, other) for other in left if other is not axis)]:
        left = [axis for axis in left if axis not in free]
    if left:
        names = " and ".join(f"`{axis.name}`" for axis in left)
        words = f"the conditions of {names} depend on each other"
        help = "make the levels of one of them bundles that set both"
        bench.report("G219", words, ("factors", left[0].name, "when"), key=True, otherwise=help)


def _in_order(axes: Sequence[Axis]) -> list[Axis]:
    """Factors with conditions, each after those that set what its own conditions look at."""
    ordered: list[Axis] = []
    left = list(axes)
    while left:
        free = (axis for axis in left if not any(_looks_at(axis, other) for other in left if other is not axis))
        ordered.append(next(free, left[0]))  # a circle has been reported
        left.remove(ordered[-1])
    return ordered


def _looks_at(axis: Axis, other: Axis) -> bool:
    """Whether a factor's condition looks at what another one sets."""
    for condition in axis.conditions:
        kind = (*condition.path, "kind")
        for path in other.paths:
            if overlap(condition.path, path) and (condition.values or path == kind[: len(path)]):
                return True
    return False
