"""What the folders of a study say before anything runs: they are the truth, whatever the index remembers."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ablate.records.layout import AttemptFolder, StudyFolder, TrialFolder, read_json
from ablate.records.shapes import label_fault, record_fault
from ablate.sweep.bookkeeping.index import GAVE_UP, FailedAttempt, Label, Record
from ablate.sweep.choosing import Chosen
from ablate.sweep.events import Failure

ENDS = ("complete", "diverged")
LOG_LINES = 20


@dataclass(frozen=True)
class Survey:
    """Every sealed record and every attempt of a study that failed or timed out, planned now or not."""

    study: StudyFolder
    records: Mapping[str, Record]
    failed: tuple[FailedAttempt, ...]
    damaged: tuple[str, ...]
    """Trials whose record could not be read; it was set aside, and they run again."""
    rungs: Mapping[str, Mapping[int, Mapping[str, float | None]]] = field(default_factory=dict)
    """The metrics of tuning trials at the rungs that they have reached, by step: the objective may have changed."""

    def evaluated(self, trial: str, metric: str) -> dict[int, float]:
        """A metric of a trial that has its record, at each of its evaluations; nothing where its curves are gone."""
        from ablate.records.series import values_at  # noqa: PLC0415  # it brings pyarrow along, and few need it

        return values_at(self.study.trial(trial).attempt(self.records[trial]["attempt"]).curves, metric)

    @property
    def pruned(self) -> list[str]:
        """Tuning trials that were given up at a rung."""
        return [trial for trial, attempt in self.waiting_for_retry().items() if attempt.end == "pruned"]

    def waiting_for_retry(self) -> dict[str, FailedAttempt]:
        """The trials whose last attempt failed or timed out, and that attempt."""
        return {
            attempt.label.trial: attempt
            for attempt in self.failed
            if attempt.last and attempt.label.trial not in self.records
        }

    def fates(
        self,
        planned: Iterable[Mapping[str, Any]],
        chosen: Chosen,
        retry: Collection[str],
        limit: int | None,
        begun: Collection[str] = (),
    ) -> Iterator[tuple[str, str]]:
        """What a call does with each of these trials, in the order in which it starts them.

        Gives the trial's identity with ``sealed`` (it has its result), ``run``, ``held`` (it waits, and is not to be
        started), or how it ended that is not to be run again: ``failed``, ``oom`` (a failure too) or ``timed_out``. A
        trial that tuning has given up runs, if it is among these. One that this call has ``begun`` goes on from its
        rung whatever the limit.
        """
        gave_up = {trial: attempt for trial, attempt in self.waiting_for_retry().items() if attempt.end != "pruned"}
        left = limit
        for each in planned:
            trial = each["id"]
            held = not chosen(each) or (left == 0 and trial not in begun)
            if trial in self.records:
                yield trial, "sealed"
            elif trial in gave_up and (held or gave_up[trial].fate not in retry):
                yield trial, gave_up[trial].fate
            elif held:
                yield trial, "held"
            else:
                left = left if left is None or trial in begun else left - 1
                yield trial, "run"


def survey(study: StudyFolder, *, mend: bool = True) -> Survey:
    """Read all folders of a study; ``mend`` sets damaged records aside."""
    records: dict[str, Record] = {}
    failed: list[FailedAttempt] = []
    damaged: list[str] = []
    rungs: dict[str, Mapping[int, Mapping[str, float | None]]] = {}
    for folder in study.trials():
        record = _record(folder)
        if record is not None:
            records[folder.id] = record
        elif folder.result.exists():
            if mend:
                os.replace(folder.result, folder.result.with_suffix(".damaged.json"))
            damaged.append(folder.id)
        attempts = folder.attempts()
        if reached := {rung[0]: _metrics_at(attempt) for attempt in attempts if (rung := rung_of(attempt))}:
            rungs[folder.id] = reached
        for attempt in attempts:
            if attempt.end.exists() and (label := _label(folder)):
                end, error, cause = how_it_ended(attempt)
                failed.append(FailedAttempt(label, attempt.number, error, attempt == attempts[-1], end, cause))
    return Survey(study, records, tuple(failed), tuple(damaged), rungs)


def rung_of(attempt: AttemptFolder) -> tuple[int, float | None] | None:
    """The rung at which an attempt paused, as step and value; None if it did not, or its file cannot be read."""
    if not attempt.rung.exists():
        return None
    told = _object(attempt.rung)
    step, value = told.get("step"), told.get("value")
    return (step, value if isinstance(value, int | float) else None) if isinstance(step, int) else None


def _metrics_at(attempt: AttemptFolder) -> dict[str, float | None]:
    """All metrics at the rung at which an attempt paused."""
    metrics = _object(attempt.rung).get("metrics")
    told = metrics.items() if isinstance(metrics, Mapping) else ()
    return {name: value for name, value in told if value is None or isinstance(value, int | float)}


def how_it_ended(attempt: AttemptFolder) -> tuple[str, str, str | None]:
    """What an attempt without a result has sealed: ``failed`` or ``timed_out``, why in one line, and the cause."""
    sealed = _object(attempt.end)
    end = sealed.get("end")
    error, cause = sealed.get("error", "its end.json cannot be read"), sealed.get("cause")
    return end if end in GAVE_UP else "failed", str(error), cause if isinstance(cause, str) else None


def failure(label: Label, attempt: AttemptFolder) -> Failure:
    """What is known of an attempt that gave no result."""
    end, error, cause = how_it_ended(attempt)
    log, tail = attempt.log, log_tail(attempt)
    return Failure(label.trial, label.arm_name, label.seed, attempt.number, error, log, tail, end, cause)


def log_tail(attempt: AttemptFolder) -> tuple[str, ...]:
    """The last lines that an attempt printed."""
    try:
        with attempt.log.open("rb") as file:
            file.seek(max(0, attempt.log.stat().st_size - 16384))
            return tuple(file.read().decode(errors="replace").splitlines()[-LOG_LINES:])
    except OSError:
        return ()


def _record(folder: TrialFolder) -> Record | None:
    record = _object(folder.result) if folder.result.exists() else {}
    sound = record_fault(record) is None and record["trial"] == folder.id and record["end"] in ENDS
    return record if sound else None


def _label(folder: TrialFolder) -> Label | None:
    config = _object(folder.config)
    return None if label_fault(config) else Label.of(config)


def _object(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except (OSError, ValueError):
        return {}
