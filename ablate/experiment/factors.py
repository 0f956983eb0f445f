"""Factors: every axis with its levels worked out, and which of them is the baseline's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ablate.experiment.levels import Bench, Level, label, setup_key, shown, spelled
from ablate.experiment.problems import Place, fields_at
from ablate.experiment.schema import Factor
from ablate.experiment.settings import Setup
from ablate.registry import closest
from ablate.slots import Component


@dataclass(frozen=True)
class Axis:
    """A factor with its levels worked out, and which of them is the baseline's."""

    name: str
    levels: tuple[Level, ...]
    baseline: Level


def read_axes(bench: Bench) -> list[Axis]:
    """Every factor's axis.

    Raises:
        InputError: everything that is wrong with a factor or with the levels of the baseline.
    """
    settings = bench.settings
    axes = [axis for name, factor in settings.factors.items() if (axis := _axis(bench, name, factor))]
    for name in settings.baseline or {}:
        if name not in settings.factors:
            near = closest(name, settings.factors)
            bench.report("G205", f"no factor is called `{name}`", ("baseline", name), near, key=True)
    bench.stop_on_problems()
    return axes


def _axis(bench: Bench, name: str, factor: Factor) -> Axis | None:
    """The factor's levels and its baseline, or None with the problem noted."""
    before = len(bench.problems)
    levels = list(_levels(bench, name, factor))
    seen: dict[str, Level] = {}
    for level in levels:
        setup = bench.setup([level])
        same = setup and seen.setdefault(setup_key(setup), level)
        if same and same is not level:
            words = f"two levels of `{name}` are the same: {shown(same.label)} and {shown(level.label)}"
            bench.report("G202", words, level.source)
    baseline = _baseline(bench, name, levels, seen.get(setup_key(bench.base)))
    return Axis(name, tuple(levels), baseline) if baseline and len(bench.problems) == before else None


def _levels(bench: Bench, name: str, factor: Factor) -> Iterator[Level]:
    at: Place = ("factors", name)
    if factor.switch is not None:
        yield from _switch(bench, factor.switch, (*at, "switch"))
    elif factor.path is not None:
        path = _path(bench, factor.path, (*at, "path"))
        for index, value in enumerate(factor.levels or []):
            if path:
                yield Level(label(value), {path: value}, (*at, "levels", index))
    elif isinstance(factor.levels, dict):
        for bundle, changes in factor.levels.items():
            source: Place = (*at, "levels", bundle)
            paths = {key: _path(bench, key, (*source, key), key=True) for key in changes}
            if all(paths.values()):
                yield Level(bundle, {path: changes[key] for key, path in paths.items() if path}, source)


def _switch(bench: Bench, dotted: str, source: Place) -> Iterator[Level]:
    """The levels on and off: the value in the baseline, and the neutral component (or false)."""
    path = _path(bench, dotted, source)
    if not path:
        return
    value: Any = bench.base
    for step in path:
        value = getattr(value, str(step))
    if isinstance(value, Component):
        kind = getattr(value, "kind", "")
        if value.neutral is None:
            bench.report("G206", f"`{dotted}` cannot be switched off: no {value.slot} is neutral", source)
            return
        off: Any = {"kind": value.neutral}
        already = kind == value.neutral
    else:
        off, already = False, value is False
        if not isinstance(value, bool):
            bench.report("G206", f"`{dotted}` is neither a component nor a yes-or-no option", source)
            return
    if already:
        bench.report("G207", f"`{dotted}` is already off in the baseline, so its switch has one level", source)
        return
    yield Level("on", {path: spelled(value)}, source)
    yield Level("off", {path: off}, source)


def _path(bench: Bench, dotted: str, source: Place, *, key: bool = False) -> Place | None:
    """The steps of a path, if something reads it."""
    steps = dotted.split(".")
    if steps[0] not in Setup.model_fields:
        near = closest(steps[0], Setup.model_fields)
        guess = f"{near}.{'.'.join(steps[1:])}" if near and steps[1:] else None
        bench.report(
            "G201", f"nothing reads `{dotted}`: a path starts with model, task or training", source, guess, key=key
        )
        return None
    for length in range(1, len(steps)):
        options = fields_at(tuple(steps[:length]), bench.raw, bench.registry)
        if steps[length] not in options:
            near = closest(steps[length], options)
            guess = ".".join([*steps[:length], near]) if near else None
            bench.report("G201", f"nothing reads `{dotted}`", source, guess, key=key)
            return None
    return tuple(steps)


def _baseline(bench: Bench, name: str, levels: list[Level], equal: Level | None) -> Level | None:
    """The level that the file names; else ``equal``, the one that equals what the baseline has anyway."""
    named = bench.settings.baseline or {}
    if name not in named:
        if equal is None and levels:
            help = "add that level, or say which level is the baseline's: `baseline: {" + name + ": LEVEL}`"
            words = f"no level of `{name}` equals what the baseline has"
            bench.report("G204", words, ("factors", name), key=True, otherwise=help)
        return equal
    wanted = label(named[name])
    if bench.settings.factors[name].switch and isinstance(wanted, bool):
        wanted = "on" if wanted else "off"
    for level in levels:
        if (type(level.label), level.label) == (type(wanted), wanted):
            return level
    choices = [shown(level.label) for level in levels]
    if choices:
        words, near = f"`{name}` has no level `{shown(wanted)}`", closest(shown(wanted), choices)
        bench.report("G203", words, ("baseline", name), near, otherwise=f"its levels are {', '.join(choices)}")
    return None


def check_overlap(bench: Bench, axes: list[Axis]) -> None:
    """Report two factors that set the same path, or one inside the other's."""
    for one, other in itertools.combinations(axes, 2):
        for mine, theirs in itertools.product(_paths(one), _paths(other)):
            if mine == theirs[: len(mine)] or theirs == mine[: len(theirs)]:
                deeper = mine if len(mine) > len(theirs) else theirs
                dotted = ".".join(map(str, deeper))
                bench.report(
                    "G208",
                    f"`{one.name}` and `{other.name}` both set `{dotted}`",
                    ("factors", other.name),
                    key=True,
                )
                return


def _paths(axis: Axis) -> set[Place]:
    return {path for level in axis.levels for path in level.changes}
