"""The objective over a numeric factor on logarithmic axes, with the line that is fitted to each seed."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from ablate.analysis.pairing import Floats
from ablate.analysis.prose import estimate
from ablate.analysis.trends import Trend, trends
from ablate.reporting.layout import PAGE, Margins, few_ticks, heading, log_ticks, panels, power
from ablate.reporting.names import SMALL, headings
from ablate.reporting.numbers import plain
from ablate.reporting.palette import GROUND, INK, look
from ablate.reporting.study import Study
from ablate.reporting.svg import drawn

SMALLEST, LARGEST = math.log(math.ulp(0.0)), math.log(sys.float_info.max)
"""The logarithms between which an axis has to end."""
CAPTION = (
    "A faint dot for each seed, the means (geometric on a logarithmic scale) joined by a line, and dashed the mean of "
    "the lines that are fitted to the seeds by least squares. Grey is the baseline's level; crosses count trials that "
    "diverged."
)


@drawn
def slopes(study: Study, found: Sequence[Trend]) -> Figure:
    """A panel a factor, all on one scale where all are fitted alike."""
    columns = max(2, min(3, len(found)))
    width = PAGE / columns - 72
    titles, long = headings([plain(trend.factor) for trend in found], width, 2)
    figure, all_axes = panels(len(found), columns, (width, 220), Margins(56, 16, 60 if long else 44, 40))
    spans = [trend.values.to_numpy(dtype=float).ravel() for trend in found]
    alike = len({trend.log for trend in found}) == 1
    for axes, trend, title, own in zip(all_axes, found, titles, spans, strict=True):
        _scales(axes, trend, np.concatenate(spans) if alike else own)
        _trend(study, axes, trend)
        scale = " · logarithmic" if trend.log else ""
        heading(axes, title, f"{study.metric_and_unit}{scale}", x=f"{plain(trend.factor)} · logarithmic", lines=2)
    return figure


def _scales(axes: Axes, trend: Trend, span: Floats) -> None:
    levels = sorted(trend.diverged)
    first, last = math.log(levels[0]), math.log(levels[-1])
    room = 0.07 * (last - first)
    axes.set_xscale("log")
    axes.set_xlim(*(math.exp(min(max(end, SMALLEST), LARGEST)) for end in (first - room, last + room)))
    if len(levels) <= 8:
        axes.set_xticks(levels, [f"{level:g}" for level in levels])
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        log_ticks(axes, "x")
    low, high = float(span.min()), float(span.max())
    if trend.log:
        axes.set_yscale("log")
        low, high = math.log(low), math.log(high)
    edge = 0.1 * (high - low) or 0.02
    ends = low - edge, high + 3 * edge  # with room for the label above the line
    axes.set_ylim(*(map(math.exp, ends) if trend.log else ends))
    if trend.log and ends[1] - ends[0] > math.log(10):
        log_ticks(axes)
    else:
        few_ticks(axes, y=5)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: power(value)))


def _trend(study: Study, axes: Axes, trend: Trend) -> None:
    number = [factor["name"] for factor in study.plan["factors"]].index(trend.factor) + 1
    style, grey = look(number), look(0)
    levels = np.array(trend.levels)
    for _, row in trend.values.iterrows():
        axes.plot(levels, row, "o", color=style.colour, ms=4.4, alpha=0.4, mew=0)
    means = trend.centres()
    axes.plot(levels, means, color=style.colour, lw=1.8)
    reach = np.geomspace(levels[0], levels[-1], 32)
    axes.plot(reach, trend.line(reach), color=INK, lw=1.2, dashes=(5, 3))
    base = next(factor.get("baseline") for factor in study.plan["factors"] if factor["name"] == trend.factor)
    for level, mean in zip(levels, means, strict=True):
        at = grey if level == base else style
        axes.plot(level, mean, at.marker, color=at.colour, ms=at.size(8), mec=GROUND, mew=0.8)
    found = trends([trend]).iloc[0]
    falls = found["slope"] < 0
    text = f"slope {estimate(found['slope'], found['low95'], found['high95'])}"
    axes.annotate(text, (1 if falls else 0, 1), xytext=(-4 if falls else 4, -6), xycoords="axes fraction",
                  textcoords="offset pixels", ha="right" if falls else "left", va="top", fontsize=SMALL,
                  color=INK)  # fmt: skip
    for level, count in trend.diverged.items():
        if count:
            axes.annotate(f"✕ {count}", (level, 1), xytext=(0, -26), xycoords=("data", "axes fraction"),
                          textcoords="offset pixels", ha="center", va="top", fontsize=SMALL, color=INK)  # fmt: skip
