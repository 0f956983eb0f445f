"""The grid of a factorial design: every cell's mean, laid out by the levels of its factors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl

from ablate.analysis.lattice import Place
from ablate.reporting.factors import levels_of
from ablate.reporting.numbers import DASH, fixed, plain
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
    dashes: bool
    """Whether a factor is no part of some arm."""


def grid(study: Study) -> CellGrid | None:
    """Lay out the arms of a full factorial design; None for a fraction of one, most of whose cells are not there.

    Arms that a factor is no part of have a row or column of their own, under a dash.
    """
    if study.fraction:
        return None
    names = study.lattice.factors
    half = math.ceil(len(names) / 2)
    arms: dict[Place, Arm] = {place: study.by_id[arm] for place, arm in study.lattice.arms.items()}
    excluded = {study.lattice.place(cell["levels"]): cell.get("why", "") for cell in study.plan["excluded"]}
    known = {*arms, *excluded}
    levels = [_levels(study, name, any(place[at] is None for place in known)) for at, name in enumerate(names)]
    # With factors that are no part of some arms, most combinations of the dash with a level are nobody's.
    row_levels = [row for row in itertools.product(*levels[:half]) if not _nobody(row, 0, known)]
    column_levels = [column for column in itertools.product(*levels[half:]) if not _nobody(column, half, known)]
    means = {arm.id: study.values[arm.id].mean() for arm in study.arms}
    rows = []
    for index, row in enumerate(row_levels):
        heads = [_head(row_levels, index, depth) for depth in range(half)]
        cells = [_cell(study, arms.get(row + column), excluded.get(row + column), means, _absent(study, row + column))
                 for column in column_levels]  # fmt: skip
        rows.append(Row(heads, cells))
    head_rows = []
    for depth, name in enumerate(names[half:]):
        spans = [_head(column_levels, index, depth) for index in range(len(column_levels))]
        head_rows.append(HeadRow(plain(name), [span for span in spans if span.span]))
    return CellGrid([plain(name) for name in names[:half]], head_rows, rows, len(column_levels), _dashes(known))


def _levels(study: Study, factor: str, absent: bool) -> list[str | None]:
    """A factor's levels, and None after them where some arms or excluded cells do not have it."""
    return [*levels_of(study, factor), *([None] if absent else [])]


def _nobody(part: Place, start: int, known: Collection[Place]) -> bool:
    """Whether a row or column with a dash in it, or one beside such, has no arm and no excluded cell."""
    return _dashes(known) and not any(place[start : start + len(part)] == part for place in known)


def _dashes(known: Collection[Place]) -> bool:
    return any(None in place for place in known)


def _absent(study: Study, place: Place) -> str:
    """Why there can be no arm at a place, since a factor is no part of one there; "" where there could be."""
    at = {name: level for name, level in zip(study.lattice.factors, place, strict=True) if level is not None}
    lacking = study.lattice.lacking(at, list(at)) if not study.lattice.whole else []
    gone = [name for name, level in zip(study.lattice.factors, place, strict=True) if level is None]
    if lacking:
        return f"{', '.join(lacking)}: no part of the arm here"
    return f"{', '.join(gone)}: part of every arm here" if gone else ""


def _head(rows: Sequence[Place], index: int, depth: int) -> Head:
    """The head at one depth of one row; it spans all following rows that agree up to this depth."""
    prefix = rows[index][: depth + 1]
    if index and rows[index - 1][: depth + 1] == prefix:
        return Head("", 0)
    span = sum(1 for _ in itertools.takewhile(lambda row: row[: depth + 1] == prefix, rows[index:]))
    return Head(DASH if prefix[-1] is None else plain(prefix[-1]), span)


def _cell(study: Study, arm: Arm | None, why: str | None, means: Mapping[str, float], absent: str) -> Cell:
    if arm is None and why is None and absent:
        return Cell(DASH, "", plain(absent))
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
