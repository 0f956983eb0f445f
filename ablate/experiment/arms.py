"""A design over the axes becomes arms: each a validated setup with the levels that made it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ablate.errors import RefusedError
from ablate.experiment.factors import Axis, check_overlap, read_axes
from ablate.experiment.levels import Bench, Level, setup_key, shown
from ablate.experiment.reading import Document
from ablate.experiment.schema import Settings, seed_list
from ablate.experiment.settings import Setup
from ablate.registry import Registry


@dataclass(frozen=True)
class Arm:
    """One combination of levels, and what it resolves to."""

    name: str
    levels: dict[str, Any]
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
    bench = Bench(settings, document, registry)
    axes = read_axes(bench)
    _check_size(settings, axes)
    check_overlap(bench, axes)
    bench.stop_on_problems()
    arms: dict[str, Arm] = {}
    baseline = {axis.name: axis.baseline for axis in axes}
    for chosen in _combinations(settings, axes):
        name = "baseline" if chosen == baseline else _name(settings, axes, chosen)
        setup = bench.setup(chosen.values())
        if setup is None:
            continue
        levels = {factor: level.label for factor, level in chosen.items()}
        known = arms.get(key := setup_key(setup))
        arms[key] = replace(known, aliases=(*known.aliases, name)) if known else Arm(name, levels, setup)
    bench.stop_on_problems()
    return Grid(tuple(axes), tuple(arms.values()))


def _check_size(settings: Settings, axes: list[Axis]) -> None:
    seeds = len(seed_list(settings.seeds))
    others = [len(axis.levels) for axis in axes]
    full = math.prod(others) * seeds
    single = (1 + sum(count - 1 for count in others)) * seeds
    trials = full if settings.design == "full" else single
    limit = settings.budget.max_trials
    if trials > limit:
        smaller = f"; `design: one_at_a_time` makes {single:,}" if single < trials else ""
        raise RefusedError(
            f"refused: the design `{settings.design}` makes {trials:,} trials, and `budget.max_trials` is "
            f"{limit:,}{smaller}"
        )


def _combinations(settings: Settings, axes: list[Axis]) -> Iterator[dict[str, Level]]:
    """The levels of each arm, the baseline's first."""
    baseline = {axis.name: axis.baseline for axis in axes}
    yield baseline
    if settings.design == "one_at_a_time":
        for axis in axes:
            yield from (baseline | {axis.name: level} for level in axis.levels if level != axis.baseline)
    else:
        for levels in itertools.product(*(axis.levels for axis in axes)):
            chosen = dict(zip(baseline, levels, strict=True))
            if chosen != baseline:
                yield chosen


def _name(settings: Settings, axes: list[Axis], chosen: Mapping[str, Level]) -> str:
    """The levels that differ from the baseline, or every level in a full design."""
    every = settings.design == "full"
    parts = [axis.name for axis in axes if every or chosen[axis.name] != axis.baseline]
    return ", ".join(f"{name}={shown(chosen[name].label)}" for name in parts)
