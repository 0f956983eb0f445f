"""The Optuna study: an index of what the trials' folders say, which can be made anew from them at any time.

The driver alone writes it. Trials are added as a slot takes them, since a queue of waiting trials makes every later
question slow. Nothing here is on a trial's way: a trial is handed out first and entered afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import InterfaceError, OperationalError

from ablate.sweep.bookkeeping.labels import FailedAttempt, Label, Record
from ablate.sweep.bookkeeping.proposals import Proposals, Value
from ablate.sweep.bookkeeping.storage import Direction, LostError, Storage
from ablate.sweep.bookkeeping.tables import Tables
from ablate.sweep.disk import trouble
from ablate.sweep.workers.worker import one_line

__all__ = ["FailedAttempt", "Index", "Label", "Record"]

WORST = 1e9
"""What a diverged trial is told as, with the sign that is bad: finite, since infinity breaks samplers and plots."""
GAVE_UP = ("failed", "timed_out", "pruned")
"""Ends of an attempt that gave no result."""


@dataclass
class _Entry:
    """A trial in Optuna that has not ended."""

    id: int
    attempt: int | None
    runs: bool


class Index:
    """The trials of one study in Optuna, one finished trial a record and one FAIL a failed attempt.

    Every entry may be made again after it failed half-way, or failed and yet reached the database: after any error the
    study is read again before more is entered, and what is there already is left as it is.
    """

    def __init__(
        self,
        storage: Storage,
        name: str,
        objective: Mapping[str, Any],
        on_trouble: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """Open the study, or make it; ``on_trouble`` is told what the database says, also where Optuna tries again."""
        self._storage = storage
        self._metric = objective["metric"]
        self._direction: Direction = "minimize" if objective["goal"] == "min" else "maximize"
        self._open: dict[str, _Entry] = {}
        """What Optuna has of each trial that has not ended, by our identity."""
        self._results: set[str] = set()
        """The trials whose results it has."""
        self._failed: set[tuple[str, int]] = set()
        """The failed attempts that it has."""
        self._anew = False
        """Whether it has lost all, and is made anew: one word on that is enough, and not one a trial."""
        self._tables = Tables(storage, name, self._metric, self._direction, on_trouble)
        self._proposals = Proposals(self._tables, name)

    @property
    def differences(self) -> list[tuple[str | None, str]]:
        """What had to be put right so far: the trial, or None for the study, and what it was."""
        return self._storage.differences

    @property
    def written(self) -> int:
        """How many times something was written."""
        return self._tables.written

    def reconcile(
        self, records: Mapping[str, Record], failed: Collection[FailedAttempt], planned: Collection[str]
    ) -> None:
        """Make the index say what the folders say; at a start nothing runs, whatever it says."""
        trials, reason = self._readable()
        if reason := reason or self._beyond_repair(trials, records):
            self._renew(reason)
            trials = {}
        elif records and not trials:
            self._differs(None, f"the index knew none of {len(records)} results")
        self._anew = self._anew or not trials
        self._tables.shaken = False
        self._know(trials)
        last_failed = {attempt.label.trial for attempt in failed if attempt.last}
        for trial, entry in list(self._open.items()):
            if trial in records or trial in last_failed:
                continue  # it is finished below
            if trial not in planned:
                self._tables.finish(entry.id, "interrupted", "interrupted")
                del self._open[trial]
            elif entry.runs:
                self._differs(trial, "was still marked as running")
                self.waits(trial)
        for trial, record in records.items():
            if trial not in self._results:
                if not self._anew:
                    self._differs(trial, "has a result that the index had not")
                self.sealed(record)
        for attempt in failed:
            if (attempt.label.trial, attempt.attempt) not in self._failed:
                if not self._anew:
                    how = attempt.end.replace("_", " ")
                    self._differs(attempt.label.trial, f"{how} in attempt {attempt.attempt}, unknown to the index")
                self.failed(attempt.label, attempt.attempt, attempt.error, attempt.end)

    def runs(self, label: Label, attempt: int) -> None:
        """A slot has taken the trial."""
        self.settle()
        entry = self._open.get(label.trial)
        if entry is None:
            id = self._tables.add(TrialState.RUNNING, label.attributes(attempt))
            self._open[label.trial] = _Entry(id, attempt, True)
        else:
            self._note_attempt(entry, attempt)
            self._tables.set(entry.id, TrialState.RUNNING)
            entry.runs = True

    def waits(self, trial: str) -> None:
        """The trial was stopped and will go on with the same call."""
        self.settle()
        if entry := self._open.get(trial):
            self._tables.set(entry.id, TrialState.WAITING)
            entry.runs = False

    def reached(self, trial: str, step: int, value: float | None) -> None:
        """A tuning trial has come to a rung, and waits to be judged."""
        self.settle()
        if entry := self._open.get(trial):
            self._tables.reached(entry.id, step, math.nan if value is None else value)
            self._tables.set(entry.id, TrialState.WAITING)
            entry.runs = False

    def sealed(self, record: Record) -> None:
        """The trial has its result."""
        self.settle()
        trial, value, end = record["trial"], self._value(record), record["end"]
        if trial in self._results:
            return
        if entry := self._open.get(trial):
            self._note_attempt(entry, record["attempt"])
            self._tables.note(entry.id, end=end)
            self._tables.set(entry.id, TrialState.COMPLETE, value)
        else:
            attributes = Label.of(record).attributes(record["attempt"]) | {"end": end}
            self._tables.add(TrialState.COMPLETE, attributes, value)
        self._open.pop(trial, None)
        self._results.add(trial)

    def failed(self, label: Label, attempt: int, error: str, end: str = "failed") -> None:
        """The trial has failed, timed out or was given up for good, or until it goes on as a new Optuna trial."""
        self.settle()
        if (label.trial, attempt) in self._failed:
            return
        state = TrialState.PRUNED if end == "pruned" else TrialState.FAIL
        if entry := self._open.get(label.trial):
            self._note_attempt(entry, attempt)
            self._tables.finish(entry.id, end, error, state)
        else:
            self._tables.add(state, label.attributes(attempt) | {"end": end, "reason": error})
        self._open.pop(label.trial, None)
        self._failed.add((label.trial, attempt))

    def proposal(
        self,
        arm_name: str,
        number: int,
        params: Mapping[str, Value],
        distributions: Mapping[str, BaseDistribution],
        value: float | None,
        state: TrialState,
        *,
        rungs: Mapping[int, float] | None = None,
    ) -> None:
        """Enter a finished proposal of an arm's tuning into the study ``NAME: tuning of ARM``; one that is there stays.

        Args:
            arm_name: the arm's name.
            number: which proposal of the arm, from 0.
            params: the proposed values.
            distributions: what each was drawn from.
            value: the objective's mean over the tuning seeds; a proposal that was pruned or failed may have none.
            state: how it ended.
            rungs: the values at the rungs that it was judged at, by step.
        """
        self.settle()
        if renewed := self._proposals.enter(arm_name, number, params, distributions, value, state, rungs or {}):
            self._differs(None, renewed)

    def settle(self) -> None:
        """After an error, read what is there: what failed may have been written, and even twice."""
        if self._tables.shaken:
            self._tables.shaken = False  # an error from here on counts again
            self._proposals.forget()
            try:
                self._know(self._trials())
            except BaseException:
                self._tables.shaken = True
                raise

    def leave(self) -> None:
        """Have nothing more written; may be called from another thread."""
        self._tables.leave()

    def close(self) -> None:
        """Let go of the database."""
        self._tables.close()

    def _value(self, record: Record) -> float:
        value = record["metrics"].get(self._metric) if record["end"] == "complete" else None
        if isinstance(value, int | float) and math.isfinite(value):
            return float(value)
        return WORST if self._direction == "minimize" else -WORST

    def _note_attempt(self, entry: _Entry, attempt: int) -> None:
        if entry.attempt != attempt:
            self._tables.note(entry.id, attempt=attempt)
            entry.attempt = attempt

    # --- what is there ---

    def _know(self, trials: Mapping[str, list[FrozenTrial]]) -> None:
        """Take over what the study has; of what is there twice, which only an error can have made, one is closed."""
        self._open.clear()
        self._results = {trial for trial, known in trials.items() if any(map(_has_result, known))}
        self._failed = {
            (trial, entry.user_attrs.get("attempt", 0))
            for trial, known in trials.items()
            for entry in known
            if entry.state.is_finished() and entry.user_attrs.get("end") in GAVE_UP
        }
        for trial, known in trials.items():
            for entry in known:
                if entry.state.is_finished():
                    continue
                if trial in self._results or trial in self._open:
                    self._tables.finish(entry._trial_id, "interrupted", "interrupted")
                else:
                    runs = entry.state == TrialState.RUNNING
                    self._open[trial] = _Entry(entry._trial_id, entry.user_attrs.get("attempt"), runs)

    def _readable(self) -> tuple[dict[str, list[FrozenTrial]], str | None]:
        """Our trials, and why they cannot be read: SQLite knows its pages, and not what a damaged text in one means."""
        try:
            return self._trials(), None
        except Exception as error:
            way = LostError | OperationalError | InterfaceError
            if trouble(error) or isinstance(error, way) or isinstance(error.__cause__, way):
                raise  # of the disk or the way there, and not of what is on it
            return {}, f"the index was damaged ({one_line(error)})"

    def _trials(self) -> dict[str, list[FrozenTrial]]:
        """Our trials by identity; what somebody else put into the study is left alone."""
        trials: dict[str, list[FrozenTrial]] = {}
        for entry in self._tables.trials():
            if isinstance(trial := entry.user_attrs.get("trial"), str):
                trials.setdefault(trial, []).append(entry)
        return trials

    def _beyond_repair(self, trials: Mapping[str, list[FrozenTrial]], records: Mapping[str, Record]) -> str | None:
        """Why the index must be made anew: Optuna never changes a finished trial."""
        if self._tables.direction != self._direction:
            return "the objective's goal has changed"
        for trial, known in trials.items():
            told = [entry.value for entry in known if _has_result(entry)]
            if len(told) > 1:
                return f"trial {trial} had {len(told)} results in it"
            if told and trial not in records:
                return f"trial {trial} had a result in it and no record"
            if told and told[0] != self._value(records[trial]):
                return f"trial {trial} had another value in it than its record has for {self._metric}"
        return None

    def _differs(self, trial: str | None, difference: str) -> None:
        if (trial, difference) not in self.differences:
            self.differences.append((trial, difference))

    def _renew(self, reason: str) -> None:
        old = self._tables.renew()
        self._anew = True
        self._differs(None, f"{reason}; the index was made anew, and the old one is {old}")


def _has_result(entry: FrozenTrial) -> bool:
    return entry.state == TrialState.COMPLETE
