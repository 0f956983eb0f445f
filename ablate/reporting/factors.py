"""Means over the cells of a factorial design, by the levels of one or two factors."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ablate.analysis.lattice import combinations, is_number, levels_in_order
from ablate.records.frames import spelled
from ablate.reporting.palette import Look, look
from ablate.reporting.study import Study


def levels_of(study: Study, factor: str) -> list[str]:
    """A factor's levels as they are spelled: numbers from the smallest to the largest, others the baseline's first."""
    levels = _in_order(study, factor)
    return [spelled(level) for level in (sorted(levels) if all(map(is_number, levels)) else levels)]


def looks_of_levels(study: Study, factor: str, number: int | None = None) -> dict[str, Look]:
    """How each level is drawn: the reference grey, all others as ``number``, or each in a way of its own."""
    order = [spelled(level) for level in _in_order(study, factor)]
    return {level: look(number if number and place else place) for place, level in enumerate(order)}


def _in_order(study: Study, factor: str) -> list[Any]:
    """A factor's levels, the baseline's first."""
    return levels_in_order(next(entry for entry in study.plan["factors"] if entry["name"] == factor))


def level_means(study: Study, factors: Sequence[str], only: Sequence[Sequence[str]] | None = None) -> pd.DataFrame:
    """The objective by seed (rows) and by the levels of one or two factors (columns), over the cells of all others.

    Every column averages over the same cells, and every row has all of them: a cell that no seed has is left out of
    the average, then a seed that lacks one of the others. In a fraction of a design a column averages over the arms at
    its level. Empty where nothing is left.

    Args:
        study: the study.
        factors: one or two factors.
        only: the levels of the factors that are columns; default all that some arm has.
    """
    names = [tuple(levels) for levels in only or itertools.product(*(levels_of(study, factor) for factor in factors))]
    columns = pd.Index([at[0] for at in names]) if len(factors) == 1 else pd.MultiIndex.from_tuples(names)
    seen = _levels(study, factors, names) if study.fraction else _cells(study, factors, names)
    there = [place for place in range(len(names)) if only or any(cell[place] for cell in seen)]
    whole = [
        np.stack([np.mean(_known(study, cell[place]), axis=0) for place in there])
        for cell in seen
        if there and all(_known(study, cell[place]) for place in there)
    ]
    if not whole:
        return pd.DataFrame(columns=columns[there])
    mean = np.mean(whole, axis=0)  # NaN in a seed that lacks one of the cells
    return pd.DataFrame(mean.T, index=study.values.index, columns=columns[there]).dropna()


Cell = tuple[tuple[str, ...], ...]
"""For each column, the arms that it averages over at one place."""


def _cells(study: Study, factors: Sequence[str], names: Sequence[tuple[str, ...]]) -> list[Cell]:
    """The arms of every column at each place that the other factors make; places with the same arms are one.

    A place where all columns are one arm, since the factors change nothing there, is left out as it is of effects.
    """
    rest = {name: levels_of(study, name) for name in study.lattice.factors if name not in factors}
    found: dict[Cell, None] = {}
    for place in combinations(rest):
        arms = (study.lattice.arm(place | dict(zip(factors, at, strict=True)), factors) for at in names)
        found[tuple((arm,) if arm else () for arm in arms)] = None
    moved = [cell for cell in found if len(set(cell)) > 1 or len(cell) < 2 or not cell[0]]
    return moved or list(found)


def _levels(study: Study, factors: Sequence[str], names: Sequence[tuple[str, ...]]) -> list[Cell]:
    """All arms at each column's level, as one place."""
    (factor,) = factors
    return [tuple(tuple(study.lattice.at(factor, level)) for (level,) in names)]


def _known(study: Study, arms: Sequence[str]) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The values by seed of the arms that some seed has."""
    return [study.values[arm].to_numpy(dtype=float) for arm in arms if study.values[arm].notna().any()]
