"""The forest plot: every effect with its interval, its seeds, and the band of what does not matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ablate.reporting.layout import Margins, beside, few_ticks, heading, panels
from ablate.reporting.names import SMALL, short_names, text_width
from ablate.reporting.palette import BAND, BASELINE, GROUND, INK, MUTED, Look
from ablate.reporting.study import Study
from ablate.reporting.svg import drawn


@dataclass(frozen=True)
class Row:
    """One effect of the forest plot; what cannot be computed is None."""

    name: str
    look: Look
    effect: float | None
    low: float | None
    high: float | None
    seeds: Sequence[float] = ()
    """The difference of each seed that finished."""
    diverged: int = 0
    indent: bool = False
    """Whether it refines the row above, and is drawn smaller."""
    pale: bool = False
    """Whether it is not comparable, so that its numbers are not to be believed."""
    text: str = ""
    """The effect and its interval as the table has them."""

    @property
    def reach(self) -> float:
        """How far from zero it reaches."""
        return max((abs(v) for v in (self.effect, self.low, self.high, *self.seeds) if v is not None), default=0.0)


def far_away(reaches: Sequence[float], least: float, one_in: int = 2) -> float:
    """How far an axis has to reach so that few large effects do not squeeze all others.

    Effects that are three times as large as the next smaller one, and are few enough, are left beyond.

    Args:
        reaches: how far from zero each effect reaches.
        least: nothing below this counts as small.
        one_in: no more than one effect in so many is left beyond.
    """
    known = sorted(reach for reach in reaches if math.isfinite(reach))
    for index in range(len(known) - 1, 0, -1):
        below = max(known[index - 1], least)
        if known[index] > 3 * below and len(known) - index <= len(known) // one_in:
            return below
    return max([*known, least])


@drawn
def forest(study: Study, rows: Sequence[Row], *, width: float = 544) -> Figure:
    """Effects on the objective: interval, mean, a faint dot a seed, diverged seeds on the right rail."""
    pitch = 30 if len(rows) <= 12 else 23
    names = min(190.0, max(text_width(name, 12) for name in (*(row.name for row in rows), "baseline")) + 16)
    texts = max([text_width(row.text, SMALL + 0.5) for row in rows] + [60.0])
    rail = 38.0 if any(row.diverged for row in rows) else 8.0
    inside = max(150.0, width - names - texts - rail - 14)
    figure, (axes,) = panels(1, 1, (inside, pitch * (len(rows) + 1)), Margins(names, width - names - inside, 30, 54))
    axes.set_ylim(len(rows) + 0.5, -0.5)
    axes.set_xlim(*_limits(study, rows))
    few_ticks(axes, x=5)
    axes.set_yticks([])
    axes.axvspan(-study.smallest, study.smallest, color=BAND, lw=0)
    axes.axvline(0, color=BASELINE, lw=1.4)
    dots = not study.leaves_out("seed marks")
    shown = [short_names([row.name for row in rows], names - 14, size) for size in (12, SMALL)]
    for place, row in enumerate(rows):
        _row(axes, place, row, dots)
        size = SMALL if row.indent else 12.0
        colour = MUTED if row.indent else INK
        beside(axes, place, shown[row.indent][place], shift=-12, fontsize=size, color=colour)
        beside(axes, place, row.text, shift=rail, fontsize=SMALL + 0.5, color=MUTED if row.pale else colour)
        if row.diverged:
            beside(axes, place, f"✕ {row.diverged}", shift=5, fontsize=12, color=row.look.colour)
    axes.plot(0, len(rows), "o", color=BASELINE, ms=7)
    beside(axes, len(rows), "reference" if study.factorial else "baseline", shift=-12, fontsize=12, color=INK)
    _directions(axes, study)
    heading(axes, f"Δ {study.metric_and_unit}", room=width - names - inside - 8)
    return figure


def _limits(study: Study, rows: Sequence[Row]) -> tuple[float, float]:
    """The axis: all that is not too far away, the band of what does not matter, and room for arrows where needed."""
    edge = _edge(study, rows)
    near = [row for row in rows if row.reach < edge]
    values = [v for row in near for v in (row.low, row.high, row.effect, *row.seeds) if v is not None]
    low, high = min([-1.5 * study.smallest, *values]), max([1.5 * study.smallest, *values])
    far = [row.effect for row in rows if row.reach >= edge and row.effect is not None]
    room = 0.06 * (high - low)
    return low - room * (4 if min(far, default=0) < 0 else 1), high + room * (4 if max(far, default=0) > 0 else 1)


class Shown(NamedTuple):
    """What a forest plot has of its rows, for its caption."""

    intervals: bool
    dots: bool
    arrows: bool
    """Whether an effect lies beyond the axis: an arrow is all that is drawn of it and of its interval."""
    cut_intervals: bool
    cut_dots: bool


def shown(study: Study, rows: Sequence[Row]) -> Shown:
    """What is drawn of these rows, and what lies beyond the axis."""
    low, high = _limits(study, rows)
    seeds = [seed for row in rows if not row.indent for seed in row.seeds if not study.leaves_out("seed marks")]
    inside = [row for row in rows if row.effect is not None and low < row.effect < high]
    bounds = [bound for row in inside for bound in (row.low, row.high) if row.low is not None and bound is not None]
    return Shown(
        intervals=bool(bounds),
        dots=any(low < seed < high for seed in seeds),
        arrows=any(row.effect is not None and row not in inside for row in rows),
        cut_intervals=any(not low < bound < high for bound in bounds),
        cut_dots=any(not low < seed < high for seed in seeds),
    )


def _edge(study: Study, rows: Sequence[Row]) -> float:
    return far_away([row.reach for row in rows], 2 * study.smallest, one_in=4) * 1.12


def _row(axes: Axes, place: int, row: Row, dots: bool) -> None:
    """One effect: its seeds, its interval and its mean; an arrow where they are beyond the axis."""
    low, high = axes.get_xlim()
    colour, thick = row.look.colour, 1.6 if row.indent else 2.2
    alpha = 0.6 if row.pale else 1.0
    seeds = [seed for seed in row.seeds if low < seed < high and dots and not row.indent]
    axes.plot(seeds, [place + 0.27] * len(seeds), "o", color=colour, ms=4.4, alpha=0.45, mew=0)
    if row.effect is not None and not low < row.effect < high:
        side = 1 if row.effect > 0 else 0
        axes.annotate("", (side, place), xytext=(-34 if side else 34, 0), xycoords=("axes fraction", "data"),
                      textcoords="offset pixels", annotation_clip=False,
                      arrowprops={"arrowstyle": "-|>", "color": colour, "alpha": alpha, "lw": thick, "shrinkA": 0,
                                  "shrinkB": 0, "mutation_scale": 15})  # fmt: skip
        return
    if row.low is not None and row.high is not None:
        axes.plot([max(row.low, low), min(row.high, high)], [place, place], color=colour, lw=thick, alpha=alpha)
        for bound, edge, beyond_it in ((row.low, low, "<"), (row.high, high, ">")):
            if low < bound < high:
                axes.plot([bound, bound], [place - 0.17, place + 0.17], color=colour, lw=thick, alpha=alpha)
            else:
                axes.plot(edge, place, beyond_it, color=colour, ms=6, mew=0, alpha=alpha, clip_on=False)
    if row.effect is not None:
        size = row.look.size(6.5 if row.indent else 8.5)
        axes.plot(row.effect, place, row.look.marker, color=colour, ms=size, mec=GROUND, mew=0.8, alpha=alpha)


def _directions(axes: Axes, study: Study) -> None:
    """Say below the axis which way is better."""
    texts = ("← better", "worse →") if study.worse > 0 else ("← worse", "better →")
    for text, side, ha in ((texts[0], 0, "left"), (texts[1], 1, "right")):
        axes.annotate(text, (side, 0), xytext=(0, -33), xycoords="axes fraction", textcoords="offset pixels",
                      ha=ha, va="baseline", fontsize=SMALL, color=MUTED)  # fmt: skip
    axes.annotate(f"shaded: within ±{study.smallest:g}, too small to matter", (0.5, 0), xytext=(0, -48),
                  xycoords="axes fraction", textcoords="offset pixels", ha="center", va="baseline", fontsize=SMALL,
                  color=MUTED)  # fmt: skip
