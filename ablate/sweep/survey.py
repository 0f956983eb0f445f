"""What the folders of a study say before anything runs: they are the truth, whatever the index remembers."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.records.layout import AttemptFolder, StudyFolder, TrialFolder, read_json
from ablate.records.shapes import label_fault, record_fault
from ablate.sweep.events import Failure
from ablate.sweep.index import GAVE_UP, FailedAttempt, Label, Record

ENDS = ("complete", "diverged")
LOG_LINES = 20


@dataclass(frozen=True)
class Survey:
    """Every sealed record and every attempt of a study that failed or timed out, planned now or not."""

    records: Mapping[str, Record]
    failed: tuple[FailedAttempt, ...]
    damaged: tuple[str, ...]
    """Trials whose record could not be read; it was set aside, and they run again."""

    def waiting_for_retry(self) -> dict[str, FailedAttempt]:
        """The trials whose last attempt failed or timed out, and that attempt."""
        return {
            attempt.label.trial: attempt
            for attempt in self.failed
            if attempt.last and attempt.label.trial not in self.records
        }

    def fates(
        self, planned: Iterable[str], chosen: Collection[str], retry: Collection[str], limit: int | None
    ) -> Iterator[tuple[str, str]]:
        """What a call does with each planned trial, in the order in which it starts them.

        Gives the trial's identity with ``sealed`` (it has its result), ``run``, ``held`` (it waits, and is not to be
        started), or how it ended that is not to be run again: ``failed`` or ``timed_out``.
        """
        gave_up = self.waiting_for_retry()
        left = limit
        for trial in planned:
            if trial in self.records:
                yield trial, "sealed"
            elif trial in gave_up and (gave_up[trial].end not in retry or trial not in chosen):
                yield trial, gave_up[trial].end
            elif trial not in chosen or left == 0:
                yield trial, "held"
            else:
                left = None if left is None else left - 1
                yield trial, "run"


def survey(study: StudyFolder, *, mend: bool = True) -> Survey:
    """Read all folders of a study; ``mend`` sets damaged records aside."""
    records: dict[str, Record] = {}
    failed: list[FailedAttempt] = []
    damaged: list[str] = []
    for folder in study.trials():
        record = _record(folder)
        if record is not None:
            records[folder.id] = record
        elif folder.result.exists():
            if mend:
                os.replace(folder.result, folder.result.with_suffix(".damaged.json"))
            damaged.append(folder.id)
        attempts = folder.attempts()
        for attempt in attempts:
            if attempt.end.exists() and (label := _label(folder)):
                end, error = how_it_ended(attempt)
                failed.append(FailedAttempt(label, attempt.number, error, attempt == attempts[-1], end))
    return Survey(records, tuple(failed), tuple(damaged))


def how_it_ended(attempt: AttemptFolder) -> tuple[str, str]:
    """The end that an attempt without a result has sealed, ``failed`` or ``timed_out``, and why in one line."""
    sealed = _object(attempt.end)
    end = sealed.get("end")
    return end if end in GAVE_UP else "failed", str(sealed.get("error", "its end.json cannot be read"))


def failure(label: Label, attempt: AttemptFolder, end: str, error: str) -> Failure:
    """What is known of an attempt that gave no result."""
    return Failure(label.trial, label.arm_name, label.seed, attempt.number, error, attempt.log, log_tail(attempt), end)


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
