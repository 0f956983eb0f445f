"""What a call would do, without doing any of it: `ablate run --dry-run`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ablate.records.layout import StudyFolder
from ablate.records.usage import uses
from ablate.sweep.agenda import Agenda
from ablate.sweep.changes import beside_before, orphans, planned_before, refusal_of, tuned_anew
from ablate.sweep.choosing import Only, Seeds, choose, retried
from ablate.sweep.growing import Lineages, has_checkpoint, told
from ablate.sweep.lock import refusal
from ablate.sweep.survey import survey


@dataclass(frozen=True)
class Tally:
    """Trials by what a call would do with them; each is counted once, and ``new`` beside that."""

    results: int = 0
    """Have a sealed result, and are left alone."""
    resume: int = 0
    """Would go on from a checkpoint."""
    grown: int = 0
    """Would go on from where the same trial of fewer steps ended."""
    anew: int = 0
    """Would run from the first step."""
    failed: int = 0
    """Have failed, and wait for ``--retry failed``."""
    oom: int = 0
    """Have failed for want of memory, and wait for ``--retry oom``, or ``failed``."""
    timed_out: int = 0
    """Have timed out, and wait for ``--retry timeout``."""
    pruned: int = 0
    """Were given up in tuning, and are left alone."""
    held: int = 0
    """Are not to be started by this call: ``only``, ``seeds`` or ``limit`` leaves them waiting."""
    later: int = 0
    """Open once the tuning of their arm has come so far, or wait at a rung until their batch is there."""
    new: int = 0
    """How many of all these the study's last plan had not."""

    @property
    def planned(self) -> int:
        """All of the plan's trials."""
        return sum(getattr(self, field.name) for field in fields(self) if field.name != "new")

    @property
    def to_run(self) -> int:
        """How many the call would start."""
        return self.resume + self.grown + self.anew

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


@dataclass(frozen=True)
class Preview:
    """What a call of ``run`` would do."""

    study: StudyFolder
    arms: tuple[tuple[str, str, Tally], ...]
    """Identity, name and trials of each arm, in the plan's order."""
    refusal: str | None
    """Why the call would be refused, as it would say it; None if it would not."""
    growth: tuple[str, ...] = ()
    """What would be said of more steps and new rungs: how many trials would go on from how far, and which would not."""

    @property
    def total(self) -> Tally:
        """All arms together."""
        return sum((tally for _, _, tally in self.arms), Tally())


def preview(
    study: StudyFolder,
    plan: Mapping[str, Any],
    *,
    retry: str | Iterable[str] = (),
    limit: int | None = None,
    only: Only = (),
    seeds: Seeds | None = None,
    extend: bool = False,
) -> Preview:
    """Look what :func:`ablate.sweep.sweep` would do with the same arguments; nothing is written or started.

    Raises:
        InputError: ``retry``, ``only`` or ``seeds`` name what is not there (S115).
    """
    chosen, retry = choose(plan, only, seeds), retried(retry)
    found = survey(study, mend=False)
    before = beside_before(study) | planned_before(study).keys()
    agenda = Agenda.after(plan, found)
    runs, _ = agenda.moves()
    plan = agenda.plan
    later = agenda.later
    tallies = {arm["id"]: Tally(later=later.get(arm["id"], 0)) for arm in plan["arms"]}
    trials = {run.trial["id"]: run.trial for run in runs}
    shorter = Lineages(plan).shorter(study, found.records)
    growing = {}
    for id, fate in found.fates(trials.values(), chosen, retry, limit):
        kind = "results" if fate == "sealed" else fate
        if fate == "run":
            kind = "resume" if has_checkpoint(study.trial(id)) else "anew"
            if kind == "anew" and id in shorter:
                growing[id] = shorter[id]
                kind = "grown" if shorter[id].kept else "anew"
        tallies[trials[id]["arm"]] += Tally(**{kind: 1}, new=0 if id in before else 1)
    arm_of = {trial["id"]: trial["arm"] for trial in (plan.get("tuning") or {}).get("runs", ())}
    for id in (given_up := agenda.given_up):
        tallies[arm_of[id]] += Tally(pruned=1)
    for id in arm_of.keys() - trials.keys() - set(given_up):
        tallies[arm_of[id]] += Tally(later=1)
    arms = tuple((arm["id"], arm["name"], tallies[arm["id"]]) for arm in plan["arms"])
    refused = refusal(study) or (None if extend else refusal_of(study, orphans(study, plan)))
    anew = () if refused else tuned_anew(study, plan)
    seen = Preview(study, arms, refused, (*told(growing), *agenda.unjudged, *anew))
    used_up = next((use for use in uses(study, plan["budget"]) if use.reached), None)
    return replace(seen, refusal=f"refused: {used_up}") if used_up and not refused and seen.total.to_run else seen
