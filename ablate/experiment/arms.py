"""Factors and a design become arms: each a validated setup with the levels that made it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ablate.errors import Diagnostic, InputError, RefusedError
from ablate.experiment.identity import at_default, canonical, text
from ablate.experiment.problems import Place, diagnose, fields_at, in_order
from ablate.experiment.reading import Document
from ablate.experiment.schema import Factor, Settings, seed_list
from ablate.experiment.settings import Setup
from ablate.registry import Registry, closest
from ablate.slots import Component, Options

Levels = dict[str, Any]


@dataclass(frozen=True)
class Level:
    """One value of a factor: its label, and what it sets."""

    label: Any
    """A scalar as it is written, the name of a bundle, on or off; anything else as compact text."""
    changes: Mapping[Place, Any]
    """What is set, by path."""
    source: Place
    """Where in the document it stands."""


@dataclass(frozen=True)
class Axis:
    """A factor with its levels worked out, and which of them is the baseline's."""

    name: str
    levels: tuple[Level, ...]
    baseline: Level


@dataclass(frozen=True)
class Arm:
    """One combination of levels, and what it resolves to."""

    name: str
    levels: Levels
    """The label of each factor's level."""
    setup: Setup
    aliases: tuple[str, ...] = ()
    """Names of further combinations that resolve to the same setup."""


@dataclass(frozen=True)
class Grid:
    """All arms of an experiment, the baseline first."""

    axes: tuple[Axis, ...]
    arms: tuple[Arm, ...]


def expand(settings: Settings, document: Document, registry: Registry) -> Grid:
    """Make every arm.

    Raises:
        InputError: a factor cannot be read, or an arm is no valid setup.
        RefusedError: there are more trials than ``budget.max_trials``.
    """
    return _Expansion(settings, document, registry).grid()


def spelled(value: Any) -> Any:
    """A value as it could stand in YAML: every component with its kind, and the options that are not at their default.

    Options at their default are left out so that a level can set one of two options that exclude each other.
    """
    if not isinstance(value, Options):
        return value
    options = {name: getattr(value, name) for name in type(value).model_fields}
    return {
        name: spelled(option)
        for name, option in options.items()
        if name == "kind" or isinstance(option, Options) or not at_default(value, name)
    }


def label(value: Any) -> Any:
    """What a level is called: scalars as they are, anything else as compact text, so that tables can group by it."""
    if isinstance(value, Mapping):
        options = [f"{key}={label(item)}" for key, item in value.items() if key != "kind"]
        kind = value.get("kind")
        return f"{kind}({', '.join(options)})" if kind else f"{{{', '.join(options)}}}"
    if isinstance(value, list):
        return f"[{', '.join(str(label(item)) for item in value)}]"
    return value


def shown(value: Any) -> str:
    """A label as text, in the words of YAML."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Expansion:
    """One expansion: what it works on, and the problems that it has found."""

    def __init__(self, settings: Settings, document: Document, registry: Registry) -> None:
        self.settings = settings
        self.document = document
        self.registry = registry
        self.base = Setup(model=settings.model, task=settings.task, training=settings.training)
        self.raw = spelled(self.base)
        self.problems: list[Diagnostic] = []

    def grid(self) -> Grid:
        axes = [axis for name, factor in self.settings.factors.items() if (axis := self.axis(name, factor))]
        for name in self.settings.baseline or {}:
            if name not in self.settings.factors:
                near = closest(name, self.settings.factors)
                self.report("G205", f"no factor is called `{name}`", ("baseline", name), near, key=True)
        self.stop_on_problems()
        self.check_size(axes)
        self.check_overlap(axes)
        self.stop_on_problems()
        arms: dict[str, Arm] = {}
        baseline = {axis.name: axis.baseline for axis in axes}
        for chosen in self.combinations(axes):
            name = "baseline" if chosen == baseline else self.name(axes, chosen)
            setup = self.setup(chosen)
            if setup is None:
                continue
            key = text(canonical(setup))
            levels = {factor: level.label for factor, level in chosen.items()}
            if key in arms:
                known = arms[key]
                arms[key] = Arm(known.name, known.levels, known.setup, (*known.aliases, name))
            else:
                arms[key] = Arm(name, levels, setup)
        self.stop_on_problems()
        return Grid(tuple(axes), tuple(arms.values()))

    # --- factors ---

    def axis(self, name: str, factor: Factor) -> Axis | None:
        """The factor's levels and its baseline, or None with the problem noted."""
        before = len(self.problems)
        levels = list(self.levels(name, factor))
        seen: dict[str, Level] = {}
        for level in levels:
            setup = self.setup({name: level})
            same = setup and seen.setdefault(text(canonical(setup)), level)
            if same and same is not level:
                words = f"two levels of `{name}` are the same: {shown(same.label)} and {shown(level.label)}"
                self.report("G202", words, level.source)
        baseline = self.baseline(name, levels, seen.get(text(canonical(self.base))))
        return Axis(name, tuple(levels), baseline) if baseline and len(self.problems) == before else None

    def levels(self, name: str, factor: Factor) -> Iterator[Level]:
        at: Place = ("factors", name)
        if factor.switch is not None:
            yield from self.switch(factor.switch, (*at, "switch"))
        elif factor.path is not None:
            path = self.path(factor.path, (*at, "path"))
            for index, value in enumerate(factor.levels or []):
                if path:
                    yield Level(label(value), {path: value}, (*at, "levels", index))
        elif isinstance(factor.levels, dict):
            for bundle, changes in factor.levels.items():
                source: Place = (*at, "levels", bundle)
                paths = {key: self.path(key, (*source, key), key=True) for key in changes}
                if all(paths.values()):
                    yield Level(bundle, {path: changes[key] for key, path in paths.items() if path}, source)

    def switch(self, dotted: str, source: Place) -> Iterator[Level]:
        """The levels on and off: the value in the baseline, and the neutral component (or false)."""
        path = self.path(dotted, source)
        if not path:
            return
        value: Any = self.base
        for step in path:
            value = getattr(value, str(step))
        if isinstance(value, Component):
            kind = getattr(value, "kind", "")
            if value.neutral is None:
                self.report("G206", f"`{dotted}` cannot be switched off: no {value.slot} is neutral", source)
                return
            off: Any = {"kind": value.neutral}
            already = kind == value.neutral
        else:
            off, already = False, value is False
            if not isinstance(value, bool):
                self.report("G206", f"`{dotted}` is neither a component nor a yes-or-no option", source)
                return
        if already:
            self.report("G207", f"`{dotted}` is already off in the baseline, so its switch has one level", source)
            return
        yield Level("on", {path: spelled(value)}, source)
        yield Level("off", {path: off}, source)

    def path(self, dotted: str, source: Place, *, key: bool = False) -> Place | None:
        """The steps of a path, if something reads it."""
        steps = dotted.split(".")
        if steps[0] not in Setup.model_fields:
            near = closest(steps[0], Setup.model_fields)
            guess = f"{near}.{'.'.join(steps[1:])}" if near and steps[1:] else None
            self.report(
                "G201", f"nothing reads `{dotted}`: a path starts with model, task or training", source, guess, key=key
            )
            return None
        for length in range(1, len(steps)):
            options = fields_at(tuple(steps[:length]), self.raw, self.registry)
            if steps[length] not in options:
                near = closest(steps[length], options)
                guess = ".".join([*steps[:length], near]) if near else None
                self.report("G201", f"nothing reads `{dotted}`", source, guess, key=key)
                return None
        return tuple(steps)

    def baseline(self, name: str, levels: list[Level], equal: Level | None) -> Level | None:
        """The level that the file names; else ``equal``, the one that equals what the baseline has anyway."""
        named = self.settings.baseline or {}
        if name not in named:
            if equal is None and levels:
                help = "add that level, or say which level is the baseline's: `baseline: {" + name + ": LEVEL}`"
                words = f"no level of `{name}` equals what the baseline has"
                self.report("G204", words, ("factors", name), key=True, otherwise=help)
            return equal
        wanted = label(named[name])
        if self.settings.factors[name].switch and isinstance(wanted, bool):
            wanted = "on" if wanted else "off"
        for level in levels:
            if (type(level.label), level.label) == (type(wanted), wanted):
                return level
        choices = [shown(level.label) for level in levels]
        if choices:
            words, near = f"`{name}` has no level `{shown(wanted)}`", closest(shown(wanted), choices)
            self.report("G203", words, ("baseline", name), near, otherwise=f"its levels are {', '.join(choices)}")
        return None

    def check_overlap(self, axes: list[Axis]) -> None:
        for one, other in itertools.combinations(axes, 2):
            for mine, theirs in itertools.product(_paths(one), _paths(other)):
                if mine == theirs[: len(mine)] or theirs == mine[: len(theirs)]:
                    deeper = mine if len(mine) > len(theirs) else theirs
                    dotted = ".".join(map(str, deeper))
                    self.report(
                        "G208",
                        f"`{one.name}` and `{other.name}` both set `{dotted}`",
                        ("factors", other.name),
                        key=True,
                    )
                    return

    def check_size(self, axes: list[Axis]) -> None:
        seeds = len(seed_list(self.settings.seeds))
        others = [len(axis.levels) for axis in axes]
        full = math.prod(others) * seeds
        single = (1 + sum(count - 1 for count in others)) * seeds
        trials = full if self.settings.design == "full" else single
        limit = self.settings.budget.max_trials
        if trials > limit:
            smaller = f"; `design: one_at_a_time` makes {single:,}" if single < trials else ""
            raise RefusedError(
                f"refused: the design `{self.settings.design}` makes {trials:,} trials, and `budget.max_trials` is "
                f"{limit:,}{smaller}"
            )

    # --- arms ---

    def combinations(self, axes: list[Axis]) -> Iterator[dict[str, Level]]:
        """The levels of each arm, the baseline's first."""
        baseline = {axis.name: axis.baseline for axis in axes}
        yield baseline
        if self.settings.design == "one_at_a_time":
            for axis in axes:
                yield from (baseline | {axis.name: level} for level in axis.levels if level != axis.baseline)
        else:
            for levels in itertools.product(*(axis.levels for axis in axes)):
                chosen = dict(zip(baseline, levels, strict=True))
                if chosen != baseline:
                    yield chosen

    def name(self, axes: list[Axis], chosen: Mapping[str, Level]) -> str:
        """The levels that differ from the baseline, or every level in a full design."""
        every = self.settings.design == "full"
        parts = [axis.name for axis in axes if every or chosen[axis.name] != axis.baseline]
        return ", ".join(f"{name}={shown(chosen[name].label)}" for name in parts)

    def setup(self, chosen: Mapping[str, Level]) -> Setup | None:
        """The baseline with these levels, or None with the problems noted."""
        changes = [(path, value, level) for level in chosen.values() for path, value in level.changes.items()]
        raw: Any = self.raw
        origins: dict[Place, Place] = {}
        for path, value, level in sorted(changes, key=lambda change: len(change[0])):
            raw = _changed(raw, path, value)
            bundle = (*level.source, ".".join(map(str, path)))
            origins[path] = bundle if bundle in self.document.values else level.source
        try:
            return Setup.model_validate(raw, context={"registry": self.registry})
        except ValidationError as error:
            for problem in diagnose(error, self.document, self.registry, data=raw, origins=origins):
                if problem not in self.problems:
                    self.problems.append(problem)
            return None

    # --- problems ---

    def report(
        self,
        code: str,
        message: str,
        place: Place,
        near: str | None = None,
        *,
        key: bool = False,
        otherwise: str | None = None,
    ) -> None:
        help = f"did you mean `{near}`?" if near else otherwise
        self.problems.append(self.document.diagnose(code, message, place, key=key, help=help))

    def stop_on_problems(self) -> None:
        if self.problems:
            raise InputError(in_order(self.problems))


def _paths(axis: Axis) -> set[Place]:
    return {path for level in axis.levels for path in level.changes}


def _changed(raw: Any, path: Place, value: Any) -> Any:
    """A copy of the tree with the value at ``path`` replaced; a component given by its name becomes a mapping."""
    head, *rest = path
    tree = {"kind": raw} if isinstance(raw, str) else dict(raw or {})
    tree[str(head)] = _changed(tree.get(str(head)), tuple(rest), value) if rest else value
    return tree
