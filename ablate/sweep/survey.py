"""What the folders of a study say before anything runs: they are the truth, whatever the index remembers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.records.layout import AttemptFolder, StudyFolder, TrialFolder, read_json
from ablate.records.shapes import label_fault, record_fault
from ablate.sweep.index import FailedAttempt, Label, Record

ENDS = ("complete", "diverged")
LOG_LINES = 20


@dataclass(frozen=True)
class Survey:
    """Every sealed record and every failed attempt of a study, planned now or not."""

    records: Mapping[str, Record]
    failed: tuple[FailedAttempt, ...]
    damaged: tuple[str, ...]
    """Trials whose record could not be read; it was set aside, and they run again."""

    def waiting_for_retry(self) -> dict[str, FailedAttempt]:
        """The trials whose last attempt failed, and that attempt."""
        return {
            attempt.label.trial: attempt
            for attempt in self.failed
            if attempt.last and attempt.label.trial not in self.records
        }


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
            error = _error(attempt)
            label = _label(folder) if error is not None else None
            if error is not None and label is not None:
                failed.append(FailedAttempt(label, attempt.number, error, last=attempt == attempts[-1]))
    return Survey(records, tuple(failed), tuple(damaged))


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


def _error(attempt: AttemptFolder) -> str | None:
    if not attempt.end.exists():
        return None
    return str(_object(attempt.end).get("error", "its end.json cannot be read"))


def _object(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except (OSError, ValueError):
        return {}
