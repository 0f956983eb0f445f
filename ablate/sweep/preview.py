"""What a call would do, without doing any of it: `ablate run --dry-run`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ablate.records.layout import StudyFolder, TrialFolder
from ablate.sweep.changes import orphans, planned_before, refusal_of
from ablate.sweep.choosing import Only, Seeds, choose, retried
from ablate.sweep.lock import refusal
from ablate.sweep.survey import Survey, survey


@dataclass(frozen=True)
class Tally:
    """Trials by what a call would do with them; each is counted once, and ``new`` beside that."""

    results: int = 0
    """Have a sealed result, and are left alone."""
    resume: int = 0
    """Would go on from a checkpoint."""
    anew: int = 0
    """Would run from the first step."""
    failed: int = 0
    """Have failed, and wait for ``--retry failed``."""
    held: int = 0
    """Are not to be started by this call: ``only``, ``seeds`` or ``limit`` leaves them waiting."""
    new: int = 0
    """How many of all these the study's last plan had not."""

    @property
    def planned(self) -> int:
        """All of the plan's trials."""
        return self.results + self.resume + self.anew + self.failed + self.held

    @property
    def to_run(self) -> int:
        """How many the call would start."""
        return self.resume + self.anew

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
    before = planned_before(study).keys()
    tallies = {arm["id"]: Tally() for arm in plan["arms"]}
    for trial, kind in _kinds(study, plan, found, chosen, retry, limit):
        one = Tally(**{kind: 1}, new=0 if trial["id"] in before else 1)
        tallies[trial["arm"]] += one
    arms = tuple((arm["id"], arm["name"], tallies[arm["id"]]) for arm in plan["arms"])
    refused = refusal(study) or (None if extend else refusal_of(study, orphans(study, plan)))
    return Preview(study, arms, refused)


def _kinds(
    study: StudyFolder,
    plan: Mapping[str, Any],
    found: Survey,
    chosen: frozenset[str],
    retry: frozenset[str],
    limit: int | None,
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Each trial with what would become of it, in the order in which they would be started."""
    failed = found.waiting_for_retry()
    left = limit
    for trial in plan["trials"]:
        id = trial["id"]
        if id in found.records:
            yield trial, "results"
        elif id in failed and ("failed" not in retry or id not in chosen):
            yield trial, "failed"
        elif id not in chosen or left == 0:
            yield trial, "held"
        else:
            left = left - 1 if left is not None else None
            yield trial, "resume" if _has_checkpoint(study.trial(id)) else "anew"


def _has_checkpoint(folder: TrialFolder) -> bool:
    return any(attempt.checkpoint.exists() for attempt in folder.attempts())
