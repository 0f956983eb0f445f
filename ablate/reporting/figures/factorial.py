"""A factorial design: what each level does on average, and how that depends on the other factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ablate.reporting.factors import level_means, levels_of, looks_of_levels
from ablate.reporting.layout import PAGE, Label, Margins, few_ticks, heading, label_ends, panels, pixels
from ablate.reporting.names import SMALL, short_names, shorten
from ablate.reporting.numbers import TIMES, fixed, interval, plain
from ablate.reporting.palette import GROUND, INK, MUTED, look
from ablate.reporting.study import Study
from ablate.reporting.svg import drawn

CAPTION = (
    "Lines that are not parallel interact. The contrast is the difference of the two differences, with its interval, "
    "simultaneous over all interactions; faint lines are seeds."
)


@drawn
def main_effects(study: Study) -> Figure:
    """A panel a factor: the mean of each level over all cells, on one scale, with a faint line a seed."""
    factors = [entry["name"] for entry in study.plan["factors"] if entry["name"] != study.tasks]
    means = {factor: level_means(study, [factor]) for factor in factors}
    limits = _limits(list(means.values()))
    across = min(5, len(factors))
    width = min(300.0, PAGE / across - 54)
    figure, all_axes = panels(len(factors), across, (width, 170), Margins(50, 4, 44, 30))
    for number, (axes, factor) in enumerate(zip(all_axes, factors, strict=True), start=1):
        levels, looks, frame = levels_of(study, factor), looks_of_levels(study, factor, number), means[factor]
        axes.set(xlim=(-0.35, len(levels) - 0.65), ylim=limits)
        if frame.empty:
            _nothing(axes)
        else:
            at = range(len(levels))
            for row in frame.reindex(columns=levels).to_numpy(dtype=float):
                axes.plot(at, row, color=look(number).colour, lw=0.9, alpha=0.35)
            axes.plot(at, frame.reindex(columns=levels).mean(), color=look(number).colour, lw=2)
            for place, level in enumerate(levels):
                if level not in frame:  # no arm has it
                    continue
                style = looks[level]
                axes.plot(place, frame[level].mean(), style.marker, color=style.colour, ms=style.size(8), mec=GROUND,
                          mew=0.8)  # fmt: skip
        _level_ticks(axes, levels, 0)
        few_ticks(axes, y=5)
        heading(axes, plain(factor), study.metric_and_unit)
    return figure


@drawn
def interactions(study: Study, effects: pd.DataFrame) -> Figure:
    """A panel a pair of factors: one factor across, a line a level of the other; parallel lines do not interact."""
    pairs = list(dict.fromkeys(zip(effects["factor"], effects["other"], strict=True)))
    means = {pair: level_means(study, list(pair)) for pair in pairs}
    limits = _limits(list(means.values()))
    across_page = min(3, len(pairs))
    margins = Margins(48, 125 if across_page == 3 else 200, 62, 44)
    width = min(420.0, PAGE // across_page - margins.left - margins.right)
    figure, all_axes = panels(len(pairs), 3, (width, 168 if across_page == 3 else 210), margins)
    for axes, (factor, other) in zip(all_axes, pairs, strict=True):
        across, lines, frame = levels_of(study, factor), levels_of(study, other), means[factor, other]
        axes.set(xlim=(-0.2, len(across) - 0.8), ylim=limits)
        labels, looks = [], looks_of_levels(study, other)
        if frame.empty:
            _nothing(axes)
        names = short_names([f"{plain(other)}={line}" for line in lines], 0.8 * margins.right)
        for number, line in enumerate(lines if not frame.empty else []):
            style = looks[line]
            at = [place for place, level in enumerate(across) if (level, line) in frame]
            if not at:  # no arm has it with any level of the other
                continue
            values = frame[[(across[place], line) for place in at]].to_numpy(dtype=float)
            for row in values:
                axes.plot(at, row, color=style.colour, lw=0.8, alpha=0.3)
            axes.plot(at, values.mean(axis=0), color=style.colour, lw=2, marker=style.marker,
                      ms=style.size(6.5), mec=GROUND, mew=0.8, dashes=style.dash or (None, None))  # fmt: skip
            labels.append(Label(names[number], float(values[:, -1].mean()), style))
        _level_ticks(axes, across, 40)
        few_ticks(axes, y=5)
        label_ends(axes, labels)
        mine = effects[(effects["factor"] == factor) & (effects["other"] == other)]
        title = f"{plain(factor)} {TIMES} {plain(other)}"
        heading(axes, title, _contrasts(study, mine), shorten(plain(factor), width), room=110)
    return figure


def _contrasts(study: Study, rows: pd.DataFrame) -> str:
    """The pair's largest contrast with its interval, and how many more there are."""
    if not rows["effect"].notna().any():
        return "contrast: cannot be computed"
    row = rows.iloc[int(rows["effect"].abs().argmax())]
    effect, low, high = (fixed(row[key], study.places, sign=True) for key in ("effect", "low", "high"))
    more = f"  (largest of {len(rows)})" if len(rows) > 1 else ""
    word = "large interaction" if bool(row["large"]) else "interaction"
    return f"{word} {effect} {interval(low, high)}{more}\n{study.metric_and_unit}"


def _limits(frames: Sequence[pd.DataFrame]) -> tuple[float, float]:
    values = np.concatenate([frame.to_numpy(dtype=float).ravel() for frame in frames]) if frames else np.empty(0)
    if values.size == 0:
        return 0.0, 1.0
    room = 0.08 * (values.max() - values.min()) or 0.05 * (abs(values.max()) or 1)
    return float(values.min() - room), float(values.max() + room)


def _level_ticks(axes: Axes, levels: Sequence[str], side: float) -> None:
    """Name the levels, each in the room up to its neighbours, and up to so many pixels beside the panel."""
    low, high = axes.get_xlim()
    step = pixels(axes)[0] / (high - low)
    room = min(0.92 * step, 2 * (-low * step + side))
    axes.set_xticks(range(len(levels)), short_names([plain(level) for level in levels], room))
    axes.tick_params(axis="x", labelcolor=INK)
    axes.grid(axis="x", visible=False)


def _nothing(axes: Axes) -> None:
    axes.text(0.5, 0.5, "cells are missing", transform=axes.transAxes, ha="center", color=MUTED, fontsize=SMALL)
