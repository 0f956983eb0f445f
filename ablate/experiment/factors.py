"""Factors: every axis with its levels worked out, and which of them is the baseline's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ablate.experiment.conditions import Condition, exclusive, read_condition
from ablate.experiment.equal_levels import without_effect
from ablate.experiment.identity import spelled, text, written
from ablate.experiment.keys import ELSEWHERE, NO_FACTOR, STEPS, deeper, did_you_mean, in_setup, meant_path
from ablate.experiment.levels import Bench, Level, label, same_label, same_value, shown, value_key
from ablate.experiment.paths import MISSING, Place, class_at, fields_at, overlap, unread, value_at
from ablate.experiment.schema import Factor
from ablate.experiment.settings import Setup
from ablate.registry import closest
from ablate.slots import Component

SWITCH = {"on": "on", "true": "on", "off": "off", "false": "off"}
"""What a switch's levels may be called."""
NO_SWITCH = {"yes": "on", "y": "on", "1": "on", "no": "off", "n": "off", "0": "off"}
"""What they may not be called, and what is meant."""
ONE_OF_MANY = ("pairs", "leave_one_out", "add_one", "list")
"""Designs in which a factor that is no part of the baseline has one of its levels without being named."""


@dataclass(frozen=True)
class Axis:
    """A factor with its levels worked out, and which of them is the baseline's."""

    name: str
    levels: tuple[Level, ...]
    baseline: Level
    when: Mapping[Place, Any] = field(default_factory=dict)
    """What an arm must have for the factor to be part of it, as it is written."""
    conditions: tuple[Condition, ...] = ()
    """The same, worked out."""

    @property
    def others(self) -> tuple[Level, ...]:
        """The levels that are not the baseline's."""
        return tuple(level for level in self.levels if level is not self.baseline)

    @property
    def paths(self) -> set[Place]:
        """Every path that a level sets."""
        return {path for level in self.levels for path in level.changes}


def read_axes(bench: Bench) -> list[Axis]:
    """Every factor's axis.

    Raises:
        InputError: everything that is wrong with a factor or with the levels of the baseline.
    """
    settings = bench.settings
    axes = [axis for name, factor in settings.factors.items() if (axis := _axis(bench, name, factor))]
    for name in settings.baseline or {}:
        check_factor(bench, name, ("baseline", name))
    bench.stop_on_problems()
    return axes


def check_factor(bench: Bench, name: str, place: Place) -> bool:
    """Whether there is a factor of this name, or the problem noted."""
    if name in bench.settings.factors:
        return True
    near = closest(name, bench.settings.factors)
    otherwise = f"there is: {', '.join(bench.settings.factors)}" if bench.settings.factors else None
    bench.report("G205", f"no factor is called `{name}`", place, near, key=True, otherwise=otherwise)
    return False


def find_level(bench: Bench, name: str, levels: Sequence[Level], value: Any, place: Place) -> Level | None:
    """The level that a value means, or None with the problem noted."""
    wanted = label(value)
    word = shown(wanted).lower().strip('"')
    if bench.settings.factors[name].switch is not None:
        wanted = SWITCH.get(word, wanted)
    for level in levels:
        if same_label(level.label, wanted) or same_value(level, value):
            return level
    choices = [shown(level.label) for level in levels]
    if choices:
        near = closest(shown(wanted), choices)
        if bench.settings.factors[name].switch is not None:
            near = NO_SWITCH.get(word, near)
        words = f"`{name}` has no level `{shown(wanted)}`"
        bench.report("G203", words, place, near, otherwise=f"its levels are {', '.join(choices)}")
    return None


def varied(bench: Bench, levels: Iterable[Level]) -> set[Place]:
    """Every place that some level of a factor sets anew."""
    return {place for level in levels if not level.same for place in bench.explicit(level.changes)}


def check_set(bench: Bench, name: str, levels: Iterable[Level]) -> bool:
    """Whether the command line sets nothing that a factor varies, or the problem noted: one would be in vain."""
    anew = varied(bench, levels)
    for place, home in bench.document.elsewhere.items():
        if home.file == "--set" and any(overlap(place, other) for other in anew):
            words = (
                f"`--set` sets `{'.'.join(map(str, place)).removesuffix('.kind')}`, which the factor `{name}` varies"
            )
            help = "leave the factor out, or change its levels in the file"
            bench.report("G218", words, place, otherwise=help)
            return False
    return True


def check_overlap(bench: Bench, axes: list[Axis]) -> None:
    """Report two factors that set the same path, unless no arm can have both of them."""
    set_by: list[tuple[Axis, set[Place]]] = []
    for axis in axes:
        mine = varied(bench, axis.levels)
        for other, theirs in set_by:
            shared = [deeper for a in theirs for b in mine if (deeper := overlap(a, b))]
            if shared and not exclusive(other.conditions, axis.conditions):
                dotted = ".".join(map(str, min(shared))).removesuffix(".kind")
                words = f"`{other.name}` and `{axis.name}` both set `{dotted}`"
                bench.report("G208", words, ("factors", axis.name), key=True)
                break
        set_by.append((axis, mine))


def holds(bench: Bench, conditions: Iterable[Condition], raw: Any) -> bool:
    """Whether a spelled setup fulfils all conditions."""
    return all(condition.holds(raw, bench.registry) for condition in conditions)


def _axis(bench: Bench, name: str, factor: Factor) -> Axis | None:
    """The factor's levels and its baseline, or None with the problem noted."""
    before = len(bench.problems)
    when, conditions = _when(bench, name, factor)
    there = holds(bench, conditions, bench.raw)
    levels: list[Level] = []
    seen: dict[str, Level] = {}
    own = text(written(bench.base))
    for level in _levels(bench, name, factor):
        setup = bench.setup([level]) if there else None
        key = text(written(setup)) if setup else value_key([[*path, value] for path, value in level.changes.items()])
        _check_once(bench, name, level)
        first = seen.get(key)
        if first and (setup or not there):
            words = f"two levels of `{name}` are the same: {shown(first.label)} and {shown(level.label)}"
            bench.report("G202", words, level.source, otherwise=without_effect(bench, first, level))
        elif any(same_label(level.label, other.label) for other in levels):
            bench.report("G202", f"two levels of `{name}` are called {shown(level.label)}", level.source)
        levels.append(replace(level, same=key == own))
        seen.setdefault(key, levels[-1])
    sound = len(bench.problems) == before
    baseline = _baseline(bench, name, levels, there=there and sound)
    return Axis(name, tuple(levels), baseline, when, conditions) if baseline and sound else None


def _check_once(bench: Bench, name: str, level: Level) -> None:
    """Report a bundle that sets an option twice, by a path and by one into or around it."""
    seen: set[Place] = set()
    for path, value in level.changes.items():
        mine = bench.explicit({path: value})
        shared = [deeper for a in seen for b in mine if (deeper := overlap(a, b))]
        if shared:
            dotted = ".".join(map(str, min(shared))).removesuffix(".kind")
            words = f"the level {shown(level.label)} of `{name}` sets `{dotted}` twice"
            bench.report("G208", words, level.origin(path, bench.document), key=True)
        seen |= mine


def _when(bench: Bench, name: str, factor: Factor) -> tuple[dict[Place, Any], tuple[Condition, ...]]:
    """What must hold, by path, and worked out."""
    when: dict[Place, Any] = {}
    conditions = []
    for dotted, value in (factor.when or {}).items():
        place: Place = ("factors", name, "when", dotted)
        path = read_path(bench, dotted, place, key=True, anywhere=True)
        if path:
            when[path] = value
            conditions.append(read_condition(bench, path, value, place))
    return when, tuple(conditions)


def _levels(bench: Bench, name: str, factor: Factor) -> Iterator[Level]:
    at: Place = ("factors", name)
    anywhere = bool(factor.when)
    if factor.switch is not None:
        switch = list(_switch(bench, factor.switch, (*at, "switch")))
        if factor.levels is None or not switch:
            yield from switch
            return
        for index, value in enumerate(factor.levels):
            level = find_level(bench, name, switch, value, (*at, "levels", index))
            if level:
                yield replace(level, source=(*at, "levels", index))
    elif factor.path is not None:
        path = read_path(bench, factor.path, (*at, "path"), anywhere=anywhere)
        for index, value in enumerate(factor.levels or []):
            if path:
                yield Level(label(value), {path: value}, (*at, "levels", index))
    elif isinstance(factor.levels, dict):
        for bundle, changes in factor.levels.items():
            source: Place = (*at, "levels", bundle)
            paths = {key: read_path(bench, key, (*source, key), key=True, anywhere=anywhere) for key in changes}
            if all(paths.values()):
                yield Level(bundle, {path: changes[key] for key, path in paths.items() if path}, source)


def _switch(bench: Bench, dotted: str, source: Place) -> Iterator[Level]:
    """The levels on and off: the value in the baseline, and the neutral component (or false)."""
    path = read_path(bench, dotted, source)
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


def read_path(bench: Bench, dotted: str, source: Place, *, key: bool = False, anywhere: bool = False) -> Place | None:
    """The steps of a path, if something reads it: in the baseline, or ``anywhere`` in a component that there is."""
    steps = dotted.split(".")
    if dotted == STEPS:
        return tuple(steps)
    if steps[0] not in Setup.model_fields:
        words = f"nothing reads `{dotted}`: a path starts with model, task or training, or is `{STEPS}`"
        help = meant_path(steps, bench.settings.factors, bench.raw, bench.registry)
        bench.report("G201", words, source, key=key, otherwise=help)
        return None
    path = tuple(steps)
    nowhere = unread(path, bench.registry)
    if nowhere is None and anywhere:
        return path
    for length in range(1, len(steps)):
        options = fields_at(path[:length], bench.raw, bench.registry)
        if steps[length] not in options:
            inner = deeper(path[:length], steps[length], bench.raw, bench.registry)
            near = None if inner else closest(steps[length], options)
            guess = ".".join([*steps[:length], near]) if near else None
            if not inner and not near:
                inner = in_setup(steps[length], bench.raw, bench.registry)
            otherwise, here = None, class_at(path[:length], bench.raw, bench.registry)
            words = f"nothing reads `{dotted}`"
            if nowhere is None and here and issubclass(here, Component):
                kind = here.model_fields["kind"].default
                words += f" where the {here.slot} is `{kind}`, as in the baseline"
                guess, otherwise = None, "say when it applies: `when: {" + ".".join(steps[:length]) + ".kind: KIND}`"
            elif inner:
                otherwise = did_you_mean(inner, steps[length + 1 :])
            elif not near and options:
                word = ELSEWHERE.get(steps[length], steps[length])
                otherwise = NO_FACTOR.get(word, f"there is: {', '.join(options)}")
            bench.report("G201", words, source, guess, key=key, otherwise=otherwise)
            return None
    return path


def _had(bench: Bench, levels: Sequence[Level]) -> str:
    """What the baseline has where the levels differ, as ", `learned`"; of several options, each with its path."""
    paths = list(dict.fromkeys(path for level in levels for path in level.changes))
    values = {path: value_at(path, bench.raw, bench.registry) for path in paths}
    known = {".".join(map(str, path)): shown(label(value)) for path, value in values.items() if value is not MISSING}
    found = [value if len(paths) == 1 else f"{path}: {value}" for path, value in known.items()]
    return "".join(f", `{each}`" for each in found)


def _baseline(bench: Bench, name: str, levels: list[Level], *, there: bool) -> Level | None:
    """The level that the file names; else the one that equals what the baseline has (`add_one`: the other one)."""
    named = bench.settings.baseline or {}
    if name in named:
        return find_level(bench, name, levels, named[name], ("baseline", name))
    if not there:
        if levels and bench.settings.design_name in ONE_OF_MANY:
            words = f"`{name}` is no part of the baseline, so which level is it where another change brings it in?"
            help = "say it: `baseline: {" + name + ": LEVEL}`"
            bench.report("G204", words, ("factors", name), key=True, otherwise=help)
        return levels[0] if levels else None
    equal = next((level for level in levels if level.same), None)
    if bench.settings.design_name == "add_one" and equal:
        return next((level for level in levels if level is not equal), equal)
    if equal is None and levels and check_set(bench, name, levels):
        help = "add that level, or say which level is the baseline's: `baseline: {" + name + ": LEVEL}`"
        words = f"no level of `{name}` equals what the baseline has{_had(bench, levels)}"
        bench.report("G204", words, ("factors", name), key=True, otherwise=help)
    return equal
