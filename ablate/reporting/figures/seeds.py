"""Seed by seed: what each arm did to each seed, against the same seed's baseline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from ablate.analysis.prose import joined
from ablate.reporting.figures.forest import far_away
from ablate.reporting.layout import Margins, few_ticks, heading, panels
from ablate.reporting.names import SMALL, headings
from ablate.reporting.palette import BASELINE, GROUND, INK
from ablate.reporting.study import Arm, Study
from ablate.reporting.svg import drawn


def with_pairs(study: Study, arms: Sequence[Arm]) -> tuple[list[Arm], list[Arm]]:
    """The arms that have something to show, a pair with the baseline or a seed that diverged; and the others.

    Among the others are those of another task or unit, and all where no seed has a pair at all.
    """
    pairs = study.differences.drop(columns=study.baseline.id).notna().any()
    if not pairs.any():
        return [], list(arms)
    shown = [arm for arm in arms if pairs[arm.id] or (study.diverged(arm) and not study.apart(arm))]
    return shown, [arm for arm in arms if arm not in shown]


def caption(empty: Sequence[Arm]) -> str:
    """What the figure shows, and which arms it has no line of."""
    text = "A line for each seed, from the baseline to the arm; lines that run alike agree."
    left = [arm.label for arm in empty]
    return f"{text} Without a seed to compare, and left out: {joined(left)}." if left else text


@drawn
def seed_lines(study: Study, arms: Sequence[Arm]) -> Figure:
    """A panel an arm: a line a seed from its baseline to the arm; a seed that diverged ends in a cross on top.

    All panels share one scale but those of effects so large that they would flatten the rest; these say so.
    """
    values = study.values
    pairs = {arm.id: [study.reference(arm).id, arm.id] for arm in arms}
    reach = {arm.id: float(study.differences[arm.id].abs().max()) for arm in arms}
    edge = far_away(list(reach.values()), 2 * study.smallest)
    near = values[list(dict.fromkeys(id for arm in arms if not reach[arm.id] > edge for id in pairs[arm.id]))]
    shared = _limits(near.to_numpy(dtype=float))
    columns = min(5, len(arms))
    width = 1120 / 5 - 70
    titles, long = headings([arm.label for arm in arms], width + 12, 2)
    figure, all_axes = panels(len(arms), columns, (width, 190), Margins(52, 18, 60 if long else 44, 26))
    for axes, arm, title in zip(all_axes, arms, titles, strict=True):
        far = reach[arm.id] > edge
        low, high = _limits(values[pairs[arm.id]].to_numpy(dtype=float)) if far else shared
        axes.set(xlim=(-0.22, 1.22), ylim=(low, high))
        both = values[pairs[arm.id]].dropna()
        for start, end in both.to_numpy(dtype=float):
            axes.plot([0, 1], [start, end], color=arm.look.colour, lw=1.2, alpha=0.55)
        axes.plot(np.zeros(len(both)), both.iloc[:, 0], "o", color=BASELINE, ms=6, mec=GROUND, mew=0.7)
        axes.plot(np.ones(len(both)), both.iloc[:, 1], arm.look.marker, color=arm.look.colour,
                  ms=arm.look.size(6.5), mec=GROUND, mew=0.7)  # fmt: skip
        lost = study.diverged(arm)
        if lost:
            axes.annotate(f"✕ {lost} diverged", (1, 1), xytext=(0, -4), xycoords="axes fraction",
                          textcoords="offset pixels", ha="right", va="top", fontsize=SMALL, color=INK)  # fmt: skip
        axes.set_xticks([0, 1], ["baseline", "arm"])
        axes.grid(axis="x", visible=False)
        few_ticks(axes, y=5)
        own = " · own scale" if far else ""
        heading(axes, title, f"{study.metric_and_unit}{own}", room=12, lines=2)
    return figure


def _limits(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    room = 0.08 * (high - low) or 0.05 * (abs(high) or 1)
    return low - room, high + room
