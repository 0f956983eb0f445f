"""The objective over the learning rate: a panel an architecture, every run a dot, those that diverged on a rail."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from ablate.analysis.sensitivity import Curve
from ablate.records.spelling import short
from ablate.reporting.figures.forest import far_away
from ablate.reporting.layout import PAGE, Margins, few_ticks, heading, log_ticks, panels
from ablate.reporting.names import SMALL, headings
from ablate.reporting.numbers import plain
from ablate.reporting.palette import BAND, BASELINE, INK, Look
from ablate.reporting.study import MOST_ARMS, Study
from ablate.reporting.svg import drawn

Row = Mapping[str, Any]
MOST_MARKS = 2_000
"""So many dots of a panel are shapes; more are an image."""
RAIL = 0.955
"""Height of the rail for runs without a place on the axis, as a share of the panel."""


def caption(study: Study, rows: Sequence[Row]) -> str:
    """What the figure shows, and what it leaves out."""
    parts = _runs(study, rows[:MOST_ARMS])
    low, high = _limits(study, rows, parts)
    text = (
        "Every run is a dot, the line goes through the means over the seeds that have every rate, ringed is the best "
        "rate, and shaded are the rates that are as good. Crosses on the top rail count the runs that diverged there."
    )
    if any(row["diverged"] and row["capped"] for row in rows):
        text += " In a mean each of them is the loss at initialisation, so the line may leave the panel."
    values = pd.concat([part["value"] for part in parts]).dropna()
    if not values.between(low, high).all():
        text += " Triangles count those beyond the axis."
    if len(rows) > 1 and rows[0]["architecture"] == "baseline":
        text += " The dashed grey line is the baseline's."
    if any(row["pruned"] or row["missing"] for row in rows):
        text += " Runs that were given up, or have no value, have no dot: the table counts them."
    cut = f" Shown are the first {MOST_ARMS} of {len(rows)} architectures." if len(rows) > MOST_ARMS else ""
    return text + cut


@drawn
def curves(study: Study, rows: Sequence[Row], looks: Mapping[tuple[str, str], Look]) -> Figure:
    """A panel an architecture on one scale, the learning rate on a logarithmic axis."""
    rows = rows[:MOST_ARMS]
    parts = _runs(study, rows)
    lines = [Curve.of(study.results.objective, part) for part in parts]
    limits = _limits(study, rows, parts)
    rates = pd.concat([part["rate"] for part in parts]).tolist()
    columns = min(4 if len(rows) > 3 else 3, max(2, len(rows)))
    width = PAGE / columns - 66
    titles, long = headings([plain(row["architecture"]) for row in rows], width + 12, 2)
    figure, all_axes = panels(len(rows), columns, (width, 210), Margins(52, 14, 60 if long else 44, 40))
    for axes, row, part, line, title in zip(all_axes, rows, parts, lines, titles, strict=True):
        axes.set_xscale("log")
        axes.set(xlim=(min(rates) / 1.35, max(rates) * 1.35), ylim=limits)
        if row["architecture"] != "baseline" and rows[0]["architecture"] == "baseline":
            axes.plot(lines[0].rates, study.worse * lines[0].means, color=BASELINE, lw=1.3, dashes=(4, 2))
        _curve(study, axes, row, part, line, looks[row["architecture"], row["source"]])
        _rate_ticks(axes, line.rates)
        few_ticks(axes, y=5)
        heading(axes, title, study.metric_and_unit, x="peak learning rate", room=12, lines=2)
    return figure


def _runs(study: Study, rows: Sequence[Row]) -> list[pd.DataFrame]:
    """The runs of each architecture."""
    runs = study.results.learning_rates()
    return [runs[(runs["architecture"] == row["architecture"]) & (runs["source"] == row["source"])] for row in rows]


def _curve(study: Study, axes: Axes, row: Row, runs: pd.DataFrame, line: Curve, style: Look) -> None:
    if row["good_rates"]:
        axes.axvspan(row["good_low"] / 1.16, row["good_high"] * 1.16, color=BAND, lw=0)
    axes.plot(line.rates, study.worse * line.means, color=style.colour, lw=1.9)
    low, high = axes.get_ylim()
    values = runs[runs["end"] == "complete"]
    inside = values[values["value"].between(low, high)]
    axes.plot(
        inside["rate"],
        inside["value"],
        "o",
        color=style.colour,
        ms=4.6,
        alpha=0.65,
        mew=0,
        rasterized=len(inside) > MOST_MARKS,
    )
    if row["good_rates"]:
        axes.plot(row["best"], row["best_value"], "o", ms=12, mfc="none", mec=INK, mew=1.3)
        side = {line.rates[0]: "left", line.rates[-1]: "right"}.get(row["best"], "center")
        axes.annotate(f"best {short(row['best'])}", (row["best"], 0), xytext=(0, 4), xycoords=("data", "axes fraction"),
                      textcoords="offset pixels", ha=side, va="bottom", fontsize=SMALL, color=INK)  # fmt: skip
    beyond = values.loc[~values["value"].between(low, high), "rate"]
    diverged = runs.loc[runs["end"] == "diverged", "rate"]
    for group in _groups(axes, sorted({*beyond, *diverged})):
        counts = {"✕": int(diverged.isin(group).sum()), "▲": int(beyond.isin(group).sum())}
        text = "\n".join(f"{mark} {count}" for mark, count in counts.items() if count)
        axes.annotate(text, (math.sqrt(group[0] * group[-1]), RAIL), xycoords=("data", "axes fraction"), ha="center",
                      va="center", fontsize=SMALL, color=INK)  # fmt: skip


def _groups(axes: Axes, rates: Sequence[float], room: float = 30) -> list[list[float]]:
    """Rates whose marks would run into each other, together."""
    found: list[list[float]] = []
    for rate in rates:
        at = axes.transData.transform((rate, 1))[0]
        if found and at - axes.transData.transform((found[-1][0], 1))[0] < room:
            found[-1].append(rate)
        else:
            found.append([rate])
    return found


def _limits(study: Study, rows: Sequence[Row], parts: Sequence[pd.DataFrame]) -> tuple[float, float]:
    """One scale for all: every run that completed, but for few that would flatten the rest."""
    values = pd.concat([part.loc[part["end"] == "complete", "value"] for part in parts]).to_numpy(dtype=float)
    if values.size == 0:
        return 0.0, 1.0
    best = float(values.min() if study.worse > 0 else values.max())
    edge = far_away(np.abs(values - best).tolist(), 2 * study.smallest) * 1.001
    near = values[np.abs(values - best) <= edge]
    low, high = float(near.min()), float(near.max())
    room = (high - low) or abs(high) * 0.05 or 1.0
    rail = any(row["diverged"] for row in rows) or len(near) < len(values)
    return low - 0.2 * room, high + (0.24 if rail else 0.08) * room


def _rate_ticks(axes: Axes, rates: Sequence[float]) -> None:
    """The rates themselves where they are few, else round ones."""
    low, high = axes.get_xlim()
    pitch = axes.get_window_extent().width / math.log(high / low)
    gaps = [pitch * math.log(above / below) for below, above in pairwise(rates)]
    if min(gaps, default=math.inf) > 34:
        axes.set_xticks(rates, [short(rate) for rate in rates])
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        log_ticks(axes, "x")
