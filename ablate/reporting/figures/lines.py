"""Values by arm along an axis: as lines while they can be told apart, as strips of colour beyond that."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from ablate.reporting.layout import PAGE, Label, Margins, few_ticks, label_ends, log_ticks, panels, power
from ablate.reporting.names import SMALL, short_names, text_width
from ablate.reporting.numbers import MINUS
from ablate.reporting.palette import GROUND, INK, MUTED, SCALE
from ablate.reporting.study import Arm

MOST_LINES = 8
"""With more arms than this, lines are a tangle and strips of colour take their place."""
LABEL_ROOM = 118.0
"""Pixels right of a panel that hold the arms' names; more where they are long and there is room."""


_MARK, _SURE = 16.0, 0.92
"""Pixels that a mark takes, and the share of the room that holds the names however letters are rounded to pixels."""


def label_room(arms: Sequence[Arm], most: float) -> float:
    """Pixels that the arms' names need right of a panel: all of the longest name, as far as there is room."""
    widest = max((text_width(arm.label) for arm in arms), default=0.0)
    return min(most, max(LABEL_ROOM, (widest + _MARK) / _SURE + 1))


def names_beside(arms: Sequence[Arm], room: float) -> list[str]:
    """The arms' names as they fit into the room right of a panel, beside their marks; no two look alike."""
    return short_names([arm.label for arm in arms], _SURE * room - _MARK)


def strip_panels(count: int, arms: Sequence[Arm]) -> tuple[Figure, list[Axes]]:
    """Panels for strips, two side by side; the arms' names stand left of both."""
    names = min(360.0, max(text_width(arm.label) for arm in arms) + 16)
    margins = Margins(12, 12)
    return panels(count, 2, ((PAGE - names) / 2 - 24, 15.0 * len(arms)), margins, side=names)


def name_rows(axes: Axes, arms: Sequence[Arm]) -> None:
    """Name the rows of a panel at the left edge of its figure, and of no other."""
    axes.set_yticks(range(len(arms)), [""] * len(arms))
    left = axes.get_window_extent().x0
    if left < PAGE / 2:
        axes.set_yticklabels(short_names([arm.label for arm in arms], left - 8))


def lines(
    axes: Axes, frame: pd.DataFrame, arms: Sequence[Arm], *, x: str = "step", log: bool = False, marks: bool = False,
    span: pd.Series[float] | None = None, share: bool = False, room: float = LABEL_ROOM,
) -> None:  # fmt: skip
    """One line an arm (colour and dash), the baseline on top, each named at its end.

    Args:
        axes: where.
        frame: rows of arm, ``x`` and value, one for each point.
        arms: those to draw, in order.
        x: the column of the x-axis.
        log: whether the y-axis is logarithmic.
        marks: whether each point has its arm's marker.
        span: values that a logarithmic axis has room for, where they are more than those drawn.
        share: whether the values are shares, whose axis starts at zero.
        room: pixels right of the panel that hold the names.
    """
    drawn = [arm for arm in arms if (frame["arm"] == arm.id).any()]
    if not drawn:
        axes.text(0.5, 0.5, "no readings", transform=axes.transAxes, ha="center", color=MUTED)
        axes.set(xticks=[], yticks=[])
        return
    sns.lineplot(
        frame.assign(**{x: frame[x].astype(float)}), x=x, y="value", ax=axes, estimator=None, errorbar=None,
        sort=True, legend=False, linewidth=1.8, markeredgecolor=GROUND, markeredgewidth=0.7, markersize=6,
        hue="arm", hue_order=[arm.id for arm in drawn], palette={arm.id: arm.look.colour for arm in drawn},
        style="arm", style_order=[arm.id for arm in drawn],
        dashes={arm.id: arm.look.dash or "" for arm in drawn},
        markers={arm.id: arm.look.marker for arm in drawn} if marks else False,
    )  # fmt: skip
    axes.set(xlabel="", ylabel="")
    if log:
        set_log(axes, frame["value"] if span is None else span)
    if share:
        axes.set_ylim(0, max(0.1, 1.12 * float(frame["value"].max())))
    last = frame.sort_values(x).groupby("arm")["value"].last()
    names = dict(zip((arm.id for arm in arms), names_beside(arms, room), strict=True))
    label_ends(axes, [Label(names[arm.id], float(last[arm.id]), arm.look) for arm in drawn])


def set_log(axes: Axes, values: pd.Series[float]) -> None:
    """A logarithmic y-axis that spans the values, and at least a factor of three."""
    low, high = float(values.min()), float(values.max())
    room = max(1.12, (high / low) ** 0.05, (3 * low / high) ** 0.5)
    axes.set_yscale("log")
    axes.set_ylim(low / room, high * room)
    log_ticks(axes)


def strips(
    axes: Axes, frame: pd.DataFrame, arms: Sequence[Arm], *, x: str = "step", log: bool = False,
    span: pd.Series[float] | None = None, share: bool = False, even: bool = False,
) -> None:  # fmt: skip
    """One row an arm, coloured by its values along ``x``.

    Args:
        axes: where.
        frame: rows of arm, ``x`` and value, one for each cell.
        arms: those to draw, in order.
        x: the column of the x-axis; each of its values is a column of cells.
        log: whether colours follow the logarithm.
        span: values that the scale has room for, where they are more than those drawn.
        share: whether the values are shares, whose scale starts at zero.
        even: whether the columns are evenly spaced, so that the axis can be one of numbers.
    """
    wide = frame.pivot(index="arm", columns=x, values="value").reindex([arm.id for arm in arms])
    values = wide.to_numpy(dtype=float)
    finite = values[np.isfinite(values)] if span is None else span.to_numpy(dtype=float)
    if finite.size == 0:
        axes.text(0.5, 0.5, "no readings", transform=axes.transAxes, ha="center", color=MUTED)
        axes.set(xticks=[], yticks=[])
        return
    low, high = float(finite.min()), float(finite.max())
    low, high = (0.0, max(0.1, high)) if share else (low, high)
    high = high if high > low else low + (abs(low) or 1) * 1e-6
    norm = LogNorm(low, high) if log else Normalize(low, high)
    raster(axes, values, norm)
    columns = [float(column) for column in wide.columns]
    if even and len(columns) > 1:
        half = (columns[1] - columns[0]) / 2
        axes.images[0].set_extent((columns[0] - half, columns[-1] + half, len(arms) - 0.5, -0.5))
        few_ticks(axes, x=6)
    else:
        column_ticks(axes, columns)
    name_rows(axes, arms)
    # The scale is one line of text below the strips: a colour bar for every strip would take more room than the strip.
    axes.annotate(f"dark {power(float(f'{low:.2g}'))}  to  bright {power(float(f'{high:.2g}'))}", (1, 0),
                  xytext=(0, -33), xycoords="axes fraction", textcoords="offset pixels", ha="right", va="baseline",
                  fontsize=SMALL - 0.5, color=MUTED)  # fmt: skip


def raster(axes: Axes, values: npt.NDArray[np.float64], norm: Normalize, *, upward: bool = False) -> None:
    """Cells of colour, one pixel each; what is missing stays open."""
    axes.imshow(
        values, norm=norm, cmap=mpl.colormaps[SCALE], aspect="auto", interpolation="none",
        origin="lower" if upward else "upper",
    )  # fmt: skip
    axes.grid(False)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", length=0)


def column_ticks(axes: Axes, columns: Sequence[float], room: float = 30) -> None:
    """Name as many of a raster's columns as have room, the first and the last among them."""
    width = axes.get_window_extent().width / max(1, len(columns))
    last = len(columns) - 1
    chosen = [0]
    for index in range(1, last):
        if (index - chosen[-1]) * width >= room and (last - index) * width >= room:
            chosen.append(index)
    chosen += [last] if last else []
    axes.set_xticks(chosen, [f"{columns[index]:g}" for index in chosen])


def colour_bar(figure: Figure, norm: Normalize, caption: str, *, width: float = 240, left: float = 46) -> None:
    """A horizontal scale at the foot of a figure, with what it shows and the unit beside it."""
    across, up = figure.get_size_inches() * 72
    axes = figure.add_axes((left / across, 20 / up, width / across, 11 / up))
    axes.imshow(np.linspace(0, 1, 64)[None, :], cmap=mpl.colormaps[SCALE], aspect="auto", interpolation="none",
                extent=(0, 1, 0, 1))  # fmt: skip
    axes.grid(False)
    axes.set_yticks([])
    axes.spines["bottom"].set_visible(False)
    low, high = float(norm.vmin or 0), float(norm.vmax or 1)
    stride = max(1, round((high - low) / 5))
    marks = [float(mark) for mark in np.arange(np.ceil(low), np.floor(high) + 1, stride)]
    if len(marks) < 2:
        marks = [low, high]
    names = [f"{mark:.2g}".replace("-", MINUS) for mark in marks]
    axes.set_xticks([(mark - low) / (high - low) for mark in marks], names)
    axes.annotate(caption, (1, 0.5), xytext=(22, 0), xycoords="axes fraction", textcoords="offset pixels",
                  ha="left", va="center", fontsize=SMALL, color=INK)  # fmt: skip
