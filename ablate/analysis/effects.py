"""Each arm against the baseline, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ablate.analysis.comparability import incomparable, tokens_delta, training_flops, unit_of
from ablate.analysis.pairing import (
    Floats,
    contrast,
    correlation,
    holm,
    ranked_direction,
    settling,
    spread,
    variance_ratio,
    wilson,
)
from ablate.analysis.verdict import Evidence, Objective, word
from ablate.records.tasks import task_baselines

COLUMNS = (
    "arm", "name", "pairs", "planned", "mean", "sd", "baseline_mean", "effect", "low", "high", "low95", "high95", "p",
    "p_holm", "p_sign_flip", "agree", "correlation", "variance_ratio", "diverged", "diverged_low", "diverged_high",
    "stuck", "settle", "parameters_delta", "flops_delta", "tokens_delta", "speed_delta", "verdict",
)  # fmt: skip
"""The columns of :func:`effects`."""


@dataclass(frozen=True)
class Grid:
    """A study's values of one metric by arm, one array over the planned seeds each."""

    seeds: tuple[int, ...]
    values: Mapping[str, Floats]
    """NaN where the trial did not complete."""
    ends: Mapping[str, list[str]]
    """Each trial's end; ``unplanned`` where the plan has none for that arm and seed."""
    stuck: Mapping[str, list[bool]]

    @classmethod
    def of(cls, plan: Mapping[str, Any], trials: pd.DataFrame, metric: str, stuck: Collection[str] = ()) -> Grid:
        """Lay out a frame of trials; ``stuck`` names the trials that ended stuck."""
        seeds = tuple(dict.fromkeys(int(trial["seed"]) for trial in plan["trials"]))
        place = {seed: index for index, seed in enumerate(seeds)}
        arms = [arm["id"] for arm in plan["arms"]]
        values: dict[str, Floats] = {arm: np.full(len(seeds), math.nan) for arm in arms}
        ends = {arm: ["unplanned"] * len(seeds) for arm in arms}
        held = {arm: [False] * len(seeds) for arm in arms}
        known = trials[trials["trial"] != ""]
        for trial, arm, seed, end, value in zip(
            *(known[column] for column in ("trial", "arm", "seed", "end", metric)), strict=True
        ):
            ends[arm][place[seed]] = end
            held[arm][place[seed]] = trial in stuck
            if end == "complete" and math.isfinite(value):
                values[arm][place[seed]] = value
        return cls(seeds, values, ends, held)

    def only(self, seeds: Sequence[int]) -> Grid:
        """The same of some of its seeds alone, in their order."""
        at = [self.seeds.index(seed) for seed in seeds]
        return Grid(
            tuple(seeds),
            {arm: values[at] for arm, values in self.values.items()},
            {arm: [ends[index] for index in at] for arm, ends in self.ends.items()},
            {arm: [held[index] for index in at] for arm, held in self.stuck.items()},
        )

    def number(self, arm: str, *ends: str) -> int:
        """How many of an arm's seeds ended in one of these ways."""
        return sum(end in ends for end in self.ends[arm])

    def lost(self, arm: str, whose: str = "") -> str:
        """How an arm's seeds ended without a value, as "3 of 3 seeds failed"; "" unless all of them did."""
        tally = {end: self.number(arm, end) for end in ("failed", "timed_out", "pruned")}
        planned = self.planned(arm)
        if not planned or sum(tally.values()) < planned:
            return ""
        parts = [
            f"{number} of {planned} seeds{whose} {end.replace('_', ' ')}" for end, number in tally.items() if number
        ]
        return " and ".join(parts)

    def planned(self, arm: str) -> int:
        """How many seeds the plan has for an arm."""
        return sum(end != "unplanned" for end in self.ends[arm])


def evidence(
    plan: Mapping[str, Any], trials: pd.DataFrame, stuck: Collection[str] = (), metric: str | None = None
) -> dict[str, Evidence]:
    """What each arm's verdict depends on, by the arm's identity, in the plan's order; without the baseline.

    The family of the simultaneous intervals is all arms that are planned, whether or not they have run, but for those
    that are their tasks' own baselines. An arm on another task than the baseline's is compared with that one.
    """
    objective = Objective.of(plan)
    grid = Grid.of(plan, trials, metric or objective.metric, stuck)
    references, names = task_baselines(plan), {arm["id"]: arm["name"] for arm in plan["arms"]}
    family = family_of(plan)
    entropy = unigram_entropy(plan, trials)
    found = {}
    for arm in plan["arms"]:
        id = arm["id"]
        if id == plan["baseline"]:
            continue
        baseline = references.get(id, plan["baseline"])
        differences = grid.values[id] - grid.values[baseline]
        finite = differences[np.isfinite(differences)]
        alone = sum(
            end == "diverged" and base == "complete"
            for end, base in zip(grid.ends[id], grid.ends[baseline], strict=True)
        )
        reason = incomparable(plan, [baseline, id], metric or objective.metric)
        c = contrast([] if reason else finite, family)
        found[id] = Evidence(
            name=arm["name"], against=names[baseline], contrast=c, planned=grid.planned(id),
            diverged=grid.number(id, "diverged"), ended=grid.number(id, "complete", "diverged"),
            baseline_diverged=grid.number(baseline, "diverged"),
            baseline_ended=grid.number(baseline, "complete", "diverged"),
            ranks=ranked_direction([objective.worse(value) for value in finite], alone), stuck=sum(grid.stuck[id]),
            baseline_stuck=sum(grid.stuck[baseline]),
            settle=settling(c, objective.smallest_effect, family), unigram_entropy=entropy,
            unit=unit_of(plan, id) if id in references else None,
            no_data=grid.lost(id) or grid.lost(baseline, " of baseline"), incomparable=reason,
        )  # fmt: skip
    return found


def family_of(plan: Mapping[str, Any]) -> int:
    """For how many arms the simultaneous intervals hold together."""
    return max(1, len(plan["arms"]) - 1 - len(set(task_baselines(plan).values())))


def unigram_entropy(plan: Mapping[str, Any], trials: pd.DataFrame) -> float:
    """The unigram entropy of the training data, in nats; NaN where the task knows of none."""
    planned = plan["data"].get("facts", {}).get("unigram_entropy")
    if planned is not None:
        return float(planned)
    recorded = trials["unigram_entropy"].dropna()
    return float(recorded.iloc[0]) if len(recorded) else math.nan


def effects(
    plan: Mapping[str, Any], trials: pd.DataFrame, stuck: Collection[str] = (), metric: str | None = None
) -> pd.DataFrame:
    """One row for each planned arm but the baseline, in the plan's order: its effect on a metric, paired by seed.

    An arm on another task is compared with the arm that has the baseline's other levels on that task; such a task's
    own baseline has no effect.

    Args:
        plan: the study's plan.
        trials: its trials.
        stuck: the trials that ended stuck at the unigram entropy.
        metric: default the objective; another metric gets intervals and no verdict.

    Columns:
        arm, name (text).
        pairs (int): seeds that completed in both this arm and the baseline. planned (int): seeds planned.
        mean, sd (float): the arm's, over the pairs, or over all of its seeds where its task forbids a comparison.
        baseline_mean (float): over the same seeds. Unit: the metric's.
        effect (float): mean of the per-seed differences, arm minus baseline; the metric's unit.
        low, high (float): simultaneous 95% interval (Bonferroni over the arms planned); it carries the verdict.
        low95, high95 (float): 95% interval of this arm alone.
        p, p_holm, p_sign_flip (float): paired t; the same after Holm; the sign-flip test. They decide nothing.
        agree (int): pairs whose difference has the effect's sign.
        correlation (float): between arm and baseline within seeds; NaN below three pairs.
        variance_ratio (float): variance of the paired difference over the unpaired; below 1, pairing helped.
        diverged (int): seeds. diverged_low, diverged_high (float): Wilson's 95% interval of the share that diverges.
        stuck (int): seeds that ended at the unigram entropy.
        settle (Int64): rough number of seeds that would settle an undecided effect; NA for any other.
        parameters_delta, flops_delta, tokens_delta, speed_delta (float): %, against the baseline: parameters in all,
            training FLOPs and tokens of all steps (NaN where tokens differ in kind), mean tokens per second over the
            pairs.
        verdict (text): one of :data:`ablate.analysis.verdict.WORDS`; "" for a metric that is not the objective.
    """
    objective = Objective.of(plan)
    judged = metric in (None, objective.metric)
    found = evidence(plan, trials, stuck, metric)
    grid = Grid.of(plan, trials, metric or objective.metric)
    speeds = Grid.of(plan, trials, "tokens_per_second").values
    arms = {arm["id"]: arm for arm in plan["arms"]}
    references = task_baselines(plan)
    adjusted = holm([e.contrast.p for e in found.values()], family_of(plan))
    rows = []
    for (id, e), p_holm in zip(found.items(), adjusted, strict=True):
        base = arms[references.get(id, plan["baseline"])]
        ours, theirs = grid.values[id], grid.values[base["id"]]
        # Of an arm that cannot be compared its own values are shown, and no difference.
        both = np.isfinite(ours) if e.incomparable else np.isfinite(ours - theirs)
        ours, theirs = ours[both], theirs[both]
        verdict = word(e, objective) if judged else ""
        low, high = wilson(e.diverged, e.ended)
        c = e.contrast
        rows.append({
            "arm": id, "name": e.name, "pairs": c.pairs, "planned": e.planned, "mean": _mean(ours),
            "sd": spread(ours),
            "baseline_mean": math.nan if e.incomparable else _mean(theirs),
            "effect": c.effect, "low": c.low, "high": c.high, "low95": c.low95, "high95": c.high95, "p": c.p,
            "p_holm": p_holm, "p_sign_flip": c.p_sign_flip, "agree": c.agree,
            "correlation": math.nan if e.incomparable else correlation(ours, theirs),
            "variance_ratio": math.nan if e.incomparable else variance_ratio(ours, theirs),
            "diverged": e.diverged, "diverged_low": low,
            "diverged_high": high, "stuck": e.stuck,
            "settle": e.settle if verdict == "undecided" and not e.diverged else None,
            "parameters_delta": delta(arms[id]["parameters"]["total"], base["parameters"]["total"]),
            "flops_delta": delta(training_flops(plan, arms[id]), training_flops(plan, base)),
            "tokens_delta": tokens_delta(plan, arms[id], base),
            "speed_delta": delta(_mean(speeds[id][both]), _mean(speeds[base["id"]][both])),
            "verdict": verdict,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"settle": "Int64"})


def delta(value: float, baseline: float) -> float:
    """A change in percent of the baseline; NaN where that is zero or unknown."""
    return 100 * (value / baseline - 1) if baseline else math.nan


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan
