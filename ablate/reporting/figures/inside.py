"""Stability: what the runs were like inside, and where their loss jumped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ablate.reporting import series
from ablate.reporting.figures.lines import LABEL_ROOM, MOST_LINES, lines, strip_panels, strips
from ablate.reporting.layout import Margins, few_ticks, heading, panels, shorten, text_width
from ablate.reporting.palette import GROUND, INK
from ablate.reporting.study import Arm, Study
from ablate.reporting.svg import drawn

LOGIT_GUIDE = 1e4
"""Attention logits beyond this were seen to precede divergence (Wortsman 2023)."""


@drawn
def insides(study: Study, arms: Sequence[Arm]) -> Figure:
    """Gradient norm before clipping, stream RMS by depth, attention's logits and entropy, zeros, dead units."""
    many = len(arms) > MOST_LINES
    if many:
        figure, axes = strip_panels(6, arms)
    else:
        figure, axes = panels(6, 3, (206, 166), Margins(48, LABEL_ROOM))
    norms = series.binned(study.curve("grad_norm/global"), study.steps, 40 if many else 60)
    rms = series.geometric(series.ends(study.probe("stream_rms"))[1], ["arm", "layer"])
    logit = study.probe("max_logit")
    logit = series.geometric(logit.groupby(["arm", "seed", "step"])["value"].max().reset_index(), ["arm", "step"])
    shares = [series.mean(study.probe(name), ["arm", "step"]) for name in
              ("entropy_normalised", "zero_fraction", "dead_units")]  # fmt: skip
    limit = _clip(study)
    dashed = f"; dashed: clipped above {limit:g}" if limit and not many else ""
    plan = [
        (norms, "Gradient norm before clipping", f"‖g‖{dashed}", "step", True),
        (rms, "Residual stream, at the end", "RMS by depth", "layer", True),
        (logit, "Largest attention logit", "over layers", "step", True),
        (shares[0], "Attention entropy", "share of its maximum", "step", False),
        (shares[1], "Zeros after the activation", "share of hidden values", "step", False),
        (shares[2], "Dead units", "share of hidden units", "step", False),
    ]
    for axes_, (frame, title, below, x, log) in zip(axes, plan, strict=True):
        if many:
            strips(axes_, frame, arms, x=x, log=log, share=not log, even=frame is norms)
        else:
            lines(axes_, frame, arms, x=x, log=log, marks=x == "layer", share=not log)
            if x == "layer" and not frame.empty:
                axes_.set_xticks(sorted({int(layer) for layer in frame["layer"]}))
            elif x == "step":
                few_ticks(axes_, x=5)
            if frame is norms and limit:
                axes_.axhline(limit, color=INK, lw=1, ls=(0, (4, 3)))
        heading(axes_, title, below, x=x, x_left=many, room=6 if many else 60)
    return figure


def _clip(study: Study) -> float | None:
    """The norm at which gradients are clipped, where it is the same in every arm."""
    limits = [arm["config"]["training"].get("clip") for arm in study.plan["arms"]]
    first = limits[0]
    return float(first) if isinstance(first, int | float) and all(limit == first for limit in limits) else None


@drawn
def spikes(study: Study, arms: Sequence[Arm], spiked: pd.DataFrame) -> Figure:
    """A row an arm, and in it a mark for each step at which a seed's training loss spiked."""
    names = min(200.0, max(text_width(arm.label) for arm in arms) + 14)
    figure, (axes,) = panels(1, 1, (1080 - names, 22.0 * len(arms)), Margins(names, 20, 8, 38))
    axes.set(xlim=(0, study.steps), ylim=(len(arms) - 0.4, -0.6))
    seeds = sorted(study.plan["seeds"])
    for row, arm in enumerate(arms):
        mine = spiked[spiked["arm"] == arm.id]
        # Each seed has its own height in the row, so that two that spike together both show.
        shift = np.interp(mine["seed"].map(seeds.index), (0, max(1, len(seeds) - 1)), (-0.28, 0.28))
        axes.plot(mine["step"], row + shift, ls="", marker=arm.look.marker, ms=arm.look.size(6), color=arm.look.colour,
                  mec=GROUND, mew=0.7, rasterized=len(mine) > 2000)  # fmt: skip
    axes.set_yticks(range(len(arms)), [shorten(arm.label, 190) for arm in arms])
    axes.tick_params(axis="y", labelcolor=INK)
    heading(axes, "", x="step")
    return figure
