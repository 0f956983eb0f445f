"""Gradient flow: how large the gradients are, by layer and step, and how large the updates that they make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from ablate.reporting import flow, series
from ablate.reporting.figures.lines import (
    MOST_LINES,
    colour_bar,
    column_ticks,
    label_room,
    lines,
    name_rows,
    names_beside,
    raster,
    strip_panels,
    strips,
)
from ablate.reporting.layout import PAGE, Margins, heading, log_ticks, panels
from ablate.reporting.names import SMALL, headings
from ablate.reporting.palette import BAND, GROUND, INK, MUTED
from ablate.reporting.study import Arm, Study
from ablate.reporting.svg import drawn

GUIDE = 1e-3
"""The update-to-weight ratio that a healthy run is often said to have (CS231n)."""

MAPS = "Gradient norm of each block at the probed steps, which are not evenly spaced. All arms share one scale."
PROFILES = (
    "Geometric mean of the seeds. The stream's last layer is what leaves the last block; its profile need not follow "
    "the weights'."
)
UPDATES = (
    "Left: how large an update is against its weights; a healthy run is often near 10⁻³. Right: the first block's "
    "gradient norm over the last one's; in the shaded ranges an arm is flagged."
)


@drawn
def heat_maps(study: Study, arms: Sequence[Arm]) -> Figure:
    """A map an arm: layers upward, probed steps across, log10 of the block's gradient norm as colour, on one scale."""
    norms = series.geometric(study.block_gradients, ["arm", "step", "layer"])
    norms["value"] = np.log10(norms["value"])
    low, high = float(norms["value"].min()), float(norms["value"].max())
    norm = Normalize(low, high if high > low else low + 1)
    depth = int(norms["layer"].max()) + 1
    height = min(150, max(46, 17 * depth))
    columns = math.ceil(len(arms) / math.ceil(len(arms) / 4))
    width = min(320, PAGE / columns - 58)
    titles, long = headings([arm.label for arm in arms], width + 12, 2)
    top = 42 if long else 26
    figure, all_axes = panels(len(arms), columns, (width, height), Margins(38, 20, top, 38), foot=48)
    steps = sorted(norms["step"].unique())
    for axes, arm, title in zip(all_axes, arms, titles, strict=True):
        wide = norms[norms["arm"] == arm.id].pivot(index="layer", columns="step", values="value")
        wide = wide.reindex(index=range(depth), columns=steps)
        raster(axes, wide.to_numpy(dtype=float), norm, upward=True)
        column_ticks(axes, [float(step) for step in steps])
        stride = math.ceil(depth / max(1, height // 15))
        axes.set_yticks(range(0, depth, stride))
        axes.set_ylabel("layer", labelpad=3)
        heading(axes, title, x="step", room=12, lines=2)
    colour_bar(figure, norm, "log₁₀ ‖∇W‖ of all of a block's weights, before clipping; geometric mean of the seeds")
    return figure


@drawn
def profiles(study: Study, arms: Sequence[Arm]) -> Figure:
    """Gradient norms by depth at the first and at the last probed step: of each block's weights, and of the stream."""
    blocks, stream = study.block_gradients, study.probe("stream_grad")
    kinds = [
        (blocks, "‖∇W‖ of a block's weights", "layer"),
        (stream, "‖∂L/∂x‖ of the residual stream", "layer"),
    ]
    kinds = [kind for kind in kinds if not kind[0].empty]
    parts = [(values, axis, at) for source, values, axis in kinds for at in (0, 1)]
    many, room = len(arms) > MOST_LINES, label_room(arms, 220)
    if many:
        figure, all_axes = strip_panels(len(parts), arms)
    else:
        figure, all_axes = panels(len(parts), 2, (490 - room, 172), Margins(58, room))
    for index, (source, values, axis) in enumerate(kinds):
        frames = [series.geometric(frame, ["arm", "layer"]) for frame in series.ends(source)]
        pair = all_axes[2 * index : 2 * index + 2]
        span = pd.concat([frame["value"] for frame in frames])
        for axes, frame, when in zip(pair, frames, ("at the start", "at the end"), strict=True):
            if many:
                strips(axes, frame, arms, x="layer", log=True, span=span)
            else:
                lines(axes, frame, arms, x="layer", log=True, marks=True, span=span, room=room)
                axes.set_xticks(sorted({int(layer) for layer in frame["layer"]}))
            title = "Weights" if source is blocks else "Stream"
            heading(axes, f"{title}, {when}", values, x=axis, x_left=many)
    return figure


@drawn
def updates(study: Study, arms: Sequence[Arm]) -> Figure:
    """The update-to-weight ratio along the run with its guide line, and each arm's first/last gradient ratio."""
    weights = study.probe("update_ratio")
    weights = weights[weights["role"] != "norm"]
    ratio = series.geometric(weights, ["arm", "step"])
    many, room = len(arms) > MOST_LINES, label_room(arms, 220)
    if many:
        figure, (axes, beside) = strip_panels(2, arms)
    else:
        figure, (axes, beside) = panels(2, 2, (490 - room, max(172.0, 24.0 * len(arms))), Margins(58, room))
    if many:
        strips(axes, ratio, arms, log=True)
    else:
        span = pd.concat([ratio["value"], pd.Series([GUIDE])])
        lines(axes, ratio, arms, log=True, span=span, room=room)
        axes.axhline(GUIDE, color=INK, lw=1, ls=(0, (4, 3)))
    guide = "" if many else "; dashed: 10⁻³"
    heading(
        axes,
        "Update-to-weight ratio",
        f"‖Δw‖ / ‖w‖, geometric mean of all weight matrices{guide}",
        x="step",
        x_left=many,
    )
    _ratios(beside, study, arms, room)
    return figure


def _ratios(axes: Axes, study: Study, arms: Sequence[Arm], room: float) -> None:
    """First/last ratio of w2, an arm a row: hollow at the start, filled at the end, beyond the thresholds shaded."""
    first, last = (
        series.geometric(frame, ["arm"]).set_index("arm")["value"] for frame in series.ends(study.first_to_last)
    )
    low = min([1e-3, *(first.tolist() + last.tolist())]) / 2
    high = max([1e3, *(first.tolist() + last.tolist())]) * 2
    axes.set(xscale="log", xlim=(low, high), ylim=(len(arms) - 0.5, -0.5))
    axes.axvspan(low, flow.VANISHING, color=BAND, lw=0)
    axes.axvspan(flow.EXPLODING, high, color=BAND, lw=0)
    axes.axvline(1, color=MUTED, lw=1)
    for row, arm in enumerate(arms):
        style: dict[str, Any] = {"color": arm.look.colour, "marker": arm.look.marker, "ms": arm.look.size(6.5)}
        if arm.id in first.index and arm.id in last.index:
            axes.plot([first[arm.id], last[arm.id]], [row, row], color=arm.look.colour, lw=1.4)
        if arm.id in first.index:
            axes.plot(first[arm.id], row, **style, mfc=GROUND, mew=1.3)
        if arm.id in last.index:
            axes.plot(last[arm.id], row, **style, mec=GROUND, mew=0.7)
    if len(arms) > MOST_LINES:
        name_rows(axes, arms)
    else:
        axes.set_yticks(range(len(arms)), names_beside(arms, room))
        axes.yaxis.tick_right()
        axes.tick_params(axis="y", labelcolor=INK, pad=10)
    axes.grid(axis="y", visible=False)
    log_ticks(axes, "x")
    for at, text, side in ((0, "vanishing", "left"), (1, "exploding", "right")):
        axes.annotate(text, (at, 1), xytext=(-4 if at else 4, -4), xycoords="axes fraction",
                      textcoords="offset pixels", ha=side, va="top", fontsize=SMALL, color=MUTED)  # fmt: skip
    heading(axes, "First block over last block", "‖∇W₂‖ ratio; hollow at the start, filled at the end", x="ratio")
