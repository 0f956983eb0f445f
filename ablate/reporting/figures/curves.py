"""The objective along the run, against the tokens seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from ablate.analysis.prose import joined
from ablate.reporting import series
from ablate.reporting.figures.forest import far_away
from ablate.reporting.figures.lines import MOST_LINES, label_room, names_beside
from ablate.reporting.layout import Label, Margins, few_ticks, heading, label_ends, panels
from ablate.reporting.names import headings
from ablate.reporting.study import Arm, Study
from ablate.reporting.svg import drawn


@drawn
def objective(study: Study, arms: Sequence[Arm]) -> Figure:
    """The objective against tokens: the whole run, and the second half on its own scale; or a panel an arm."""
    frame = _against_tokens(study)
    means = _means(frame, arms)
    if len(arms) > MOST_LINES:
        return _small_multiples(study, arms, frame, means)
    room = label_room(arms, 220)
    figure, (whole, late) = panels(2, 2, (506 - room, 250), Margins(48, room))
    faint = not study.leaves_out("trial curves")
    _draw(whole, arms, frame, means, faint)
    _draw(late, arms, frame, means, faint)
    heading(whole, "The whole run", study.metric_and_unit, x="tokens")
    heading(late, "The second half, closer", study.metric_and_unit, x="tokens")
    _tokens(whole)
    end = frame["tokens"].max()
    late.set_xlim(end / 2, end * 1.01 or 1)
    if limits := _close_up(study, arms, frame):
        late.set_ylim(limits)
    _tokens(late)
    names = names_beside(arms, room)
    for axes in (whole, late):
        low, high = axes.get_ylim()
        last = means.sort_values("step").groupby("arm")["mean"].last()
        reach = means.groupby("arm")["tokens"].max()
        label_ends(axes, [Label(name, float(last[arm.id]), arm.look) for arm, name in zip(arms, names, strict=True)
                          if arm.id in last.index and low <= last[arm.id] <= high
                          and reach[arm.id] > axes.get_xlim()[0]])  # fmt: skip
    return figure


def caption(study: Study, arms: Sequence[Arm]) -> str:
    """What the figure shows, and what is special in this one."""
    parts = [
        "Mean with Student's t band (95% at each point) over the steps that all seeds of an arm have.",
        "Single seeds are left out." if study.leaves_out("trial curves") else "Faint: seeds.",
    ]
    if len(arms) > MOST_LINES:
        parts.append("Grey: the mean of the baseline.")
    if any(study.diverged(arm) for arm in arms) and not study.leaves_out("trial curves"):
        parts.append("✕ marks where a seed drops out.")
    if apart := [arm.label for arm in arms if study.apart(arm)]:
        parts.append(f"Of another task or unit, and not to be read against the baseline: {joined(apart)}.")
    if far := left_out(study, arms):
        parts.append(f"The closer view leaves out {joined([arm.label for arm in far])}.")
    return " ".join(parts)


def left_out(study: Study, arms: Sequence[Arm]) -> list[Arm]:
    """The arms whose means the closer view has nothing of, since they are so far from the baseline's."""
    frame = _against_tokens(study)
    limits = _close_up(study, arms, frame) if len(arms) <= MOST_LINES else None
    if limits is None:
        return []
    means = _means(frame, arms)
    late = means[means["tokens"] >= frame["tokens"].max() / 2]
    seen = set(late.loc[late["mean"].between(*limits), "arm"])
    return [arm for arm in arms if arm.id in set(late["arm"]) - seen]


def _means(frame: pd.DataFrame, arms: Sequence[Arm]) -> pd.DataFrame:
    """The arms' means with their bands, against tokens."""
    means = series.band(frame)
    return means.assign(tokens=means["step"] * means["arm"].map({arm.id: arm.tokens for arm in arms}))


def _against_tokens(study: Study) -> pd.DataFrame:
    frame = study.curve(study.metric)
    return frame.assign(tokens=frame["step"] * frame["arm"].map({arm.id: arm.tokens for arm in study.arms}))


def _close_up(study: Study, arms: Sequence[Arm], frame: pd.DataFrame) -> tuple[float, float] | None:
    """The y-axis of the second half of the arms that end near the baseline; None where there is none."""
    finals = study.values.mean()
    away = {arm.id: abs(float(finals[arm.id] - finals[study.baseline.id])) for arm in arms}
    edge = far_away([reach for id, reach in away.items() if id != study.baseline.id], 2 * study.smallest)
    far = [id for id, reach in away.items() if reach > edge]
    late = frame[frame["tokens"] >= frame["tokens"].max() / 2]
    values = late.loc[~late["arm"].isin(far) & np.isfinite(late["value"]), "value"]
    if values.empty:
        return None
    room = 0.06 * float(values.max() - values.min()) or 0.05 * abs(float(values.max())) or 1.0
    return float(values.min() - room), float(values.max() + room)


def _tokens(axes: Axes) -> None:
    """Few round ticks in thousands or millions of tokens."""
    few_ticks(axes, x=5)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))


def short_count(value: float) -> str:
    """A number of tokens as 50 k, 1.2 M or 3 G."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def _draw(axes: Axes, arms: Sequence[Arm], frame: pd.DataFrame, means: pd.DataFrame, faint: bool) -> None:
    """Every seed faintly, each arm's mean and band over them, a cross where a seed drops out."""
    end = frame["step"].max()
    for arm in sorted(arms, key=lambda arm: not arm.baseline):
        mean = means[means["arm"] == arm.id].sort_values("step")
        if mean["low"].notna().any():
            axes.fill_between(mean["tokens"], mean["low"], mean["high"], color=arm.look.colour, alpha=0.16, lw=0)
        last = min(end, arm.steps)
        if faint:
            seeds = frame[frame["arm"] == arm.id]
            # Where the mean ends early, since a seed dropped out, the others are all that is left to see.
            strong = mean.empty or mean["step"].max() < last
            for _, run in seeds[np.isfinite(seeds["value"])].sort_values("step").groupby("seed"):
                axes.plot(run["tokens"], run["value"], color=arm.look.colour, lw=1.0 if strong else 0.7,
                          alpha=0.8 if strong else 0.35)  # fmt: skip
                if len(run) and run["step"].iloc[-1] < last:
                    axes.plot(run["tokens"].iloc[-1:], run["value"].iloc[-1:], "x", color=arm.look.colour, ms=7, mew=2)
        axes.plot(mean["tokens"], mean["mean"], color=arm.look.colour, dashes=arm.look.dash or (None, None), lw=1.9)


def _small_multiples(study: Study, arms: Sequence[Arm], frame: pd.DataFrame, means: pd.DataFrame) -> Figure:
    titles, long = headings([arm.label for arm in arms], 224, 2)
    figure, all_axes = panels(len(arms), 4, (212, 112), Margins(50, 18, 60 if long else 44, 38))
    base = means[means["arm"] == study.baseline.id].sort_values("step")
    finite = frame.loc[np.isfinite(frame["value"]), "value"]
    for axes, arm, title in zip(all_axes, arms, titles, strict=True):
        axes.plot(base["tokens"], base["mean"], color=study.baseline.look.colour, lw=1.5)
        _draw(axes, [arm], frame, means, not study.leaves_out("trial curves"))
        if not finite.empty:
            room = 0.04 * (finite.max() - finite.min() or 1)
            axes.set_ylim(finite.min() - room, finite.max() + room)
        axes.set_xlim(0, frame["tokens"].max() or 1)
        heading(axes, title, study.metric_and_unit, x="tokens", room=12, lines=2)
        few_ticks(axes, x=4, y=4)
        _tokens(axes)
    return figure
