"""Means over the cells of a factorial design, by the levels of one or two factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ablate.records.frames import spelled
from ablate.reporting.study import Study


def levels_of(study: Study, factor: str) -> list[str]:
    """A factor's levels as they are spelled, the baseline's first."""
    entry = next(entry for entry in study.plan["factors"] if entry["name"] == factor)
    reference = spelled(entry["baseline"])
    return sorted((spelled(level) for level in entry["levels"]), key=lambda level: level != reference)


def level_means(study: Study, factors: Sequence[str]) -> pd.DataFrame:
    """The objective by seed (rows) and by the levels of one or two factors (columns), over the cells of all others.

    Every column averages over the same cells, and every row has all of them: a cell that no seed has is left out of
    the average, then a seed that lacks one of the others. Empty where nothing is left.
    """
    rest = [entry["name"] for entry in study.plan["factors"] if entry["name"] not in factors]
    cells: dict[tuple[str, ...], dict[tuple[str, ...], pd.Series[float]]] = {}
    columns: dict[tuple[str, ...], None] = {}
    for arm in study.arms:
        at = tuple(spelled(arm.levels.get(factor)) for factor in factors)
        columns[at] = None
        cells.setdefault(tuple(spelled(arm.levels.get(factor)) for factor in rest), {})[at] = study.values[arm.id]
    whole = [
        np.stack([cell[at].to_numpy(dtype=float) for at in columns])
        for cell in cells.values()
        if len(cell) == len(columns) and all(values.notna().any() for values in cell.values())
    ]
    names = pd.Index([at[0] for at in columns]) if len(factors) == 1 else pd.MultiIndex.from_tuples(list(columns))
    if not whole:
        return pd.DataFrame(columns=names)
    mean = np.mean(whole, axis=0)  # NaN in a seed that lacks one of the cells
    return pd.DataFrame(mean.T, index=study.values.index, columns=names).dropna()
