"""Panels of a known size in pixels, and labels that keep out of each other's way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from ablate.reporting.names import SMALL, in_heading
from ablate.reporting.numbers import MINUS
from ablate.reporting.palette import GLYPHS, INK, MUTED, Look
from ablate.reporting.svg import Panelled

DOT = 72
"""Pixels an inch, in figures as :mod:`ablate.reporting.svg` draws them."""
PAGE = 1120
"""The widest figure that the page takes, in pixels."""


class Margins(NamedTuple):
    """Pixels around each panel that hold its title, ticks and labels."""

    left: float = 46
    right: float = 14
    top: float = 44
    bottom: float = 38


def panels(
    count: int,
    columns: int,
    size: tuple[float, float],
    margins: Margins | None = None,
    *,
    foot: float = 0,
    side: float = 0,
) -> tuple[Figure, list[Axes]]:
    """A figure of equal panels, row by row; ``size`` is that of a panel's inside, in pixels.

    ``foot`` leaves room below all panels, as for a colour bar; ``side`` leaves room left of all, as for names.
    """
    margins = margins or Margins()
    columns = max(1, min(columns, count))
    rows = math.ceil(count / columns)
    cell = (size[0] + margins.left + margins.right, size[1] + margins.top + margins.bottom)
    width, height = side + columns * cell[0], rows * cell[1] + foot
    figure = Panelled(figsize=(width / DOT, height / DOT))
    axes = []
    for index in range(count):
        row, column = divmod(index, columns)
        left = side + column * cell[0] + margins.left
        bottom = height - (row + 1) * cell[1] + margins.bottom
        axes.append(figure.add_axes((left / width, bottom / height, size[0] / width, size[1] / height)))
    return figure, axes


def pixels(axes: Axes) -> tuple[float, float]:
    """Width and height of a panel's inside."""
    box = axes.get_window_extent()
    return float(box.width), float(box.height)


def heading(
    axes: Axes,
    title: str,
    below: str = "",
    x: str = "",
    *,
    x_left: bool = False,
    room: float = 6,
    lines: int = 1,
) -> None:
    """Name a panel: its title at the top left, below it what the y-axis shows and its unit, and the x-axis's label.

    The title is shortened to ``lines`` lines of the panel's width and ``room`` pixels more. The x-axis's label is
    centred, or at the left where something else stands at the right.
    """
    lift = 8 + 13.5 * (below.count("\n") + 1) if below else 8
    if title:
        title = in_heading(title, pixels(axes)[0] + room, lines)
        axes.annotate(title, (0, 1), xytext=(0, lift), xycoords="axes fraction", textcoords="offset pixels",
                      ha="left", va="baseline", fontsize=12.5, fontweight="bold", color=INK)  # fmt: skip
    if below:
        axes.annotate(below, (0, 1), xytext=(0, 6), xycoords="axes fraction", textcoords="offset pixels",
                      ha="left", va="baseline", fontsize=SMALL, color=MUTED)  # fmt: skip
    if x:
        axes.annotate(x, (0 if x_left else 0.5, 0), xytext=(0, -33), xycoords="axes fraction",
                      textcoords="offset pixels", ha="left" if x_left else "center", va="baseline",
                      fontsize=SMALL, color=MUTED)  # fmt: skip


def beside(axes: Axes, place: float, text: str, *, shift: float, fontsize: float, color: str) -> None:
    """A text left of the panel (a negative shift) or right of it, at the height of a row."""
    axes.annotate(text, (0 if shift < 0 else 1, place), xytext=(shift, 0), xycoords=("axes fraction", "data"),
                  textcoords="offset pixels", ha="right" if shift < 0 else "left", va="center", fontsize=fontsize,
                  color=color)  # fmt: skip


class Label(NamedTuple):
    """A name to be written beside the end of a line."""

    text: str
    value: float
    look: Look


def label_ends(axes: Axes, labels: Iterable[Label], gap: float = 13.5) -> None:
    """Write each label right of the panel at the height of its value, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    _, height = pixels(axes)
    placed = []
    for label in labels:
        at = axes.transData.transform((0, label.value))[1] - axes.get_window_extent().y0
        if math.isfinite(at):
            placed.append((min(max(at, 0.0), height), label))
    placed.sort(key=lambda pair: pair[0])
    for wanted, (at, label) in zip(spread([at for at, _ in placed], gap, -8, height + 8), placed, strict=True):
        if abs(wanted - at) > 3:
            axes.annotate("", (1, at / height), xytext=(8, wanted - at), xycoords="axes fraction",
                          textcoords="offset pixels", annotation_clip=False,
                          arrowprops={"arrowstyle": "-", "color": label.look.colour, "lw": 0.8, "shrinkA": 0,
                                      "shrinkB": 0, "alpha": 0.8})  # fmt: skip
        # A mark in the arm's colour before a name in the page's: the colours are too faint for small letters.
        axes.annotate(GLYPHS[label.look.marker], (1, wanted / height), xytext=(9, 0), xycoords="axes fraction",
                      textcoords="offset pixels", ha="left", va="center", fontsize=9,
                      color=label.look.colour)  # fmt: skip
        axes.annotate(label.text, (1, wanted / height), xytext=(20, 0), xycoords="axes fraction",
                      textcoords="offset pixels", ha="left", va="center", fontsize=SMALL, color=INK)  # fmt: skip
    axes.set_ylim(low, high)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions close to the wanted ones (sorted), at least ``gap`` apart and inside the bounds if they fit at all."""
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(1, len(wanted) - 1)) if len(wanted) > 1 else gap
    # Groups of labels that touch stand around the mean of what they want.
    groups: list[list[float]] = []
    for at in wanted:
        groups.append([at])
        while len(groups) > 1 and _start(groups[-1], gap, low, high) < _end(groups[-2], gap, low, high) + gap - 1e-9:
            last = groups.pop()
            groups[-1].extend(last)
    return [_start(group, gap, low, high) + index * gap for group in groups for index in range(len(group))]


def _start(group: Sequence[float], gap: float, low: float, high: float) -> float:
    length = (len(group) - 1) * gap
    return min(max(sum(group) / len(group) - length / 2, low), high - length)


def _end(group: Sequence[float], gap: float, low: float, high: float) -> float:
    return _start(group, gap, low, high) + (len(group) - 1) * gap


def few_ticks(axes: Axes, x: int | None = None, y: int | None = None) -> None:
    """At most so many round ticks on an axis."""
    if x:
        axes.xaxis.set_major_locator(MaxNLocator(x, steps=[1, 2, 2.5, 5, 10]))
    if y:
        axes.yaxis.set_major_locator(MaxNLocator(y, steps=[1, 2, 2.5, 5, 10]))


def log_ticks(axes: Axes, which: str = "y", most: int = 6) -> None:
    """Powers of ten (1, 2 and 5 times them where the range is short), written as plain text."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    low, high = sorted(axes.get_ylim() if which == "y" else axes.get_xlim())
    axis.set_major_locator(FixedLocator(log_places(low, high, most)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: power(value)))


def log_places(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two positive ones, evenly spread on a log scale."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    decades = list(range(first, last + 1))
    if len(decades) >= 3:
        stride = math.ceil(len(decades) / most)
        return [10.0**power for power in decades if (power - decades[-1]) % stride == 0]
    fine = [factor * 10.0**power for power in range(first - 1, last + 1) for factor in (1, 2, 5)]
    inside = [value for value in fine if low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9)]
    return inside if len(inside) >= 2 else [float(f"{value:.2g}") for value in (low, math.sqrt(low * high), high)]


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(value: float) -> str:
    """A number of any size as short text: 0.02, 500, 10⁻⁵."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:g}".replace("-", MINUS)
    exponent = math.floor(math.log10(abs(value)) + 1e-9)
    factor = value / 10.0**exponent
    lead = "" if math.isclose(factor, 1, rel_tol=1e-6) else f"{factor:.2g}·"
    return f"{lead}10{str(exponent).translate(_SUPERSCRIPT)}"
