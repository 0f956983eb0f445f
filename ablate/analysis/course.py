"""How a training run went: the course of its loss, and its spikes.

Sources: spikes over the last 128 steps as OLMo-core's SkipStepOptimizer judges them (one-sided); over 1,000 steps as
OLMo 2, section 3.2. A network that is stuck at the unigram entropy does not use its context.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

COURSES: Mapping[str, str] = {
    "nonfinite": "diverged: the loss became NaN or infinite",
    "over_limit": "diverged: the loss stayed over its declared limit",
    "stuck": "ended within 0.05 nats of the unigram entropy of the training data",
    "spike": "the training loss spiked and did not come back",
    "spike_and_recover": "the training loss spiked and came back",
    "ok": "nothing to remark",
}
"""Every course, worst first, each with what it means."""
FIRST_BAD: Mapping[str, str] = {
    "output": "output not finite",
    "gradient": "gradient not finite",
    "update": "parameters not finite after the update",
    "loss": "not finite by itself",
    "out_of_range": "output over 10,000",
    "out_of_time": "not known: `trial_timeout` left no time to look",
}
"""What the first bad value of a diverged run can be, each with what it means; or why it was not looked for."""
STUCK = 0.05
"""A run whose final loss is so close to the unigram entropy, in nats, is stuck."""
LAST = 20
"""The last training losses that stand for the final one where there is no evaluation."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spikes:
    """The steps that a spike rule struck at, and the share of all steps that they are."""

    rule: str
    score: float
    steps: tuple[int, ...]


@dataclass(frozen=True)
class SpikeRule:
    """A step spikes that lies so many standard deviations from the mean of the steps before it."""

    name: str
    window: int
    least: int
    """The fewest earlier steps that a step can be judged by; with fewer it is no spike."""
    sds: float
    two_sided: bool

    def spikes(self, losses: Floats) -> Spikes:
        """Find the spikes in one loss a step; the series is read up to the first value that is not finite."""
        finite = np.isfinite(losses)
        values = losses if finite.all() else losses[: int(finite.argmin())]
        mean, sd = _before(values, self.window)
        away = values - mean
        # The slack keeps rounding in the mean of equal values from looking like a spike.
        over = (np.abs(away) if self.two_sided else away) > self.sds * sd + 1e-9 * np.abs(mean)
        over[: self.least] = False
        steps = tuple(int(step) for step in np.flatnonzero(over))
        return Spikes(self.name, len(steps) / len(losses) if len(losses) > self.least else math.nan, steps)


SHORT = SpikeRule("over mean + 6 sd of the last 128 steps", window=128, least=63, sds=6.0, two_sided=False)
LONG = SpikeRule("7 sd from the mean of the last 1,000 steps", window=1000, least=999, sds=7.0, two_sided=True)


def spike_score(losses: npt.ArrayLike) -> list[Spikes]:
    """The spikes of a training loss by each rule that applies to a run of its length.

    Args:
        losses: one training loss a step, in nats.

    Returns:
        The spikes by the rule of 128 steps and, for runs of 1,000 steps or more, by the rule of 1,000. The score is a
        share of steps, NaN for a run too short to judge.
    """
    values = np.asarray(losses, dtype=float)
    return [rule.spikes(values) for rule in (SHORT, LONG) if rule is SHORT or len(values) >= rule.window]


def _before(values: Floats, window: int) -> tuple[Floats, Floats]:
    """Mean and standard deviation of up to ``window`` values before each one; NaN where there are fewer than two."""
    rolling = pd.Series(values).shift(1).rolling(window, min_periods=2)
    return rolling.mean().to_numpy(dtype=float), rolling.std().to_numpy(dtype=float)


def is_stuck(loss: float, unigram_entropy: float) -> bool:
    """Whether a final loss is within 0.05 nats of the unigram entropy; an unknown value is not."""
    return abs(loss - unigram_entropy) <= STUCK


def course(
    losses: npt.ArrayLike,
    *,
    rule: str = "",
    final: float = math.nan,
    unigram_entropy: float = math.nan,
    spikes: Spikes | None = None,
) -> str:
    """One of :data:`COURSES` for a training run.

    Args:
        losses: one training loss a step, in nats.
        rule: the divergence rule that ended it, ``nonfinite`` or ``loss_above_initial``; "" for a run that completed.
        final: the final loss on the evaluation set, in nats; without it the mean of the last training losses counts.
        unigram_entropy: of the training data, in nats; without it no run is called stuck.
        spikes: by the rule of 128 steps, where they have been looked for.
    """
    if rule:
        return "nonfinite" if rule == "nonfinite" else "over_limit"
    values = np.asarray(losses, dtype=float)
    end = final if math.isfinite(final) or len(values) == 0 else float(values[-LAST:].mean())
    if is_stuck(end, unigram_entropy):
        return "stuck"
    steps = (spikes or SHORT.spikes(values)).steps
    if not steps:
        return "ok"
    mean, sd = _before(values[: steps[0] + 1], SHORT.window)
    after = values[steps[-1] + 1 :][-LAST:]
    return "spike_and_recover" if len(after) and after.mean() <= mean[-1] + SHORT.sds * sd[-1] else "spike"


def first_bad(trial: Mapping[Any, Any]) -> tuple[str, str]:
    """Where a diverged run broke first, and what was bad there; "" where that is not known.

    Args:
        trial: a row of :func:`ablate.records.frames.trials`.
    """
    what = str(trial["first_bad"])
    elsewhere = {"": "", "out_of_time": "", "output": "the batch"}.get(what, "the loss")
    return str(trial["first_bad_module"]) or elsewhere, FIRST_BAD.get(what, what)


def courses(trials: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """The course of every sealed trial, in the order of the trials.

    Args:
        trials: a frame of trials (:func:`ablate.records.frames.trials`).
        curves: their curves.

    Columns:
        trial, arm, name (text). seed (int). course (text): one of :data:`COURSES`.
        spike_rule (text): the rule's name. spike_score (float): share of steps that spiked; NaN for a short run.
        spike_steps (object): tuple of the steps.
        spike_score_long (float): by the rule of 1,000 steps; NaN for shorter runs.
    """
    training = curves[curves["metric"] == "train/loss"]
    losses = {str(id): part.to_numpy() for id, part in training.groupby("trial", observed=True)["value"]}
    rows = []
    for row in trials[trials["end"].isin(("complete", "diverged"))].to_dict("records"):
        values = losses.get(row["trial"], np.empty(0))
        scores = spike_score(values)
        word = course(
            values,
            rule=str(row["rule"]) or ("nonfinite" if row["end"] == "diverged" else ""),
            final=row.get("val/loss", math.nan),
            unigram_entropy=row["unigram_entropy"],
            spikes=scores[0],
        )
        rows.append(
            {key: row[key] for key in ("trial", "arm", "name", "seed")}
            | {"course": word, "spike_rule": scores[0].rule, "spike_score": scores[0].score}
            | {"spike_steps": scores[0].steps, "spike_score_long": scores[1].score if scores[1:] else math.nan}
        )
    columns = ["trial", "arm", "name", "seed", "course", "spike_rule", "spike_score", "spike_steps", "spike_score_long"]
    return pd.DataFrame(rows, columns=columns)
