"""A design over the axes becomes arms: each a validated setup with the levels that made it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ablate.errors import Diagnostic, RefusedError
from ablate.experiment.designs import Chosen, Design, EachAndAll, FractionalDesign, Full, Listed, OneAtATime, Pairs
from ablate.experiment.factors import Axis, check_overlap, holds, overlap, read_axes
from ablate.experiment.levels import Bench, Level, setup_key, shown
from ablate.experiment.paths import Place
from ablate.experiment.reading import Document
from ablate.experiment.rules import Rule, check_rules, read_levels, read_rules
from ablate.experiment.schema import Fractional, Settings, seed_list
from ablate.experiment.settings import Setup
from ablate.experiment.vetting import check_match, check_tune, tuning_warnings
from ablate.registry import Registry

PLAIN: Mapping[str, Callable[[Sequence[Axis]], Design]] = {
    "one_at_a_time": OneAtATime,
    "full": Full,
    "leave_one_out": EachAndAll,
    "add_one": EachAndAll,
    "pairs": Pairs,
}
"""Designs that need nothing but the factors."""
OF_TWO = ("leave_one_out", "add_one", "fractional")
"""Designs over factors of two levels."""


@dataclass(frozen=True)
class Arm:
    """One combination of levels, and what it resolves to."""

    name: str
    chosen: Mapping[str, Level]
    """The level of each factor that is part of the arm."""
    setup: Setup
    aliases: tuple[str, ...] = ()
    """Names of further combinations that resolve to the same setup."""

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
    setup: Setup | None
    """What it would have been, if it is a valid setup at all."""


@dataclass(frozen=True)
class Expected:
    """A prediction about one arm."""

    arm: Arm
    effect: str
    source: str


@dataclass(frozen=True)
class Grid:
    """All arms of an experiment, the baseline first."""

    axes: tuple[Axis, ...]
    arms: tuple[Arm, ...]
    excluded: tuple[Excluded, ...]
    expected: tuple[Expected, ...]
    warnings: tuple[Diagnostic, ...]
    design: Design


def expand(settings: Settings, document: Document, registry: Registry) -> Grid:
    """Make every arm.

    Raises:
        InputError: a factor, a rule or the design cannot be used, or an arm is no valid setup.
        RefusedError: there are more trials than ``budget.max_trials``.
    """
    bench = Bench(settings, document, registry)
    axes = read_axes(bench)
    design = _design(bench, axes)
    rules = read_rules(bench, axes)
    check_overlap(bench, axes)
    _check_sets(bench, axes)
    check_match(bench, axes)
    check_tune(bench, axes)
    bench.stop_on_problems()
    _check_size(settings, axes, design)
    cells = _Cells(bench, axes, rules)
    for chosen in design.combinations():
        cells.add(chosen, is_baseline=chosen == design.baseline)
    warnings = check_rules(bench, rules, cells.struck, cells.count - 1)
    warnings += _unvaried(bench, axes, cells)
    bench.stop_on_problems()
    arms = tuple(cells.arms.values())
    expected = _expected(bench, axes, arms)
    warnings += tuning_warnings(bench, axes, arms)
    bench.stop_on_problems()
    return Grid(tuple(axes), arms, tuple(cells.excluded.values()), expected, tuple(warnings), design)


class _Cells:
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
                self._bench.report("G212", "this rule leaves out the baseline", self._rules[index].place)
        if matching:
            setup = self._bench.setup(part.values(), quietly=True)
            self.excluded[name] = Excluded(name, part, self._rules[matching[0]].why, matching[0], setup)
            return
        setup = self._bench.setup(part.values())
        if setup is None:
            return
        known = self.arms.get(key := setup_key(setup))
        if known is None:
            self.arms[key] = Arm(name, part, setup)
        else:
            self.arms[key] = replace(known, aliases=(*known.aliases, name))

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
        every = self._bench.settings.design_name in ("full", "fractional")
        named = [axis for axis in self._axes if axis.name in part]
        parts = [axis for axis in named if every or part[axis.name] is not axis.baseline] or named
        return ", ".join(f"{axis.name}={shown(part[axis.name].label)}" for axis in parts) or "baseline"


def _in_order(axes: Sequence[Axis]) -> list[Axis]:
    """Factors with conditions, each after those that set what its own conditions look at."""
    ordered: list[Axis] = []
    left = list(axes)
    while left:
        free = (
            axis
            for axis in left
            if not any(
                overlap(condition.path, path)
                for other in left
                if other is not axis
                for path in other.paths
                for condition in axis.conditions
            )
        )
        ordered.append(next(free, left[0]))  # in a circle the file's order decides
        left.remove(ordered[-1])
    return ordered


def _unvaried(bench: Bench, axes: Sequence[Axis], cells: _Cells) -> Iterator[Diagnostic]:
    """Factors that the design should vary, and that have one level, or none, wherever they are part of an arm."""
    for axis in axes:
        found = [shown(level.label) for level in cells.levels[axis.name].values()]
        if bench.settings.design_name != "list" and len(axis.levels) > 1 and len(found) < 2:
            why = f"wherever it is part of one, its level is {found[0]}" if found else "it is part of none"
            words = f"no arm varies `{axis.name}`: {why}"
            help = "its `when`, or a part that it needs, must hold in the baseline; or take `full` or `pairs`"
            yield bench.document.diagnose("W012", words, ("factors", axis.name), key=True, help=help)


def _design(bench: Bench, axes: Sequence[Axis]) -> Design:
    """The design that the file names; what does not fit it is noted."""
    settings, name = bench.settings, bench.settings.design_name
    if name in OF_TWO:
        for axis in axes:
            if len(axis.levels) != 2:
                words = f"`{name}` takes factors of two levels, and `{axis.name}` has {len(axis.levels)}"
                bench.report(
                    "G211",
                    words,
                    ("factors", axis.name),
                    key=True,
                    otherwise="make it a switch, or take `design: one_at_a_time`",
                )
    if name != "list" and settings.arms is not None:
        bench.report("G211", f"`arms` belongs to `design: list`, and the design is `{name}`", ("arms",), key=True)
    if name == "list":
        return Listed(axes, _spelled(bench, axes))
    if name == "fractional":
        wanted = settings.design.resolution if isinstance(settings.design, Fractional) else Fractional().resolution
        fraction = FractionalDesign(axes, wanted)
        try:
            fraction.signs  # noqa: B018  # there may be none
        except ValueError as error:
            help = "take a lower resolution, or fewer factors"
            bench.report("G211", f"there is no such fraction: {error}".split(";")[0], ("design",), otherwise=help)
        return fraction
    return PLAIN[name](axes)


def _spelled(bench: Bench, axes: Sequence[Axis]) -> list[Mapping[str, Level]]:
    """The arms that the file spells out."""
    if not bench.settings.arms:
        bench.report(
            "G211", "`design: list` needs `arms`", ("design",), otherwise="write `arms: [{FACTOR: LEVEL, …}, …]`"
        )
        return []
    arms: list[Mapping[str, Level]] = []
    baseline = {axis.name: axis.baseline for axis in axes}
    seen: dict[tuple[int, ...], int] = {}
    for index, entry in enumerate(bench.settings.arms):
        levels = read_levels(bench, axes, entry, ("arms", index))
        if levels is None:
            continue
        full = baseline | levels
        key = tuple(id(full[axis.name]) for axis in axes)
        if key in seen:
            bench.report("G213", f"`arms[{index}]` is the same arm as `arms[{seen[key]}]`", ("arms", index))
        seen.setdefault(key, index)
        if full != baseline:
            arms.append(levels)
    return arms


def _expected(bench: Bench, axes: Sequence[Axis], arms: Sequence[Arm]) -> tuple[Expected, ...]:
    """The predictions, each with its arm."""
    found = []
    for index, entry in enumerate(bench.settings.expect):
        levels = read_levels(bench, axes, entry.arm, ("expect", index, "arm"))
        if levels is None:
            continue
        wanted = {axis.name: axis.baseline for axis in axes} | levels
        arm = next((arm for arm in arms[1:] if all(wanted[name] is level for name, level in arm.chosen.items())
                    and levels.keys() <= arm.chosen.keys()), None)  # fmt: skip
        if arm is None:
            words = f"`expect[{index}]` speaks of an arm that the design does not have"
            if all(wanted[axis.name] is axis.baseline for axis in axes):
                words = f"`expect[{index}]` speaks of the baseline, which arms are compared with"
            bench.report("G213", words, ("expect", index, "arm"), otherwise="`ablate plan` lists the arms")
        else:
            found.append(Expected(arm, entry.effect, entry.source))
    return tuple(found)


def _check_sets(bench: Bench, axes: Sequence[Axis]) -> None:
    """Report what the command line sets and a factor varies: one of the two would have no effect."""
    document = bench.document
    sets: list[Place] = [place for place, home in document.elsewhere.items() if home.file == "--set"]
    for axis in axes:
        varied = {place for level in axis.levels if not level.same for place in bench.explicit(level.changes)}
        for place in sets:
            if any(overlap(place, other) for other in varied):
                dotted = ".".join(map(str, place)).removesuffix(".kind")
                bench.report("G218", f"`--set` sets `{dotted}`, which the factor `{axis.name}` varies", place,
                             otherwise="leave the factor out, or change its levels in the file")  # fmt: skip
                break


def _check_size(settings: Settings, axes: Sequence[Axis], design: Design) -> None:
    """Refuse a design that is too large, before any arm is made."""
    seeds, limit = len(seed_list(settings.seeds)), settings.budget.max_trials
    tuning = (settings.tune.combinations or 0) * len(settings.tune.seeds) if settings.tune else 0
    trials = design.size * (seeds + tuning)
    if trials <= limit:
        return
    two = all(len(axis.levels) == 2 for axis in axes)
    designs: dict[str, Design] = {"one_at_a_time": OneAtATime(axes), "pairs": Pairs(axes)}
    if two:
        designs["fractional"] = FractionalDesign(axes)
    smaller = {name: size for name, other in designs.items() if (size := other.size * (seeds + tuning)) < trials}
    listed = ", ".join(f"`{name}` {size:,}" for name, size in smaller.items())
    each = f"{seeds:,} seeds" if seeds != 1 else "1 seed"
    each += f" and {tuning:,} tuning trials" if tuning else ""
    raise RefusedError(
        f"refused: the design `{settings.design_name}` makes {design.size:,} arms, with {each} each {trials:,} trials, "
        f"and `budget.max_trials` is {limit:,}" + (f"\n  = help: smaller designs: {listed} trials" if listed else "")
    )
