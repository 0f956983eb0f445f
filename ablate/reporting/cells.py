"""The grid of a factorial design: every cell's mean, laid out by the levels of its factors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl

from ablate.records.frames import spelled
from ablate.reporting.factors import levels_of
from ablate.reporting.numbers import fixed, plain
from ablate.reporting.palette import SCALE
from ablate.reporting.study import Arm, Study


@dataclass(frozen=True)
class Head:
    """A head that spans so many cells; none where the head before it spans this place too."""

    text: str
    span: int


@dataclass(frozen=True)
class HeadRow:
    """The levels of one factor along the top."""

    factor: str
    cells: Sequence[Head]


@dataclass(frozen=True)
class Cell:
    """One arm's mean, its colour, and what else is known of it."""

    text: str
    style: str
    title: str


@dataclass(frozen=True)
class Row:
    """One row of cells with its heads."""

    heads: Sequence[Head]
    cells: Sequence[Cell]


@dataclass(frozen=True)
class CellGrid:
    """All cells; the first half of the factors runs down, the rest across."""

    row_factors: Sequence[str]
    heads: Sequence[HeadRow]
    rows: Sequence[Row]
    columns: int


def grid(study: Study) -> CellGrid:
    """Lay out the arms of a full factorial design."""
    names = [factor["name"] for factor in study.plan["factors"]]
    down, across = names[: math.ceil(len(names) / 2)], names[math.ceil(len(names) / 2) :]
    row_levels = list(itertools.product(*(levels_of(study, name) for name in down)))
    column_levels = list(itertools.product(*(levels_of(study, name) for name in across)))
    arms = {tuple(spelled(arm.levels.get(name)) for name in names): arm for arm in study.arms}
    means = {arm.id: study.values[arm.id].mean() for arm in study.arms}
    excluded = {
        tuple(spelled(cell["levels"].get(name)) for name in names): cell.get("why", "")
        for cell in study.plan["excluded"]
    }
    rows = []
    for index, row in enumerate(row_levels):
        heads = [_head(row_levels, index, depth) for depth in range(len(down))]
        cells = [_cell(study, arms.get(row + column), excluded.get(row + column), means)
                 for column in column_levels]  # fmt: skip
        rows.append(Row(heads, cells))
    head_rows = []
    for depth, name in enumerate(across):
        spans = [_head(column_levels, index, depth) for index in range(len(column_levels))]
        head_rows.append(HeadRow(plain(name), [span for span in spans if span.span]))
    return CellGrid([plain(name) for name in down], head_rows, rows, len(column_levels))


def _head(rows: Sequence[tuple[str, ...]], index: int, depth: int) -> Head:
    """The head at one depth of one row; it spans all following rows that agree up to this depth."""
    prefix = rows[index][: depth + 1]
    if index and rows[index - 1][: depth + 1] == prefix:
        return Head("", 0)
    span = sum(1 for _ in itertools.takewhile(lambda row: row[: depth + 1] == prefix, rows[index:]))
    return Head(plain(prefix[-1]), span)


def _cell(study: Study, arm: Arm | None, why: str | None, means: Mapping[str, float]) -> Cell:
    if arm is None:
        hatch = "background:repeating-linear-gradient(45deg,var(--line) 0 2px,transparent 2px 7px)"
        return Cell("excluded" if why is not None else "not planned", hatch, plain(why or ""))
    mean, lost = means[arm.id], study.diverged(arm)
    done = int(study.values[arm.id].notna().sum())
    title = f"{arm.name}: {done} of {len(study.values)} seeds completed"
    crosses = f" ✕{lost}" if lost else ""
    if not math.isfinite(mean):
        return Cell(f"diverged{crosses}" if lost else "no value", "", title)
    known = [value for value in means.values() if math.isfinite(value)]
    low, high = min(known), max(known)
    share = (mean - low) / (high - low) if high > low else 0.5
    red, green, blue, _ = mpl.colormaps[SCALE](share)
    # Relative luminance decides which ink reads on the cell; the cell's ground is the same on light and dark pages.
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    bright = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179
    ground = "#" + "".join(f"{round(255 * part):02x}" for part in (red, green, blue))
    return Cell(fixed(mean, study.places) + crosses, f"background:{ground};color:{'#000' if bright else '#fff'}", title)
