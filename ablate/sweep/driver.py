"""The driver: hands the trials of a plan to an executor until each has its end, whatever dies meanwhile."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ablate.records.layout import AttemptFolder, StudyFolder, read_json
from ablate.records.sealing import seal
from ablate.records.steps import furthest_step, noted_step
from ablate.slots import TRAINER, Advanced, Ended, Executor, Job, Pool
from ablate.sweep.changes import check_changes
from ablate.sweep.choosing import Only, Seeds, choose, retried
from ablate.sweep.disk import telling
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
from ablate.sweep.lock import driving, now
from ablate.sweep.preparing import Configs, next_attempt, write_config, write_plan
from ablate.sweep.signals import Stop, stopping
from ablate.sweep.survey import log_tail, survey

PATIENCE = 8.0
"""Seconds that a stopped sweep waits for checkpoints; with what follows it ends within ten."""
PULSE = 0.2
"""Seconds to wait for reports at most, and so until a signal is noticed."""

Plan = Mapping[str, Any]


def sweep(
    study: StudyFolder,
    plan: Plan,
    executor: Executor | Pool,
    *,
    on_event: Callable[[Event], None] = lambda event: None,
    retry: str | Iterable[str] = (),
    limit: int | None = None,
    only: Only = (),
    seeds: Seeds | None = None,
    extend: bool = False,
    plugins: Sequence[Path] = (),
    source: str | None = None,
    trainer: str = TRAINER,
) -> Outcome:
    """Run what is missing of a plan: every trial that has no sealed result and has not failed.

    Args:
        study: where the study lies; ``plan.json`` is written there.
        plan: the plan, as ``plan.json`` has it.
        executor: what runs trials; a pool that is open already stays open.
        on_event: told everything that happens, in this thread.
        retry: ends to run again: ``failed``.
        limit: how many trials to start at most.
        only: the levels of the arms whose trials to start, as :data:`~ablate.sweep.choosing.Only`; by default any.
        seeds: the seeds whose trials to start, as :data:`~ablate.sweep.choosing.Seeds`; by default any.
        extend: take a plan that leaves results of the study's last plan out; they stay on disk.
        plugins: plugin files that workers bring in, beside those that the plan names.
        source: the experiment's file as the user wrote it, to be kept beside the plan.
        trainer: what trains a trial, as ``module:function``.

    Raises:
        InputError: ``retry``, ``only`` or ``seeds`` name what is not there (S115).
        RefusedError: another process runs this study, or the plan has changed and leaves results out.
        AblateError: the disk takes nothing more.
        Interrupted: a signal came; the same call goes on.
    """
    retry, chosen = retried(retry), choose(plan, only, seeds)
    with contextlib.ExitStack() as stack:
        stack.enter_context(telling(study, plan))
        stack.enter_context(driving(study))
        if not extend:
            check_changes(study, plan)
        write_plan(study, plan, source)
        stop = stack.enter_context(stopping())
        if isinstance(executor, Executor):
            executor = stack.enter_context(contextlib.closing(executor.open(trainer)))
        job = Job(
            trial="",
            folder="",
            attempt=0,
            device=plan["device"],
            threads=plan["threads"],
            plugins=(*plan.get("plugins", ()), *(str(path.resolve()) for path in plugins)),
            trainer=trainer,
        )
        run = _Sweep(study, plan, executor, job=job, emit=on_event, stop=stop)
        return run(retry, limit, chosen)


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


class _Sweep:
    """One call of :func:`sweep`."""

    def __init__(
        self,
        study: StudyFolder,
        plan: Plan,
        pool: Pool,
        *,
        job: Job,
        emit: Callable[[Event], None],
        stop: Stop,
    ) -> None:
        self._study = study
        self._plan = plan
        self._configs = Configs(plan)
        self._pool = pool
        self._job = job
        """What all jobs have in common."""
        self._emit = emit
        self._stop = stop
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
        self._index: Index | None = None
        self._entries: deque[Callable[[Index], None]] = deque()
        """What is still to be entered in the index."""
        self._beat = time.monotonic()

    def __call__(self, retry: frozenset[str], limit: int | None, chosen: frozenset[str]) -> Outcome:
        reconcile = self._look(retry, limit, chosen)
        metric = self._plan["objective"]["metric"]
        self._emit(SweepStarted(self._counts(), len(self._waiting), self._places, metric))
        try:
            self._hand_out()  # the first workers begin while the index is opened
            self._index = Index(self._study.storage, self._plan["name"], self._plan["objective"])
            reconcile(self._index)
            self._loop()
            if self._stop.signal:
                self._entries.extend(_waits(trial) for trial in self._running)
            self._keep_books()
        finally:
            if self._index:
                self._index.close()
        interrupted = self._stop.signal is not None and bool(self._running or self._waiting)
        self._waiting.extend(running.label for running in self._running.values())
        self._running.clear()
        outcome = Outcome(self._counts(), tuple(self._failures.values()))
        self._emit(SweepEnded(outcome, interrupted))
        if interrupted:
            raise Interrupted(f"stopped by {self._stop.signal}; the same command goes on from here")
        return outcome

    # --- what there is to do ---

    def _look(self, retry: frozenset[str], limit: int | None, chosen: frozenset[str]) -> Callable[[Index], None]:
        """Sort the planned trials by what their folders say; gives what puts the index right."""
        found = survey(self._study)
        for trial in found.damaged:
            self._emit(Reconciled(trial, "its record was damaged; it was set aside, and the trial runs again"))
        failed = found.waiting_for_retry()
        for id, label in self._planned.items():
            if id in found.records:
                self._ends[id] = found.records[id]["end"]
            elif id in failed and ("failed" not in retry or id not in chosen):
                attempt = self._study.trial(id).attempt(failed[id].attempt)
                self._failures[id] = _failure(label, attempt, failed[id].error)
            elif id in chosen and (limit is None or len(self._waiting) < limit):
                self._waiting.append(label)
            else:
                self._held += 1

        def reconcile(index: Index) -> None:
            index.reconcile(found.records, found.failed, self._planned.keys())
            for trial, difference in index.differences:
                self._emit(Reconciled(trial, difference))

        return reconcile

    def _counts(self) -> Counts:
        ends = list(self._ends.values())
        counts = Counts(
            planned=len(self._planned),
            complete=ends.count("complete"),
            diverged=ends.count("diverged"),
            failed=len(self._failures),
            running=len(self._running),
            waiting=len(self._waiting) + self._held,
        )
        assert counts.planned == counts.done + counts.failed + counts.running + counts.waiting
        return counts

    # --- the loop ---

    def _loop(self) -> None:
        deadline = float("inf")
        stopped = False
        while self._running or (self._waiting and not stopped):
            if self._stop.signal and not stopped:
                stopped, deadline = True, time.monotonic() + PATIENCE
                self._emit(Stopping(self._stop.signal))
                self._pool.stop()
            if time.monotonic() > deadline:
                return
            self._hand_out()
            self._keep_books()  # after the slots are filled: no trial waits for the index
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
        while self._slots and self._waiting and not self._stop.signal:
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
            self._entries.append(_runs(label, attempt.number))

    def _write_config(self, label: Label) -> None:
        if label.trial not in self._written:
            write_config(self._study.trial(label.trial), self._configs[label.trial])
            self._written.add(label.trial)

    def _write_ahead(self) -> None:
        """Write the next trials' configurations: being sure of a file takes longer than anything at a start."""
        for label in itertools.islice(self._waiting, 0 if self._stop.signal else self._places):
            self._write_config(label)

    def _keep_books(self) -> None:
        while self._index and self._entries:
            self._entries.popleft()(self._index)

    def _advance(self, report: Advanced) -> None:
        if running := self._running.get(report.trial):
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
        if folder.result.exists():  # whatever the worker died of afterwards
            self._sealed(running, read_json(folder.result))
        elif report.end == "failed":
            self._failed(running, report.error or "")
        elif self._stop.signal:
            self._waiting.appendleft(running.label)
            self._entries.append(_waits(folder.id))
        else:
            self._lost(running, report.error or report.end)

    def _sealed(self, running: _Running, record: Record) -> None:
        self._ends[running.label.trial] = record["end"]
        value = record["metrics"].get(self._plan["objective"]["metric"])
        reason = "{rule} at step {step}".format(**record["reason"]) if record.get("reason") else None
        self._emit(running.ended(record["end"], value=value, reason=reason))
        self._entries.append(lambda index: index.sealed(record))

    def _failed(self, running: _Running, error: str) -> None:
        label, attempt = running.label, running.attempt
        seal(attempt.end, {"end": "failed", "error": error, "at": now()})  # the worker has, if it could
        failure = self._failures[label.trial] = _failure(label, attempt, error)
        self._emit(running.ended("failed", reason=error, failure=failure))
        self._entries.append(lambda index: index.failed(label, attempt.number, error))

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


def _failure(label: Label, attempt: AttemptFolder, error: str) -> Failure:
    return Failure(label.trial, label.arm_name, label.seed, attempt.number, error, attempt.log, log_tail(attempt))


def _runs(label: Label, attempt: int) -> Callable[[Index], None]:
    return lambda index: index.runs(label, attempt)


def _waits(trial: str) -> Callable[[Index], None]:
    return lambda index: index.waits(trial)
