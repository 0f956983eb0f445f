"""The head of the report: what was asked, what was run, and whether it is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ablate.reporting.numbers import TIMES
from ablate.reporting.study import Study

ALERTS = ("diverged", "failed", "timed_out")


@dataclass(frozen=True)
class Chip:
    """A count with its word."""

    text: str
    alert: bool = False


@dataclass(frozen=True)
class Header:
    """What stands above all sections."""

    name: str
    question: str
    interim: str
    """What is still missing; "" once every trial has ended."""
    chips: Sequence[Chip]
    facts: Sequence[str]
    trials: str
    last: str
    """When the last record was sealed, in UTC; "" where none is."""


def header(study: Study) -> Header:
    """The head of a study's report; its dates are those of the records, so that the same records give the same page."""
    counts, plan = study.results.counts(), study.plan
    planned = counts["planned"] - counts["excluded"]
    sealed = counts["complete"] + counts["diverged"]
    last = max(study.trials["sealed"], default="")
    chips = [Chip(f"{sealed}/{planned} trials")]
    chips += [
        Chip(f"{counts[end]} {end.replace('_', ' ')}", end in ALERTS)
        for end in ("diverged", "failed", "timed_out", "pruned", "excluded", "running", "waiting")
        if counts[end]
    ]
    git = plan.get("git")
    dirty = " (with uncommitted changes)" if git and git.get("dirty") else ""
    commit = f"commit {git['commit']}{dirty}" if git else "no git commit"
    facts = [
        f"{len(plan['arms'])} arms {TIMES} {len(plan['seeds'])} {'seed' if len(plan['seeds']) == 1 else 'seeds'}",
        last[:10],
        commit,
        f"{plan['device']}, {plan['precision']}",
        f"plan {plan['hash']}",
    ]
    left = counts["running"] + counts["waiting"]
    have = "has" if left == 1 else "have"
    interim = f"{left} of {planned} trials {have} not ended; every figure here may change."
    return Header(
        name=plan["name"],
        question=plan["question"] or "",
        interim="" if study.results.complete else interim,
        chips=chips,
        facts=[fact for fact in facts if fact],
        trials=f"{sealed} {'trial' if sealed == 1 else 'trials'}",
        last=last.replace("T", " ").removesuffix("Z") + " UTC" if last else "",
    )
