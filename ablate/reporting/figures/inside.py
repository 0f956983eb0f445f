"""Stability: what the runs were like inside, and where their loss jumped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ablate.analysis.prose import joined
from ablate.reporting import series
from ablate.reporting.figures.lines import MOST_LINES, label_room, lines, strip_panels, strips
from ablate.reporting.layout import Margins, few_ticks, heading, panels
from ablate.reporting.names import short_names, text_width
from ablate.reporting.palette import GROUND, INK
from ablate.reporting.study import Arm, Study
from ablate.reporting.svg import drawn

QUIET = 0.01
"""A share whose every value is under this is next to nothing, and not drawn."""
SHARES = (
    ("zero_fraction", "Zeros after the activation", "share of hidden values"),
    ("dead_units", "Dead units", "share of hidden units"),
)
"""The shares that an activation with a flat part has: metric, title, and what it is a share of."""


@drawn
def insides(study: Study, arms: Sequence[Arm]) -> Figure:
    """Gradient norm before clipping, stream RMS by depth, attention's logits and entropy, zeros, dead units.

    The last two are left out where they are next to nothing in every arm.
    """
    many, room = len(arms) > MOST_LINES, label_room(arms, 168)
    norms = series.binned(study.curve("grad_norm/global"), study.steps, 40 if many else 60)
    rms = series.geometric(series.ends(study.probe("stream_rms"))[1], ["arm", "layer"])
    logit = study.probe("max_logit")
    logit = series.geometric(logit.groupby(["arm", "seed", "step"])["value"].max().reset_index(), ["arm", "step"])
    limit, quiet = _clip(study), _quiet(study)
    clipped = f"; {'' if many else 'dashed: '}clipped above {limit:g}" if limit else ""
    plan = [
        (norms, "Gradient norm before clipping", f"‖g‖{clipped}", "step", True),
        (rms, "Residual stream, at the end", "RMS by depth", "layer", True),
        (logit, "Largest attention logit", "over layers", "step", True),
        (_share(study, "entropy_normalised"), "Attention entropy", "share of its maximum", "step", False),
        *((_share(study, name), title, below, "step", False) for name, title, below in SHARES if name not in quiet),
    ]
    if many:
        figure, axes = strip_panels(len(plan), arms)
    else:
        figure, axes = panels(len(plan), 3, (324 - room, 166), Margins(48, room))
    for axes_, (frame, title, below, x, log) in zip(axes, plan, strict=True):
        if many:
            strips(axes_, frame, arms, x=x, log=log, share=not log, even=frame is norms)
        else:
            lines(axes_, frame, arms, x=x, log=log, marks=x == "layer", share=not log, room=room)
            if x == "layer" and not frame.empty:
                axes_.set_xticks(sorted({int(layer) for layer in frame["layer"]}))
            elif x == "step":
                few_ticks(axes_, x=5)
            if frame is norms and limit:
                axes_.axhline(limit, color=INK, lw=1, ls=(0, (4, 3)))
        heading(axes_, title, below, x=x, x_left=many, room=6 if many else 60)
    return figure


def caption(study: Study) -> str:
    """What the figure shows, what is left out of it, and which arms have no readings of what."""
    parts = ["Means of the seeds (geometric on log axes), of the finite values."]
    titles = {"max_logit": "largest attention logit", "entropy_normalised": "attention entropy"}
    titles |= {name: f"{title[0].lower()}{title[1:]}" for name, title, _ in SHARES}
    if quiet := [titles[name] for name in titles if name in _quiet(study)]:
        parts.append(f"Left out, since no arm has a value of {QUIET:g} or more: {' and '.join(quiet)}.")
    absent: dict[tuple[str, ...], list[str]] = {}
    for name, title in titles.items():
        measured = study.measured(study.probe(name))
        names = tuple(arm.label for arm in study.arms if arm not in measured)
        if names:
            absent.setdefault(names, []).append(title)
    for names, lacking in absent.items():
        whose = "any arm" if len(names) == len(study.arms) else joined(names)
        parts.append(f"Not measured in {whose}: {', '.join(lacking)}.")
    return " ".join(parts)


def _share(study: Study, name: str) -> pd.DataFrame:
    return series.mean(study.probe(name), ["arm", "step"])


def _quiet(study: Study) -> set[str]:
    """The shares that were measured and are next to nothing in all arms."""
    readings = {name: study.probe(name)["value"].dropna() for name, *_ in SHARES}
    return {name for name, values in readings.items() if len(values) and (values < QUIET).all()}


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
    axes.set_yticks(range(len(arms)), short_names([arm.label for arm in arms], 190))
    axes.tick_params(axis="y", labelcolor=INK)
    heading(axes, "", x="step")
    return figure
