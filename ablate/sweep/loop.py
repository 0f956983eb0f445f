"""The loop of a sweep: trials go to a pool until each has its end, a signal comes or the budget is used up."""

from __future__ import annotations

import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ablate.errors import AblateError
from ablate.records.layout import AttemptFolder, StudyFolder, read_json
from ablate.records.sealing import seal
from ablate.records.steps import furthest_step, noted_step
from ablate.records.usage import Use
from ablate.slots import Advanced, Ended, Job, Pool
from ablate.sweep.books import Books
from ablate.sweep.budget import Budget
from ablate.sweep.events import (
    Beat,
    Counts,
    Event,
    Failure,
    Interrupted,
    Outcome,
    Reconciled,
    Stopping,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    TrialProgress,
    TrialStarted,
    WorkerLost,
)
from ablate.sweep.index import Index, Label, Record
from ablate.sweep.lock import now
from ablate.sweep.preparing import Configs, next_attempt, write_config
from ablate.sweep.signals import Stop
from ablate.sweep.storage import Storage
from ablate.sweep.survey import failure, how_it_ended, survey

PATIENCE = 8.0
"""Seconds that a stopped sweep waits for checkpoints; with what follows it ends within ten."""
PULSE = 0.2
"""Seconds to wait for reports at most, and so until a signal is noticed."""


@dataclass(frozen=True)
class _Running:
    label: Label
    attempt: AttemptFolder
    slot: int
    began: float

    def ended(
        self, end: str, *, value: float | None = None, reason: str | None = None, failure: Failure | None = None
    ) -> TrialEnded:
        label, seconds = self.label, time.monotonic() - self.began
        number = self.attempt.number
        return TrialEnded(
            label.trial, label.arm_name, label.seed, number, self.slot, end, value, reason, seconds, failure
        )


class Loop:
    """One call of :func:`ablate.sweep.sweep`: what it has to do, what runs, and what became of the rest."""

    def __init__(
        self,
        study: StudyFolder,
        plan: Mapping[str, Any],
        pool: Pool,
        *,
        job: Job,
        emit: Callable[[Event], None],
        stop: Stop,
        budget: Budget,
        storage: Storage,
    ) -> None:
        """Nothing is looked at or started yet."""
        self._study = study
        self._plan = plan
        self._configs = Configs(plan)
        self._pool = pool
        self._job = job
        """What all jobs have in common."""
        self._emit = emit
        self._stop = stop
        self._budget = budget
        self._exhausted: Use | None = None
        self._stale: str | None = None
        """Why no trial can run any more."""
        self._planned = {label.trial: label for label in self._configs.labels()}
        self._waiting: deque[Label] = deque()
        self._held = 0
        """How many wait too, and are not to be started by this call."""
        self._running: dict[str, _Running] = {}
        self._ends: dict[str, str] = {}
        self._failures: dict[str, Failure] = {}
        self._losses: dict[str, int] = {}
        """Attempts lost in a row without a new checkpoint."""
        self._written: set[str] = set()
        self._places = pool.slots(job.device, job.threads)
        self._slots = list(range(self._places))
        self._books = Books(storage, plan["name"], plan["objective"], emit)
        self._beat = time.monotonic()

    def __call__(self, retry: frozenset[str], limit: int | None, chosen: frozenset[str]) -> Outcome:
        """Start the chosen trials that are missing, at most ``limit``, and see each to its end.

        Raises:
            AblateError: the disk takes nothing more, nothing can run, or what the plan was made from has changed.
            Interrupted: a signal came.
        """
        reconcile = self._look(retry, limit, chosen)
        metric = self._plan["objective"]["metric"]
        self._exhausted = self._budget.exhausted()
        to_run = 0 if self._exhausted else len(self._waiting)
        self._emit(SweepStarted(self._counts(), to_run, self._places, metric))
        try:
            self._books.enter(reconcile)
            self._books.start()
            if not self._exhausted:
                self._loop()
            for trial in self._running:
                self._books.enter(_waits(trial))
            self._books.close(lambda: self._stop.signal is not None)
        finally:
            self._books.leave()
        unfinished = bool(self._running or self._waiting)
        interrupted = self._stop.signal is not None and unfinished
        self._waiting.extend(running.label for running in self._running.values())
        self._running.clear()
        outcome = Outcome(self._counts(), tuple(self._failures.values()), self._exhausted if unfinished else None)
        self._emit(SweepEnded(outcome, interrupted))
        if interrupted:
            raise Interrupted(f"stopped by {self._stop.signal}; the same command goes on from here")
        if self._stale:
            raise AblateError(self._stale)
        return outcome

    # --- what there is to do ---

    def _look(self, retry: frozenset[str], limit: int | None, chosen: frozenset[str]) -> Callable[[Index], None]:
        """Sort the planned trials by what their folders say; gives what puts the index right."""
        found = survey(self._study)
        for trial in found.damaged:
            self._emit(Reconciled(trial, "its record was damaged; it was set aside, and the trial runs again"))
        gave_up = found.waiting_for_retry()
        for id, fate in found.fates(self._planned, chosen, retry, limit):
            if fate == "sealed":
                self._ends[id] = found.records[id]["end"]
            elif fate == "run":
                self._waiting.append(self._planned[id])
            elif fate == "held":
                self._held += 1
            else:
                attempt = self._study.trial(id).attempt(gave_up[id].attempt)
                self._failures[id] = failure(self._planned[id], attempt, fate, gave_up[id].error)

        def reconcile(index: Index) -> None:
            index.reconcile(found.records, found.failed, self._planned.keys())

        return reconcile

    def _counts(self) -> Counts:
        ends = [*self._ends.values(), *(each.end for each in self._failures.values())]
        counts = Counts(
            planned=len(self._planned),
            complete=ends.count("complete"),
            diverged=ends.count("diverged"),
            failed=ends.count("failed"),
            running=len(self._running),
            waiting=len(self._waiting) + self._held,
            timed_out=ends.count("timed_out"),
        )
        assert counts.planned == len(ends) + counts.running + counts.waiting
        return counts

    # --- the loop ---

    @property
    def _stopping(self) -> bool:
        """Whether no further trial is to be started."""
        return bool(self._stop.signal or self._exhausted or self._stale)

    def _loop(self) -> None:
        deadline = float("inf")
        stopped = False
        while self._running or (self._waiting and not stopped):
            if not self._stopping:
                self._exhausted = self._budget.exhausted()
            if self._stopping and not stopped:
                stopped, deadline = True, time.monotonic() + PATIENCE
                if self._stop.signal or self._running:
                    self._emit(Stopping(self._stop.signal, self._exhausted, self._stale))
                self._pool.stop()
            if time.monotonic() > deadline:
                return
            self._hand_out()
            self._books.look()
            self._write_ahead()
            for report in self._pool.reports(PULSE):
                if isinstance(report, Advanced):
                    self._advance(report)
                elif report.trial in self._running:
                    self._end(report)
            if time.monotonic() - self._beat >= 1:
                self._beat = time.monotonic()
                self._emit(Beat(self._counts()))

    def _hand_out(self) -> None:
        while self._slots and self._waiting and not self._stopping:
            label = self._waiting.popleft()
            folder = self._study.trial(label.trial)
            self._write_config(label)
            attempt = next_attempt(folder)
            slot = heapq.heappop(self._slots)
            self._running[folder.id] = _Running(label, attempt, slot, time.monotonic())
            self._pool.submit(
                replace(self._job, trial=folder.id, folder=str(folder.path.resolve()), attempt=attempt.number)
            )
            self._emit(TrialStarted(folder.id, label.arm_name, label.seed, attempt.number, slot))
            self._books.enter(_runs(label, attempt.number))

    def _write_config(self, label: Label) -> None:
        if label.trial not in self._written:
            write_config(self._study.trial(label.trial), self._configs[label.trial])
            self._written.add(label.trial)

    def _write_ahead(self) -> None:
        """Write the next trials' configurations: being sure of a file takes longer than anything at a start."""
        for label in itertools.islice(self._waiting, 0 if self._stopping else self._places):
            self._write_config(label)

    def _advance(self, report: Advanced) -> None:
        if running := self._running.get(report.trial):
            self._budget.trains(report.trial)
            self._emit(
                TrialProgress(
                    report.trial, running.slot, report.step, report.steps, report.loss, report.tokens_per_second
                )
            )

    # --- how trials end ---

    def _end(self, report: Ended) -> None:
        running = self._running.pop(report.trial)
        heapq.heappush(self._slots, running.slot)
        folder = self._study.trial(report.trial)
        self._losses.setdefault(folder.id, 0)
        self._budget.ended(folder)
        if folder.result.exists():  # whatever the worker died of afterwards
            self._sealed(running, read_json(folder.result))
        elif report.end == "failed":
            self._failed(running, report.error or "")
        elif report.end == "timed_out":
            self._failed(running, how_it_ended(running.attempt)[1], "timed_out")
        elif self._stopping or report.end == "stale":
            if report.end == "stale":
                self._stale = report.error
            self._waiting.appendleft(running.label)
            self._books.enter(_waits(folder.id))
        else:
            self._lost(running, report.error or report.end)

    def _sealed(self, running: _Running, record: Record) -> None:
        self._ends[running.label.trial] = record["end"]
        value = record["metrics"].get(self._plan["objective"]["metric"])
        reason = "{rule} at step {step}".format(**record["reason"]) if record.get("reason") else None
        self._emit(running.ended(record["end"], value=value, reason=reason))
        self._books.enter(lambda index: index.sealed(record))

    def _failed(self, running: _Running, error: str, end: str = "failed") -> None:
        label, attempt = running.label, running.attempt
        seal(attempt.end, {"end": end, "error": error, "at": now()})  # the worker has, if it could
        found = self._failures[label.trial] = failure(label, attempt, end, error)
        self._emit(running.ended(end, reason=error, failure=found))
        self._books.enter(lambda index: index.failed(label, attempt.number, error, end))

    def _lost(self, running: _Running, cause: str) -> None:
        label, attempt = running.label, running.attempt
        self._losses[label.trial] = 0 if self._got_further(attempt) else self._losses[label.trial] + 1
        again = self._losses[label.trial] <= self._plan["budget"]["retries"]
        self._emit(WorkerLost(label.trial, label.arm_name, label.seed, attempt.number, running.slot, cause, again))
        if again:
            self._waiting.appendleft(running.label)
        else:
            times = self._losses[label.trial]
            self._failed(running, f"its worker was lost {times} times in a row without a new checkpoint ({cause})")

    def _got_further(self, attempt: AttemptFolder) -> bool:
        """Whether the attempt's checkpoint is work that none before it had done: one that only exists may be old."""
        step = noted_step(attempt)
        before = furthest_step(self._study.trial(attempt.path.parent.name), before=attempt.number)
        return step is not None and (before is None or step > before)


def _runs(label: Label, attempt: int) -> Callable[[Index], None]:
    return lambda index: index.runs(label, attempt)


def _waits(trial: str) -> Callable[[Index], None]:
    return lambda index: index.waits(trial)
