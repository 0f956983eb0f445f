"""The word that an effect earns, and the sentence that says it.

The words are tried in one order, so that every effect has exactly one. A sentence speaks of the configuration that was
run, and prints no interval that could not be computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ablate.analysis.course import STUCK
from ablate.analysis.pairing import Contrast, wilson
from ablate.analysis.prose import decimals, fixed

WORDS = (
    "diverged",
    "worse",
    "worse, size uncertain",
    "not comparable",
    "undecided",
    "one seed, no interval",
    "no practical difference",
    "identical",
    "better, size uncertain",
    "better",
)
"""Every verdict, worst first: the order in which sentences are sorted."""


@dataclass(frozen=True)
class Objective:
    """What effects are measured in, and which way is better."""

    metric: str
    unit: str
    goal: str
    """``min`` or ``max``."""
    smallest_effect: float
    """The smallest effect that matters, in the metric's unit."""

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Objective:
        """The objective of a plan."""
        objective = plan["objective"]
        metric = objective["metric"]
        return cls(metric, plan["units"].get(metric, ""), objective["goal"], float(objective["smallest_effect"]))

    @property
    def spoken(self) -> str:
        """The unit as sentences have it: "" for a share, which is a number alone."""
        return "" if self.unit == "share" else self.unit

    def worse(self, effect: float) -> float:
        """An effect turned so that a positive one is worse."""
        return effect if self.goal == "min" else -effect


@dataclass(frozen=True)
class Evidence:
    """Everything that a verdict depends on; counts are of seeds, or of trials for an effect over several cells."""

    name: str
    against: str
    contrast: Contrast
    planned: int
    diverged: int
    ended: int
    """How many completed or diverged."""
    baseline_diverged: int
    baseline_ended: int
    ranks: int
    """1 where the arm is worse by ranks, -1 where better; diverged seeds rank as worst."""
    stuck: int
    baseline_stuck: int
    settle: int | None
    unigram_entropy: float = math.nan
    noun: str = "seeds"
    where: str = ""
    """What the effect is an average over, as " on average over 8 cells"; "" for an arm."""
    note: str = ""
    """A last clause, as "it depends on residual"."""
    no_data: str = ""
    """Why there is no value at all, as "3 of 3 seeds failed"; "" where there is one, or may still be."""
    unit: str | None = None
    """The objective's unit here, where it is one of another task; None for the objective's own."""
    incomparable: str = ""
    """Why the two cannot be compared whatever their values are, as "its task is copy, not text"; "" where they can."""


@dataclass(frozen=True)
class Verdict:
    """One effect's verdict; effect and interval are in the metric's unit, None where they cannot be computed."""

    kind: str
    """``arm``, ``main effect`` or ``simple effect``."""
    arm: str
    """The arm's identity; "" for an effect of a factorial design."""
    name: str
    word: str
    """One of :data:`WORDS`."""
    sentence: str
    at: int
    """Where in the sentence its name stands."""
    effect: float | None
    low: float | None
    high: float | None
    pairs: int
    planned: int
    agree: int
    diverged: int
    stuck: bool
    """Whether most of its seeds are stuck at the unigram entropy."""

    def __str__(self) -> str:
        return self.sentence


def word(evidence: Evidence, objective: Objective) -> str:
    """The verdict: the first of the rules that holds, in their fixed order."""
    e, c, d = evidence, evidence.contrast, objective.smallest_effect
    sign = _sign(c, objective)
    rules = (
        ("diverged", 2 * e.diverged > e.ended),
        ("not comparable", bool(e.incomparable) or e.baseline_diverged > 0 or _ranks_disagree(e, objective)),
        ("one seed, no interval", c.pairs == 1),
        ("identical", c.identical),
        ("no practical difference", -d < c.low and c.high < d),
        ("undecided", sign == "better" and e.diverged > 0),
        (sign, c.low > d or c.high < -d),
        (f"{sign}, size uncertain", excludes_zero(c)),
    )
    return next((found for found, holds in rules if holds), "undecided")


def _sign(c: Contrast, objective: Objective) -> str:
    return "worse" if objective.worse(c.effect) > 0 else "better"


def excludes_zero(c: Contrast) -> bool:
    """Whether the simultaneous interval excludes zero."""
    return c.low > 0 or c.high < 0


def _ranks_disagree(e: Evidence, objective: Objective) -> bool:
    return e.diverged > 0 and e.contrast.pairs > 0 and e.ranks * objective.worse(e.contrast.effect) < 0


def is_stuck(evidence: Evidence) -> bool:
    """Whether most of what ended is stuck at the unigram entropy."""
    return 2 * evidence.stuck > evidence.ended


def sentence(evidence: Evidence, verdict: str, objective: Objective) -> str:
    """One sentence for a verdict: what, by how much, with which interval, and how many seeds agree."""
    e, c = evidence, evidence.contrast
    lead = f"{_before(e)}{e.name} diverged; among those that finished it" if e.diverged else e.name
    if verdict in ("diverged", "not comparable") or c.pairs == 0:
        return _without_effect(e, verdict, objective, lead)
    if verdict == "identical":
        return f"{lead} is identical to {e.against}: the same {objective.metric} in all {c.pairs} seeds."
    size = _size(c, objective, e.where)
    d, places = objective.smallest_effect, decimals(objective.smallest_effect)
    matters = fixed(d, places) if round(d, places) else f"{d:g}"
    if verdict == "one seed, no interval":
        clauses = [f"{lead} differs from {e.against} by {size} in one seed, which gives no interval"]
    elif verdict == "no practical difference":
        clauses = [f"{lead} makes no practical difference to {e.against}: {size} lies within ±{matters}"]
    else:
        clauses = _comparison(e, verdict, objective, f"{lead} is", size)
    # Where the reference is stuck as often, what both have in common is the cause.
    if is_stuck(e) and e.stuck * e.baseline_ended > e.baseline_stuck * e.ended:
        known = f", {e.unigram_entropy:.2f} nats" if math.isfinite(e.unigram_entropy) else ""
        stuck = f"{e.stuck} of {e.ended} {e.noun} end within {STUCK} nats of the unigram entropy{known}"
        theirs = f" ({e.against}: {e.baseline_stuck} of {e.baseline_ended})" if e.baseline_stuck else ""
        clauses.append(f"it is stuck: {stuck}{theirs}")
    if len(clauses) > 1 and verdict not in ("one seed, no interval", "no practical difference"):
        clauses.append(f"smallest effect that matters {matters}")
    return "; ".join([*clauses, *([e.note] if e.note else [])]) + "."


def _before(e: Evidence) -> str:
    """What stands before the name in a sentence that begins with the seeds that diverged."""
    return f"{e.diverged} of {e.ended} {e.noun} of " if e.diverged else ""


def _without_effect(e: Evidence, verdict: str, objective: Objective, lead: str) -> str:
    """The sentence for what has no effect to speak of."""
    if verdict == "diverged":
        low, high = wilson(e.diverged, e.ended)
        return f"{e.name} diverged in {e.diverged} of {e.ended} {e.noun} [95% Wilson CI {low:.0%} to {high:.0%}]."
    if e.incomparable:
        return f"{e.name} is not comparable to {e.against}: {e.incomparable}."
    if e.baseline_diverged:
        count = f"{e.baseline_diverged} of {e.baseline_ended} {e.noun}"
        return f"{e.name} is not comparable: {e.against} diverged in {count}."
    if verdict == "not comparable":
        mean, ranks = ("better", "worse") if objective.worse(e.contrast.effect) < 0 else ("worse", "better")
        return (
            f"{lead} is {mean} than {e.against} on average, yet {ranks} once the diverged ones are ranked as worst, "
            "so it is not comparable."
        )
    why = f"no data: {e.no_data}" if e.no_data else f"no seed has completed both it and {e.against}"
    return f"{e.name} is undecided: {why}."


def _comparison(e: Evidence, verdict: str, objective: Objective, lead: str, size: str) -> list[str]:
    """The clauses for an effect with a direction, or without a decided one."""
    c = e.contrast
    agree = f"{c.agree} of {c.pairs} seeds agree"
    if verdict == "undecided" and not excludes_zero(c):
        settle = [f"about {e.settle} seeds would settle it"] if e.settle and not e.diverged else []
        return [f"{lead} undecided against {e.against}: {size}", agree, *settle]
    uncertain = ", size uncertain," if verdict.endswith("uncertain") else ""
    # Only a diverged seed takes the word away from an interval that excludes zero.
    denied = ["undecided all the same, since what diverges is not called better"] if verdict == "undecided" else []
    return [f"{lead} {_sign(c, objective)} than {e.against}{uncertain} by {size}", agree, *denied]


def _size(c: Contrast, objective: Objective, where: str) -> str:
    """The effect with its unit and, where there is one, its simultaneous interval."""
    return measured(objective, c.effect, c.low, c.high, where=where)


def measured(
    objective: Objective,
    effect: float,
    low: float = math.nan,
    high: float = math.nan,
    *,
    where: str = "",
    interval: str = "95% simultaneous CI",
) -> str:
    """An effect with its unit and, where it is known, its interval: ``+0.08 nats val/loss [95% CI +0.05, +0.11]``.

    A share is a number alone, as ``+0.020 val/accuracy``.
    """
    unit = f"{objective.spoken} " if objective.spoken else ""
    places = decimals(objective.smallest_effect)
    bounded = math.isfinite(low) and math.isfinite(high)
    if bounded:
        # A bound is never rounded to zero: whether it includes zero is what the verdict turns on.
        while places < 9 and any(bound != 0 and round(bound, places) == 0 for bound in (low, high)):
            places += 1
    size, least, most = (fixed(value, places, sign=True) for value in (effect, low, high))
    bounds = f" [{interval} {least}, {most}]" if bounded else ""
    return f"{size} {unit}{objective.metric}{where}{bounds}"


def judge(evidence: Evidence, objective: Objective, *, kind: str = "arm", arm: str = "") -> Verdict:
    """The verdict on one effect, in a word and in a sentence."""
    objective = objective if evidence.unit is None else replace(objective, unit=evidence.unit)
    c, found = evidence.contrast, word(evidence, objective)
    text, before = sentence(evidence, found, objective), _before(evidence)
    return Verdict(
        kind=kind, arm=arm, name=evidence.name, word=found, sentence=text,
        at=len(before) if text.startswith(f"{before}{evidence.name} ") else 0,
        effect=_known(c.effect), low=_known(c.low), high=_known(c.high), pairs=c.pairs, planned=evidence.planned,
        agree=c.agree, diverged=evidence.diverged, stuck=is_stuck(evidence),
    )  # fmt: skip


def worst_first(verdicts: list[Verdict], objective: Objective) -> list[Verdict]:
    """Verdicts in the order in which they are read: worst word first, then the worst effect."""
    return sorted(
        verdicts, key=lambda v: (WORDS.index(v.word), -objective.worse(v.effect) if v.effect is not None else 0.0)
    )


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
