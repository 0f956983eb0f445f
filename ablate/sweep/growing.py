"""More steps: which trials go on from where the same trial of fewer steps ended, and why others cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from ablate.analysis.prose import number
from ablate.experiment.identity import text
from ablate.records.layout import StudyFolder, TrialFolder
from ablate.slots import Schedule

COMPARED = 10_000
"""Steps at which a schedule is compared under two budgets; of more, so many that are evenly spaced."""
_SCHEDULE: TypeAdapter[Schedule] = TypeAdapter(Schedule)


@dataclass(frozen=True)
class Shorter:
    """A complete trial that is the beginning of one with more steps."""

    trial: str
    steps: int
    kept: bool
    """Whether it still has its last checkpoint; without it the longer trial is trained from the start."""


@dataclass(frozen=True)
class _Planned:
    """A planned trial, as far as it matters here."""

    id: str
    steps: int
    schedule: Mapping[str, Any]


class Lineages:
    """What a plan's trials share with trials of other numbers of steps: all of their identity but that number."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        """Take the trials from this plan; one without a lineage shares nothing."""
        arms = {arm["id"]: arm for arm in plan["arms"]}
        self._plugins = tuple(plan.get("plugins", ()))
        self._by_lineage: dict[str, list[_Planned]] = {}
        for trial in plan["trials"]:
            if (lineage := trial.get("lineage")) is not None:
                arm = arms[trial["arm"]]
                schedule = arm["config"]["training"]["schedule"]
                planned = _Planned(trial["id"], arm.get("steps", plan["budget"]["steps"]), schedule)
                self._by_lineage.setdefault(lineage, []).append(planned)
        self._agreeing: dict[tuple[str, int, int], bool] = {}

    def grows(self, lineage: str | None, steps: int | None) -> bool:
        """Whether a trial of this lineage and so many steps is the beginning of a planned one."""
        return any(self._agrees(planned, steps) for planned, steps in self._longer(lineage, steps))

    def hindrance(self, lineage: str | None, steps: int | None) -> str | None:
        """The schedule that keeps a trial of so many steps from going on to the more that are planned, or None."""
        if self.grows(lineage, steps):
            return None
        return next((str(planned.schedule["kind"]) for planned, _ in self._longer(lineage, steps)), None)

    def shorter(self, study: StudyFolder, records: Mapping[str, Mapping[str, Any]]) -> dict[str, Shorter]:
        """The complete trials that planned ones without a result go on from, by the longer one's identity.

        Of several it is the one with the most steps, first of those that have kept their checkpoint.
        """
        found: dict[str, Shorter] = {}
        for id, record in records.items():
            if record["end"] != "complete":
                continue
            for planned, steps in self._longer(record.get("lineage"), record.get("steps")):
                if planned.id in records or not self._agrees(planned, steps):
                    continue
                kept = study.trial(id).attempt(record["attempt"]).checkpoint.is_file()
                best = found.get(planned.id)
                if best is None or (best.kept, best.steps) < (kept, steps):
                    found[planned.id] = Shorter(id, steps, kept)
        return found

    def _longer(self, lineage: str | None, steps: int | None) -> list[tuple[_Planned, int]]:
        if lineage is None or steps is None:
            return []
        return [(planned, steps) for planned in self._by_lineage.get(lineage, ()) if planned.steps > steps]

    def _agrees(self, planned: _Planned, fewer: int) -> bool:
        key = text(planned.schedule), fewer, planned.steps
        if key not in self._agreeing:
            self._agreeing[key] = agrees(self._schedule(planned), fewer, planned.steps)
        return self._agreeing[key]

    def _schedule(self, planned: _Planned) -> Schedule:
        from ablate.sweep.workers.worker import registry_with  # noqa: PLC0415  # only where there is something to go on from

        return _SCHEDULE.validate_python(planned.schedule, context={"registry": registry_with(self._plugins)})


def agrees(schedule: Schedule, fewer: int, more: int) -> bool:
    """Whether a schedule gives every step that ``fewer`` steps have the same rate when there are ``more``."""
    count = min(fewer, COMPARED)
    steps = (index * (fewer - 1) // max(1, count - 1) for index in range(count))
    try:
        return all(schedule.factor(step, fewer) == schedule.factor(step, more) for step in steps)
    except Exception:  # a stranger's code; the trial that it fails in will say what is wrong
        return False


def has_checkpoint(folder: TrialFolder) -> bool:
    """Whether a trial has a checkpoint of its own, which it goes on from before any other."""
    return any(attempt.checkpoint.exists() for attempt in folder.attempts())


def told(shorter: Mapping[str, Shorter]) -> Iterator[str]:
    """How many trials go on from how far, and how many cannot since the checkpoint is gone; by the longer trial."""
    counts = Counter((each.kept, each.steps) for each in shorter.values())
    for (kept, steps), count in sorted(counts.items(), reverse=True):
        if kept:
            goes = "goes" if count == 1 else "go"
            yield f"{number(count, 'trial')} {goes} on from step {steps:,}, where the same trial of fewer steps ended"
        else:
            yield f"{number(count, 'trial')} from the start: the checkpoint of step {steps:,} is no longer there"
