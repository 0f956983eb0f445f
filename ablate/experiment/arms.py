"""A design over the axes becomes arms: each a validated setup with the levels that made it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ablate.errors import Diagnostic, RefusedError
from ablate.experiment.cells import FACTORIAL, Arm, Cells, Excluded, check_circles
from ablate.experiment.designs import Design, EachAndAll, FractionalDesign, Full, Listed, OneAtATime, Pairs
from ablate.experiment.factors import Axis, check_overlap, check_set, read_axes
from ablate.experiment.levels import Bench, Level, shown
from ablate.experiment.reading import Document
from ablate.experiment.rules import check_rules, read_levels, read_rules
from ablate.experiment.schema import Fractional, Settings, seed_list
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
MOST_NAMED = 12
"""So many arms are named in a message."""


@dataclass(frozen=True)
class Expected:
    """A prediction about one arm, or about a main effect in a design that has them."""

    name: str
    arm: Arm | None
    level: tuple[str, Any] | None
    """The factor, and the label of its level, whose main effect is meant."""
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
    for axis in axes:
        check_set(bench, axis.name, axis.levels)
    check_match(bench, axes)
    check_tune(bench, axes)
    check_circles(bench, axes)
    bench.stop_on_problems()
    _check_size(settings, axes, design)
    cells = Cells(bench, axes, rules)
    for chosen in design.combinations():
        cells.add(chosen, is_baseline=chosen == design.baseline)
    warnings = check_rules(bench, rules, cells.struck, cells.count - 1)
    warnings += cells.warnings()
    warnings += _unvaried(bench, axes, cells)
    warnings += _unused(bench, axes)
    arms = tuple(cells.arms.values())
    if arms and not settings.allow_noop:
        cells.check_effects()
    _check_left(bench, design, cells)
    bench.stop_on_problems()
    expected = _expected(bench, axes, arms)
    warnings += tuning_warnings(bench, axes, arms)
    bench.stop_on_problems()
    return Grid(tuple(axes), arms, tuple(cells.excluded.values()), expected, tuple(warnings), design)


def _unused(bench: Bench, axes: Sequence[Axis]) -> Iterator[Diagnostic]:
    """Levels of `baseline` that replace what `model` says, so that no arm has that."""
    for axis in axes:
        named = axis.name in (bench.settings.baseline or {})
        if named and not axis.when and not any(level.same for level in axis.levels):
            dotted = ", ".join(f"`{'.'.join(map(str, path))}`" for path in sorted(axis.paths, key=str))
            words = f"no level of `{axis.name}` is what the file says at {dotted}, so no arm has that"
            help = "make it a level, or take it out of `model`"
            if all(path[0] == "budget" for path in axis.paths):  # which cannot do without it
                help = "make it a level, or write the steps of the baseline's level there"
            yield bench.document.diagnose("W014", words, ("baseline", axis.name), key=True, help=help)


def _check_left(bench: Bench, design: Design, cells: Cells) -> None:
    """Note a design of which too little is left to answer its question."""
    left = len(cells.arms)
    if left == 1 and cells.excluded and len(cells.excluded) == cells.count - 1:
        if max(cells.struck.values(), default=0) < cells.count - 1:
            bench.report("G212", "these rules together leave out every arm but the baseline", ("exclude",), key=True)
    elif isinstance(design, FractionalDesign) and left < design.size and not bench.problems:
        words = f"the fraction has {design.size} arms, and {left} are left, so its factors are no longer balanced"
        help = "a fraction takes no `exclude` and no arms that fall together: take `full`, or leave a factor out"
        bench.report("G211", words, ("design",), key=True, otherwise=help)


def _unvaried(bench: Bench, axes: Sequence[Axis], cells: Cells) -> Iterator[Diagnostic]:
    """Factors that the design should vary, and that have one level, or none, wherever they are part of an arm."""
    for axis in axes:
        found = [shown(level.label) for level in cells.levels[axis.name].values()]
        if bench.settings.design_name != "list" and len(found) < 2:
            why = f"wherever it is part of one, its level is {found[0]}" if found else "it is part of none"
            words = f"no arm varies `{axis.name}`: {why}"
            help = "its `when`, or a part that it needs, must hold in the baseline; or take `full` or `pairs`"
            help = help if len(axis.levels) > 1 else "give it another level, or leave it out"
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
                    otherwise="leave it two of them, or take `design: one_at_a_time`",
                )
    if name != "list" and settings.arms is not None:
        bench.report("G211", f"`arms` belongs to `design: list`, and the design is `{name}`", ("arms",), key=True)
    if name == "list":
        return Listed(axes, _spelled(bench, axes))
    if name == "fractional":
        wanted = settings.design.resolution if isinstance(settings.design, Fractional) else Fractional().resolution
        for axis in axes:
            if axis.when:
                words = f"a fraction takes no factor with a condition, and `{axis.name}` has a `when`"
                bench.report("G211", words, ("factors", axis.name), key=True, otherwise="take `design: full`")
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
        name = ", ".join(f"{factor}={shown(level.label)}" for factor, level in levels.items())
        by_name = {axis.name: axis for axis in axes}
        changes = [factor for factor, level in levels.items() if level is not by_name[factor].baseline]
        if len(levels) == 1 and changes and bench.settings.design_name in FACTORIAL:
            (factor, level), *_ = levels.items()
            found.append(Expected(name, None, (factor, level.label), entry.effect, entry.source))
            continue
        wanted = {axis.name: axis.baseline for axis in axes} | levels
        fitting = (arm for arm in arms[1:] if any(_is(part, wanted, levels) for part in (arm.chosen, *arm.also)))
        arm = next(fitting, None)
        if arm is None:
            words = f"`expect[{index}]` speaks of an arm that the design does not have"
            if not changes:
                words = f"`expect[{index}]` speaks of the baseline, which arms are compared with"
            listed = "; ".join(each.name for each in arms[1:MOST_NAMED])
            more = f"; and {len(arms) - MOST_NAMED} more" if len(arms) > MOST_NAMED else ""
            bench.report("G213", words, ("expect", index, "arm"), otherwise=f"its arms are {listed}{more}")
        else:
            found.append(Expected(name, arm, None, entry.effect, entry.source))
    return tuple(found)


def _is(part: Mapping[str, Level], wanted: Mapping[str, Level], named: Mapping[str, Level]) -> bool:
    """Whether a cell is the one that is wanted; what is named must be part of it."""
    return all(wanted[name] is level for name, level in part.items()) and named.keys() <= part.keys()


def _check_size(settings: Settings, axes: Sequence[Axis], design: Design) -> None:
    """Refuse a design that is too large, before any arm is made."""
    seeds, limit = len(seed_list(settings.seeds)), settings.budget.max_trials
    tuning = (settings.tune.combinations or 0) * len(settings.tune.seeds) if settings.tune else 0
    tuning += seeds if settings.tune and settings.tune.at_baseline else 0
    again = 1 if settings.noise_floor else 0
    trials = design.size * (seeds + tuning) + again
    if trials <= limit:
        return
    two = all(len(axis.levels) == 2 for axis in axes)
    designs = {"one_at_a_time": OneAtATime(axes), "pairs": Pairs(axes)}
    sizes = {name: other.size for name, other in designs.items()}
    if two:
        with suppress(ValueError):  # there is no fraction of so many factors
            sizes["fractional"] = FractionalDesign(axes).size
    smaller = {name: count for name, size in sizes.items() if (count := size * (seeds + tuning) + again) < trials}
    listed = ", ".join(f"`{name}` {size:,}" for name, size in smaller.items())
    each = f"{seeds:,} seeds" if seeds != 1 else "1 seed"
    each += f" and {tuning:,} tuning trials" if tuning else ""
    raise RefusedError(
        f"refused: the design `{settings.design_name}` makes {design.size:,} arms, with {each} each {trials:,} trials, "
        f"and `budget.max_trials` is {limit:,}" + (f"\n  = help: smaller designs: {listed} trials" if listed else "")
    )
