"""The loop of a sweep: trials go to a pool until each has its end, a signal comes or the budget is used up."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ablate.errors import AblateError
from ablate.records.layout import AttemptFolder, StudyFolder, read_json
from ablate.records.needs import need_of
from ablate.records.steps import furthest_step, noted_step
from ablate.records.usage import Use
from ablate.slots import Advanced, Ended, Job, Pool
from ablate.sweep.backlog import Backlog
from ablate.sweep.bookkeeping.books import Books
from ablate.sweep.bookkeeping.index import Index, Label, Record
from ablate.sweep.budget import Budget
from ablate.sweep.events import (
    BatchSplit,
    Beat,
    Counts,
    Crowded,
    Event,
    Failure,
    Interrupted,
    Outcome,
    Paused,
    Stopping,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    TrialProgress,
    TrialStarted,
    WorkerLost,
)
from ablate.sweep.preparing import next_attempt
from ablate.sweep.signals import Stop
from ablate.sweep.silence import Silence
from ablate.sweep.survey import rung_of
from ablate.sweep.workers.lifeline import lost_by

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
        return TrialEnded(label.trial, label.shown, label.seed, number, self.slot, end, value, reason, seconds, failure)


class Loop:
    """One call of :func:`ablate.sweep.sweep`: what it has to do, what runs, and what became of the rest."""

    def __init__(
        self,
        study: StudyFolder,
        backlog: Backlog,
        books: Books,
        pool: Pool,
        *,
        job: Job,
        emit: Callable[[Event], None],
        stop: Stop,
        budget: Budget,
    ) -> None:
        """Nothing is looked at or started yet."""
        self._study = study
        self._backlog = backlog
        self._books = books
        self._pool = pool
        self._job = job
        """What all jobs have in common."""
        self._emit = emit
        self._stop = stop
        self._budget = budget
        self._exhausted: Use | None = None
        self._stale: str | None = None
        """Why no trial can run any more."""
        self._running: dict[str, _Running] = {}
        self._losses: dict[str, int] = {}
        """Attempts lost in a row without a new checkpoint."""
        self._micro_batches: dict[str, int] = {}
        """Of the trials whose batch is split."""
        self._silence = Silence(backlog.plan["budget"].get("trial_timeout"))
        self._need = need_of(backlog.plan)
        self._places = pool.room(self._need).places
        self._slots = list(range(self._places))
        self._beat = time.monotonic()

    def __call__(self) -> Outcome:
        """Start the trials that are missing, and see each to its end.

        Raises:
            AblateError: the disk takes nothing more, nothing can run, or what the plan was made from has changed.
            Interrupted: a signal came.
        """
        backlog = self._backlog
        backlog.begin()
        metric = backlog.plan["objective"]["metric"]
        self._exhausted = self._budget.exhausted()
        to_run = 0 if self._exhausted else len(backlog.waiting) + backlog.unopened
        self._emit(SweepStarted(self._counts(), to_run, self._places, metric, backlog.to_do()))
        if (room := self._pool.room(self._need)).short and to_run:
            self._emit(Crowded(room.places, room.limit))
        try:
            self._books.start()
            if not self._exhausted:
                self._loop()
            backlog.keep_plan(wait=False)
            for trial in self._running:
                self._books.enter(_waits(trial))
            self._books.close(lambda: self._stop.signal is not None)
        finally:
            self._books.leave()
        unfinished = bool(self._running or self._backlog.waiting)
        interrupted = self._stop.signal is not None and unfinished
        self._backlog.waiting.extend(running.label for running in self._running.values())
        self._running.clear()
        outcome = Outcome(self._counts(), backlog.failures, self._exhausted if unfinished else None)
        self._emit(SweepEnded(outcome, interrupted))
        if interrupted:
            raise Interrupted(f"stopped by {self._stop.signal}; the same command goes on from here")
        if self._stale:
            raise AblateError(self._stale)
        return outcome

    def _counts(self) -> Counts:
        return self._backlog.counts(len(self._running))

    # --- the loop ---

    @property
    def _stopping(self) -> bool:
        """Whether no further trial is to be started."""
        return bool(self._stop.signal or self._exhausted or self._stale)

    def _loop(self) -> None:
        deadline = float("inf")
        stopped = False
        while self._running or (self._backlog.waiting and not stopped):
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
            self._backlog.prepare_next(0 if self._stopping else self._places)
            for report in self._pool.reports(PULSE):
                running = self._running.get(report.trial)
                if running is None or running.attempt.number != report.attempt:
                    continue  # it comes late, or once more
                if isinstance(report, Advanced):
                    self._advance(report, running)
                else:
                    self._end(report)
            if time.monotonic() - self._beat >= 1:
                self._beat = time.monotonic()
                self._emit(Beat(self._counts()))
                self._backlog.keep_plan()
                for trial in self._silence.hung():
                    self._pool.kill(trial)

    def _hand_out(self) -> None:
        while self._backlog.waiting and not self._stopping and self._has_room() and self._slots:
            label = self._backlog.waiting.popleft()
            folder = self._study.trial(label.trial)
            self._backlog.prepare(label)
            attempt = next_attempt(folder)
            slot = heapq.heappop(self._slots)
            self._running[folder.id] = _Running(label, attempt, slot, time.monotonic())
            self._silence.begins(folder)
            self._pool.submit(
                replace(self._job, trial=folder.id, folder=str(folder.path.resolve()), attempt=attempt.number)
            )
            work, done = self._backlog.work(label)
            self._emit(TrialStarted(folder.id, label.shown, label.seed, attempt.number, slot, work, done))
            self._books.enter(_runs(label, attempt.number))

    def _has_room(self) -> bool:
        """Whether one more can run; there is less room than was thought where trials take more memory."""
        room = self._pool.room(self._need)
        if room.places < self._places:
            self._places = room.places
            self._emit(Crowded(room.places, room.limit))
        if room.places < 1 and not self._running:
            raise AblateError(f"no trial can run: the executor has room for none, {room.limit}")
        return len(self._running) < room.places

    def _advance(self, report: Advanced, running: _Running) -> None:
        self._budget.trains(report.trial)
        self._silence.hears(report.trial)
        self._emit(
            TrialProgress(report.trial, running.slot, report.step, report.steps, report.loss, report.tokens_per_second)
        )
        micro_batch = report.micro_batch
        if micro_batch is not None and self._micro_batches.get(report.trial) != micro_batch:
            self._micro_batches[report.trial] = micro_batch
            self._emit(BatchSplit(report.trial, running.label.shown, running.label.seed, micro_batch))

    # --- how trials end ---

    def _end(self, report: Ended) -> None:
        running = self._running.pop(report.trial)
        heapq.heappush(self._slots, running.slot)
        folder = self._study.trial(report.trial)
        self._losses.setdefault(folder.id, 0)
        self._budget.ended(folder)
        hung = self._silence.ended(folder.id)
        if folder.result.exists():  # whatever the worker died of afterwards
            self._sealed(running, read_json(folder.result))
        elif report.end == "failed" or running.attempt.end.exists():  # sealed, whatever the worker died of since
            self._failed(running, report.error or "", cause=report.cause)
        elif report.end == "timed_out" or (hung and report.end == "lost"):
            self._failed(running, hung or "", "timed_out")
        elif report.end == "paused" and (reached := rung_of(running.attempt)):
            self._paused(running, *reached)
        elif self._stopping or report.end == "stale":
            if report.end == "stale":
                self._stale = self._stale or report.error
            self._backlog.waiting.appendleft(running.label)
            self._books.enter(_waits(folder.id))
        else:
            self._lost(running, report.error or report.end)

    def _paused(self, running: _Running, step: int, value: float | None) -> None:
        label = running.label
        self._emit(Paused(label.trial, label.shown, label.seed, running.slot, step, value))
        self._backlog.reached(label.trial, step, value)
        self._backlog.open()

    def _sealed(self, running: _Running, record: Record) -> None:
        value = record["metrics"].get(self._backlog.plan["objective"]["metric"])
        reason = "{rule} at step {step}".format(**record["reason"]) if record.get("reason") else None
        self._backlog.sealed(record)
        self._emit(running.ended(record["end"], value=value, reason=reason))
        self._backlog.open()

    def _failed(self, running: _Running, error: str, end: str = "failed", *, cause: str | None = None) -> None:
        found = self._backlog.failed(running.label, running.attempt, {"end": end, "cause": cause, "error": error})
        self._emit(running.ended(found.end, reason=found.error, failure=found))

    def _lost(self, running: _Running, cause: str) -> None:
        label, attempt = running.label, running.attempt
        self._losses[label.trial] = 0 if self._got_further(attempt) else self._losses[label.trial] + 1
        again = self._losses[label.trial] <= self._backlog.plan["budget"]["retries"]
        self._emit(WorkerLost(label.trial, label.shown, label.seed, attempt.number, running.slot, cause, again))
        if again:
            self._backlog.waiting.appendleft(running.label)
        else:
            times = self._losses[label.trial]
            error = f"its worker was lost {times} times in a row without a new checkpoint ({lost_by(cause)})"
            self._failed(running, error, cause="lost")

    def _got_further(self, attempt: AttemptFolder) -> bool:
        """Whether the attempt's checkpoint is work that none before it had done: one that only exists may be old."""
        step = noted_step(attempt)
        before = furthest_step(self._study.trial(attempt.path.parent.name), before=attempt.number)
        return step is not None and (before is None or step > before)


def _runs(label: Label, attempt: int) -> Callable[[Index], None]:
    return lambda index: index.runs(label, attempt)


def _waits(trial: str) -> Callable[[Index], None]:
    return lambda index: index.waits(trial)
