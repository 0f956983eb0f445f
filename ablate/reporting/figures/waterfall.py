"""A waterfall: effects that follow on one another, each from where the last one ends, and what they come to."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ablate.reporting.layout import Margins, beside, few_ticks, heading, panels
from ablate.reporting.names import SMALL, headings, short_names, shorten, text_width
from ablate.reporting.palette import BAND, BASELINE, GROUND, INK, MUTED, Look
from ablate.reporting.study import Study
from ablate.reporting.svg import drawn

HALF = 0.27
"""Half the height of a bar, in rows."""
SURE = 0.92
"""The share of a text's room that it may be measured to take, however its letters are rounded to pixels."""
OUTLINE: dict[str, Any] = {"color": "none", "ec": INK, "lw": 1.2}
"""How a bar is drawn that is no arm's and no factor's."""


@dataclass(frozen=True)
class Bar:
    """One effect: where it begins, how far it goes, and its interval; what cannot be computed is None."""

    name: str
    look: Look | None
    """None for a sum, which is no arm or factor and has an outline alone."""
    effect: float | None
    low: float | None
    high: float | None
    text: str
    """The effect and its interval as the table has them, or why there is none."""
    start: float = 0.0

    @property
    def end(self) -> float:
        """Where it ends."""
        return self.start + (self.effect or 0.0)

    @property
    def reach(self) -> tuple[float, float]:
        """The smallest and the largest value that it takes up, with its interval."""
        ends = [self.start, self.end, *(self.start + bound for bound in (self.low, self.high) if bound is not None)]
        return min(ends), max(ends)


@dataclass(frozen=True)
class Fall:
    """The bars of one panel, from top to bottom."""

    bars: Sequence[Bar]
    title: str = ""
    shaded: int | None = None
    """From this bar on, the smallest effect that matters is shaded around where it ends; None for nowhere."""

    @property
    def middle(self) -> float | None:
        """The value that the shade is around."""
        bar = None if self.shaded is None else self.bars[self.shaded]
        return None if bar is None or bar.effect is None else bar.end


@drawn
def waterfall(study: Study, falls: Sequence[Fall], label: str, *, width: float = 760) -> Figure:
    """A panel a waterfall, all on one scale; two side by side where there are more."""
    rows = max(len(fall.bars) for fall in falls)
    columns = min(2, len(falls))
    width = width if columns == 1 else 556.0
    every = [bar for fall in falls for bar in fall.bars]
    names = min(0.3 * width, max(text_width(bar.name, 12) for bar in every) + 16)
    texts = min(0.42 * width, max(text_width(bar.text, SMALL + 0.5) for bar in every) / SURE + 16)
    inside = width - names - texts
    titles, long = headings([fall.title for fall in falls], width - names, 2)
    top = (62.0 if long else 48.0) if any(titles) else 30.0
    figure, all_axes = panels(len(falls), columns, (inside, 28 * rows), Margins(names, texts, top, 50))
    limits = _limits(study, falls)
    for axes, fall, title in zip(all_axes, falls, titles, strict=True):
        axes.set(xlim=limits, ylim=(rows - 0.5, -0.5), yticks=[])
        few_ticks(axes, x=5)
        _bars(axes, study, fall)
        shown = short_names([bar.name for bar in fall.bars], names - 14, 12)
        for place, (bar, name) in enumerate(zip(fall.bars, shown, strict=True)):
            beside(axes, place, name, shift=-12, fontsize=12, color=INK)
            beside(
                axes,
                place,
                shorten(bar.text, SURE * (texts - 16), SMALL + 0.5),
                shift=10,
                fontsize=SMALL + 0.5,
                color=INK,
            )
        heading(axes, title, label, room=texts - 8, lines=2)
        for text, side, ha in zip(_directions(study), (0, 1), ("left", "right"), strict=True):
            axes.annotate(text, (side, 0), xytext=(0, -33), xycoords="axes fraction", textcoords="offset pixels",
                          ha=ha, va="baseline", fontsize=SMALL, color=MUTED)  # fmt: skip
    return figure


def _directions(study: Study) -> tuple[str, str]:
    return ("← better", "worse →") if study.worse > 0 else ("← worse", "better →")


def _limits(study: Study, falls: Sequence[Fall]) -> tuple[float, float]:
    ends = [value for fall in falls for bar in fall.bars for value in bar.reach]
    ends += [at + side * study.smallest for fall in falls if (at := fall.middle) is not None for side in (-1, 1)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.05 * (high - low) or 2 * study.smallest or 1.0
    return low - room, high + room


def _bars(axes: Axes, study: Study, fall: Fall) -> None:
    axes.axvline(0, color=BASELINE, lw=1.4)
    if fall.shaded is not None and fall.middle is not None:
        axes.fill_betweenx([fall.shaded - 0.45, len(fall.bars) - 0.55], fall.middle - study.smallest,
                           fall.middle + study.smallest, color=BAND, lw=0)  # fmt: skip
    for place, bar in enumerate(fall.bars):
        if bar.effect is None:
            continue
        fill = {"color": bar.look.colour, "ec": GROUND, "lw": 0.6, "alpha": 0.85} if bar.look else OUTLINE
        axes.barh(place, bar.effect, 2 * HALF, left=bar.start, **fill)
        if bar.low is not None and bar.high is not None:
            low, high = bar.start + bar.low, bar.start + bar.high
            axes.plot([low, high], [place, place], color=INK, lw=1.4)
            for bound in (low, high):
                axes.plot([bound, bound], [place - 0.13, place + 0.13], color=INK, lw=1.4)
    for place, (bar, below) in enumerate(itertools.pairwise(fall.bars)):
        meets = any(math.isclose(bar.end, end, abs_tol=1e-9) for end in (below.start, below.end))
        if meets and bar.effect and below.effect:
            axes.plot([bar.end, bar.end], [place + HALF, place + 1 - HALF], color=MUTED, lw=0.9, dashes=(2, 2))
