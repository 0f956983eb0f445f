"""Several tasks: every effect at each of them, and what ten or more come to together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ablate.reporting.layout import PAGE, Margins, few_ticks, heading, panels
from ablate.reporting.names import SMALL, headings, short_names, text_width
from ablate.reporting.numbers import plain
from ablate.reporting.palette import BAND, BASELINE, GROUND, INK, MUTED, Look, look
from ablate.reporting.study import Study
from ablate.reporting.svg import drawn

MOST = 8
"""So many changes, or architectures, are drawn; of more, the first."""
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


def caption(frame: pd.DataFrame) -> str:
    """What the figure of effects shows, and what it leaves out."""
    names = frame["name"].nunique()
    cut = f" The first {MOST} of {names} changes; the table has all." if names > MOST else ""
    scale = "All panels share one scale." if frame["unit"].nunique() < 2 else "Panels of one unit share one scale."
    return (
        "The effect of each change within each task, with its simultaneous 95% interval; the band is the smallest "
        f"effect that matters. {scale}{cut}"
    )


def looks_of(*frames: pd.DataFrame) -> Mapping[str, Look]:
    """How each change and each architecture is drawn, alike in all figures; the baseline has its own look."""
    names = dict.fromkeys(name for frame in frames for name in frame["name"] if name != "baseline")
    return {"baseline": look(0)} | {name: look(place) for place, name in enumerate(names, start=1)}


@drawn
def by_task(study: Study, frame: pd.DataFrame, looks: Mapping[str, Look]) -> Figure:
    """A panel a task: a row a change, its effect and interval; panels with one unit share one scale."""
    names, tasks = list(dict.fromkeys(frame["name"]))[:MOST], list(dict.fromkeys(frame["task"]))
    frame = frame[frame["name"].isin(names)]
    side = min(240.0, max(text_width(plain(name), SMALL) for name in names) + 14)
    across = min(4, len(tasks))
    width = min(320.0, (PAGE - side) / across - 26)
    titles, long = headings([plain(task) for task in tasks], width + 8, 2)
    margins = Margins(10, 16, 60 if long else 44, 34)
    figure, all_axes = panels(len(tasks), across, (width, 22.0 * len(names) + 8), margins, side=side)
    shown = short_names([plain(name) for name in names], side - 10, SMALL)
    for place, (axes, task, title) in enumerate(zip(all_axes, tasks, titles, strict=True)):
        own = frame[frame["task"] == task]
        unit = own["unit"].iloc[0]
        axes.set(ylim=(len(names) - 0.5, -0.5), xlim=_limits(study, frame[frame["unit"] == unit]))
        axes.axvspan(-study.smallest, study.smallest, color=BAND, lw=0)
        axes.axvline(0, color=BASELINE, lw=1.4)
        for row in own.to_dict("records"):
            _interval(axes, names.index(row["name"]), row["effect"], row["low"], row["high"],
                      looks[row["name"]])  # fmt: skip
        axes.set_yticks([])
        few_ticks(axes, x=4)
        if place % across == 0:
            for at, name in enumerate(shown):
                axes.annotate(name, (0, at), xytext=(-8, 0), xycoords=("axes fraction", "data"), ha="right",
                              textcoords="offset pixels", va="center", fontsize=SMALL, color=INK)  # fmt: skip
        heading(axes, title, f"Δ {plain(study.metric)}{f' ({plain(unit)})' if unit else ''}", room=8, lines=2)
    return figure


@drawn
def summary(frame: pd.DataFrame, looks: Mapping[str, Look]) -> Figure:
    """A row an architecture: its interquartile mean between the tasks' floors and ceilings, with its interval."""
    names = list(frame["name"])[:MOST]
    side = min(300.0, max(text_width(plain(name), SMALL) for name in names) + 24)
    figure, (axes,) = panels(1, 1, (520, 26.0 * len(names) + 8), Margins(side, 16, 30, 44))
    shown = short_names([plain(name) for name in names], side - 14, SMALL)
    drawn_rows = frame.iloc[: len(names)]
    for at, row in enumerate(drawn_rows.to_dict("records")):
        _interval(axes, at, row["iqm"], row["low"], row["high"], looks[row["name"]])
    axes.set_yticks(range(len(names)), shown)
    axes.tick_params(axis="y", labelcolor=INK, length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    low, high = float(drawn_rows[["iqm", "low"]].min().min()), float(drawn_rows[["iqm", "high"]].max().max())
    room = 0.06 * (high - low) or 0.05
    axes.set_xlim(low - room, high + room)
    few_ticks(axes, x=6)
    heading(axes, "", "Interquartile mean of the score", "score: 0 is a task's floor, 1 its ceiling")
    return figure


@drawn
def profiles(frame: pd.DataFrame, looks: Mapping[str, Look]) -> Figure:
    """A line an architecture: the share of its runs whose score is above each threshold, with a pointwise band."""
    names = list(dict.fromkeys(frame["name"]))[:MOST]
    room = min(300.0, max(text_width(plain(name), SMALL) for name in names) + 70)
    figure, (axes,) = panels(1, 1, (min(620.0, PAGE - room - 60), 260), Margins(46, room, 30, 44))
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xticks=_TICKS, yticks=_TICKS)
    shown = dict(zip(names, short_names([plain(name) for name in names], room - 62, SMALL), strict=True))
    for name in sorted(names, key=lambda name: name == "baseline"):
        own, style = frame[frame["name"] == name], looks[name]
        at = own["threshold"].to_numpy(dtype=float)
        if own["low"].notna().all():
            low, high = (own[key].to_numpy(dtype=float) for key in ("low", "high"))
            axes.fill_between(at, low, high, step="post", color=style.colour, alpha=0.13, lw=0)
        axes.step(at, own["share"], where="post", color=style.colour, lw=1.8, dashes=style.dash or (None, None))
    # All lines end at nothing, so their names stand at the top, the highest line first.
    means = frame.groupby("name", sort=False)["share"].mean()
    for place, name in enumerate(sorted(names, key=lambda name: -means[name])):
        height, style = 0.98 - 0.075 * place, looks[name]
        axes.plot([1.03, 1.075], [height, height], transform=axes.transAxes, clip_on=False, color=style.colour, lw=1.8,
                  dashes=style.dash or (None, None))  # fmt: skip
        axes.annotate(shown[name], (1.09, height), xycoords="axes fraction", va="center", fontsize=SMALL, color=INK)
    heading(axes, "", "Share of runs with a higher score", "score: 0 is a task's floor, 1 its ceiling")
    return figure


def _interval(axes: Axes, at: float, middle: float, low: float, high: float, style: Look) -> None:
    if not np.isfinite(middle):
        axes.annotate("not comparable", (0.02, at), xycoords=("axes fraction", "data"), va="center", fontsize=SMALL,
                      color=MUTED)  # fmt: skip
        return
    if np.isfinite(low) and np.isfinite(high):
        axes.plot([low, high], [at, at], color=style.colour, lw=2.2, solid_capstyle="butt")
    axes.plot(middle, at, style.marker, color=style.colour, ms=style.size(8), mec=GROUND, mew=0.8)


def _limits(study: Study, frame: pd.DataFrame) -> tuple[float, float]:
    values = frame[["effect", "low", "high"]].to_numpy(dtype=float).ravel()
    known = [*values[np.isfinite(values)], -1.4 * study.smallest, 1.4 * study.smallest]
    room = 0.05 * (max(known) - min(known))
    return float(min(known) - room), float(max(known) + room)
