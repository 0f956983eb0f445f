"""The Optuna study: an index of what the trials' folders say, which can be made anew from them at any time.

The driver alone writes it. Trials are added as a slot takes them, since a queue of waiting trials makes every later
question slow. Nothing here is on a trial's way: a trial is handed out first and entered afterwards.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from ablate.errors import RefusedError
from ablate.sweep.disk import trouble
from ablate.sweep.worker import one_line

WORST = 1e9
"""What a diverged trial is told as, with the sign that is bad: finite, since infinity breaks samplers and plots."""
GAVE_UP = ("failed", "timed_out")
"""Ends of an attempt that is missing data, and no result."""
PATIENCE = 60.0
"""Seconds to wait for another program, as a dashboard, that writes to the file."""

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Label:
    """What a trial is called, in words; the same keys are in a sealed record."""

    trial: str
    arm_name: str
    seed: int
    levels: Mapping[str, Any]

    @classmethod
    def of(cls, record: Record) -> Label:
        """The label that a record or a trial's configuration carries."""
        return cls(record["trial"], record["arm_name"], record["seed"], record["levels"])

    def attributes(self, attempt: int) -> dict[str, Any]:
        """User attributes: levels may be any JSON value, which Optuna's parameters may not."""
        return {
            "trial": self.trial,
            "arm": self.arm_name,
            "seed": self.seed,
            "levels": dict(self.levels),
            "attempt": attempt,
        }


@dataclass(frozen=True)
class FailedAttempt:
    """An attempt that sealed its own end, and why."""

    label: Label
    attempt: int
    error: str
    last: bool
    """Whether the trial has no later attempt, and so waits for a retry."""
    end: str = "failed"
    """``failed`` or ``timed_out``."""


@dataclass
class _Entry:
    """A trial in Optuna that has not ended."""

    id: int
    attempt: int | None


class Index:
    """The trials of one study in Optuna, one finished trial a record and one FAIL a failed attempt."""

    def __init__(self, path: Path, name: str, objective: Mapping[str, Any]) -> None:
        """Open the file, or make it; one that is damaged is set aside."""
        self._path = path.absolute()
        self._name = name
        self._metric = objective["metric"]
        self._direction: Literal["minimize", "maximize"] = "minimize" if objective["goal"] == "min" else "maximize"
        self._open: dict[str, _Entry] = {}
        """What Optuna has of each trial that has not ended, by our identity."""
        self.differences: list[tuple[str | None, str]] = []
        """What had to be put right: the trial, and what it was."""
        self._storage, self._study = self._connect()

    def reconcile(
        self, records: Mapping[str, Record], failed: Collection[FailedAttempt], planned: Collection[str]
    ) -> None:
        """Make the index say what the folders say; at a start nothing runs, whatever it says."""
        trials, reason = self._readable()
        if reason := reason or self._beyond_repair(trials, records):
            self._renew(reason)
            trials = {}
        elif records and not trials:
            self.differences.append((None, f"the index knew none of {len(records)} results"))
        told = bool(trials)  # one word on an index that is made anew, not one a trial
        last_failed = {attempt.label.trial for attempt in failed if attempt.last}
        for trial, known in trials.items():
            unfinished = [entry for entry in known if not entry.state.is_finished()]
            ends = trial in records or trial in last_failed
            for entry in unfinished:
                if trial in self._open or not (ends or trial in planned):
                    self._finish(entry._trial_id, TrialState.FAIL, "interrupted", "interrupted")
                    continue
                self._open[trial] = _Entry(entry._trial_id, entry.user_attrs.get("attempt"))
                if not ends and entry.state == TrialState.RUNNING:
                    self.differences.append((trial, "was still marked as running"))
                    self.waits(trial)
        for trial, record in records.items():
            if not any(entry.state == TrialState.COMPLETE for entry in trials.get(trial, [])):
                if told:
                    self.differences.append((trial, "has a result that the index had not"))
                self.sealed(record)
        for attempt in failed:
            known = trials.get(attempt.label.trial, [])
            if not any(_is_fail_of(entry, attempt.attempt) for entry in known):
                if told:
                    how = attempt.end.replace("_", " ")
                    difference = f"{how} in attempt {attempt.attempt}, unknown to the index"
                    self.differences.append((attempt.label.trial, difference))
                self.failed(attempt.label, attempt.attempt, attempt.error, attempt.end)

    def runs(self, label: Label, attempt: int) -> None:
        """A slot has taken the trial."""
        if entry := self._open.get(label.trial):
            self._note_attempt(entry, attempt)
            self._storage.set_trial_state_values(entry.id, TrialState.RUNNING)
        else:
            self._open[label.trial] = _Entry(self._add(TrialState.RUNNING, label.attributes(attempt)), attempt)

    def waits(self, trial: str) -> None:
        """The trial was stopped and will go on with the same call."""
        self._storage.set_trial_state_values(self._open[trial].id, TrialState.WAITING)

    def sealed(self, record: Record) -> None:
        """The trial has its result."""
        value, end = self._value(record), record["end"]
        entry = self._open.pop(record["trial"], None)
        if entry is None:
            attributes = Label.of(record).attributes(record["attempt"]) | {"end": end}
            self._add(TrialState.COMPLETE, attributes, value)
        else:
            self._note_attempt(entry, record["attempt"])
            self._note(entry.id, end=end)
            self._storage.set_trial_state_values(entry.id, TrialState.COMPLETE, [value])

    def failed(self, label: Label, attempt: int, error: str, end: str = "failed") -> None:
        """The trial has failed or timed out for good, or until it is retried as a new Optuna trial."""
        entry = self._open.pop(label.trial, None)
        if entry is None:
            attributes = label.attributes(attempt) | {"end": end, "reason": error}
            self._add(TrialState.FAIL, attributes)
        else:
            self._note_attempt(entry, attempt)
            self._finish(entry.id, TrialState.FAIL, end, error)

    def close(self) -> None:
        """Let go of the file."""
        self._storage.remove_session()
        self._storage.engine.dispose()

    def _value(self, record: Record) -> float:
        value = record["metrics"].get(self._metric) if record["end"] == "complete" else None
        if isinstance(value, int | float) and math.isfinite(value):
            return float(value)
        return WORST if self._direction == "minimize" else -WORST

    def _add(self, state: TrialState, attributes: dict[str, Any], value: float | None = None) -> int:
        return self._storage.create_new_trial(
            self._study, create_trial(state=state, value=value, user_attrs=attributes)
        )

    def _note_attempt(self, entry: _Entry, attempt: int) -> None:
        if entry.attempt != attempt:
            self._note(entry.id, attempt=attempt)
            entry.attempt = attempt

    def _note(self, entry: int, **attributes: object) -> None:
        for key, value in attributes.items():
            self._storage.set_trial_user_attr(entry, key, value)

    def _finish(self, entry: int, state: TrialState, end: str, reason: str) -> None:
        self._note(entry, end=end, reason=reason)
        self._storage.set_trial_state_values(entry, state)

    def _readable(self) -> tuple[dict[str, list[FrozenTrial]], str | None]:
        """Our trials, and why they cannot be read: SQLite knows its pages, and not what a damaged text in one means."""
        try:
            return self._trials(), None
        except Exception as error:
            if trouble(error):  # of the disk, and not of what is on it
                raise
            return {}, f"the index was damaged ({one_line(error)})"

    def _trials(self) -> dict[str, list[FrozenTrial]]:
        """Our trials by identity; what somebody else put into the study is left alone."""
        trials: dict[str, list[FrozenTrial]] = {}
        for entry in self._storage.get_all_trials(self._study, deepcopy=False):
            if isinstance(trial := entry.user_attrs.get("trial"), str):
                trials.setdefault(trial, []).append(entry)
        return trials

    def _beyond_repair(self, trials: Mapping[str, list[FrozenTrial]], records: Mapping[str, Record]) -> str | None:
        """Why the index must be made anew: Optuna never changes a finished trial."""
        if self._storage.get_study_directions(self._study)[0].name != self._direction.upper():
            return "the objective's goal has changed"
        for trial, known in trials.items():
            told = [entry.value for entry in known if entry.state == TrialState.COMPLETE]
            if len(told) > 1:
                return f"trial {trial} had {len(told)} results in it"
            if told and trial not in records:
                return f"trial {trial} had a result in it and no record"
            if told and told[0] != self._value(records[trial]):
                return f"trial {trial} had another value in it than its record has for {self._metric}"
        return None

    def _renew(self, reason: str) -> None:
        self.close()
        self._set_aside(reason)
        self._storage, self._study = self._connect()

    def _set_aside(self, reason: str) -> None:
        aside = self._path.with_suffix(".old.db")
        for suffix in ("", "-wal", "-shm"):  # a journal left behind would be played into the new file
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self._path}{suffix}", f"{aside}{suffix}")
        self.differences.append((None, f"{reason}; the index was made anew, and the old one is {aside.name}"))

    def _connect(self) -> tuple[RDBStorage, int]:
        if reason := self._damage():
            self._set_aside(reason)
        with _quiet():
            try:
                # A creator, and not a URL, which would read `?` or `{` in a folder's name as its own.
                storage = RDBStorage("sqlite://", engine_kwargs={"creator": self._opened})
            except RuntimeError:  # the file's tables are those of another version of Optuna
                self._set_aside("another version of Optuna wrote the index")
                return self._connect()
            optuna.create_study(study_name=self._name, storage=storage, direction=self._direction, load_if_exists=True)
            return storage, storage.get_study_id_from_name(self._name)

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=PATIENCE)
        connection.execute("PRAGMA journal_mode=WAL")
        # Synced at checkpoints alone: a power cut may cost the last entries, which the next start puts right.
        connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    def _damage(self) -> str | None:
        """What is wrong with the file, or None; damage is told from a lock that another program holds."""
        if not self._path.exists():
            return None
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=PATIENCE)) as connection:
                found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            return None if found == "ok" else f"the index was damaged ({found})"
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                return f"the index was damaged ({error})"
            if trouble(error):
                raise
            raise RefusedError(f"{self._path} cannot be used: {error}") from error


def _is_fail_of(entry: FrozenTrial, attempt: int) -> bool:
    noted = entry.user_attrs
    return entry.state == TrialState.FAIL and noted.get("end") in GAVE_UP and noted.get("attempt") == attempt


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's word that a study was created: the user has not asked for one."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
