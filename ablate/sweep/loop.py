"""The loop of a sweep: trials go to a pool until each has its end, a signal comes or the budget is used up."""

from __future__ import annotations

import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from ablate.errors import AblateError
from ablate.records.layout import AttemptFolder, StudyFolder, read_json
from ablate.records.locks import now
from ablate.records.needs import need_of
from ablate.records.sealing import seal
from ablate.records.steps import furthest_step, noted_step
from ablate.records.usage import Use
from ablate.slots import Advanced, Ended, Job, Pool
from ablate.sweep import events
from ablate.sweep.agenda import Agenda
from ablate.sweep.books import Books
from ablate.sweep.budget import Budget
from ablate.sweep.choosing import Chosen
from ablate.sweep.events import (
    BatchSplit,
    Beat,
    Counts,
    Crowded,
    Event,
    Failure,
    Growing,
    Interrupted,
    Outcome,
    Paused,
    Reconciled,
    Stopping,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    TrialProgress,
    TrialStarted,
    Tuned,
    WorkerLost,
)
from ablate.sweep.growing import Lineages, Shorter, has_checkpoint, told
from ablate.sweep.index import Index, Label, Record
from ablate.sweep.lifeline import lost_by
from ablate.sweep.preparing import Configs, next_attempt, write_config, write_plan
from ablate.sweep.signals import Stop
from ablate.sweep.silence import Silence
from ablate.sweep.storage import Storage
from ablate.sweep.survey import Survey, failure, rung_of
from ablate.sweep.tuning.entering import proposals
from ablate.sweep.tuning.search import Pruned, Run
from ablate.sweep.work import fraction_done, steps_of, work_of

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
        agenda: Agenda,
        found: Survey,
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
        self._agenda = agenda
        self._found = found
        self._plan = agenda.plan
        self._configs = Configs(self._plan)
        self._pool = pool
        self._job = job
        """What all jobs have in common."""
        self._emit = emit
        self._stop = stop
        self._budget = budget
        self._exhausted: Use | None = None
        self._stale: str | None = None
        """Why no trial can run any more."""
        self._opened: dict[str, Run] = {}
        """The trials that there are so far, each with how far it is to go."""
        self._tuned = agenda.chosen
        self._waiting: deque[Label] = deque()
        self._running: dict[str, _Running] = {}
        self._ends: dict[str, str] = {}
        self._failures: dict[str, Failure] = {}
        self._losses: dict[str, int] = {}
        """Attempts lost in a row without a new checkpoint."""
        self._growing: dict[str, Shorter] = {}
        """What those to be started go on from that have no checkpoint of their own."""
        self._written: set[tuple[str, int | None]] = set()
        self._micro_batches: dict[str, int] = {}
        """Of the trials whose batch is split."""
        self._silence = Silence(self._plan["budget"].get("trial_timeout"))
        self._need = need_of(self._plan)
        self._places = pool.room(self._need).places
        self._slots = list(range(self._places))
        self._books = Books(storage, self._plan["name"], self._plan["objective"], emit)
        self._beat = time.monotonic()

    def __call__(self, retry: frozenset[str], limit: int | None, chosen: Chosen) -> Outcome:
        """Start the chosen trials that are missing, at most ``limit``, and see each to its end.

        Raises:
            AblateError: the disk takes nothing more, nothing can run, or what the plan was made from has changed.
            Interrupted: a signal came.
        """
        self._retry, self._limit, self._chosen = retry, limit, chosen
        for trial in self._found.damaged:
            self._emit(Reconciled(trial, "its record was damaged; it was set aside, and the trial runs again"))
        self._open()
        self._grow()
        metric = self._plan["objective"]["metric"]
        self._exhausted = self._budget.exhausted()
        to_run = 0 if self._exhausted else len(self._waiting) + self._agenda.total - len(self._opened)
        self._emit(SweepStarted(self._counts(), to_run, self._places, metric, self._to_do()))
        if (room := self._pool.room(self._need)).short and to_run:
            self._emit(Crowded(room.places, room.limit))
        try:
            self._books.enter(self._reconcile)
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

    def _open(self) -> None:
        """Take up what has opened since the last call, by what is known of the trials."""
        runs, prunes = self._agenda.moves()
        while prunes:
            for pruned in prunes:
                self._prune(pruned)
            more, prunes = self._agenda.moves()
            runs += more
        runs = [run for run in runs if run.trial["id"] not in self._ends]  # it came to its end before its rung
        self._ends |= dict.fromkeys(self._agenda.given_up, "pruned")
        if runs or self._tuned != self._agenda.chosen:
            self._tell_tuned()
        self._opened |= {run.trial["id"]: run for run in runs}
        gave_up = self._found.waiting_for_retry()
        for id, fate in self._found.fates((run.trial for run in runs), self._chosen, self._retry, self._limit):
            label = self._configs.label(self._opened[id].trial)
            if fate == "sealed":
                self._ends[id] = self._found.records[id]["end"]
            elif fate == "run":
                self._waiting.append(label)
                self._limit = None if self._limit is None else self._limit - 1
            elif fate != "held":
                attempt = self._study.trial(id).attempt(gave_up[id].attempt)
                self._failures[id] = failure(label, attempt)

    def _grow(self) -> None:
        """Let the trials that wait go on from where the same trials of fewer steps ended, and say so."""
        shorter = Lineages(self._plan).shorter(self._study, self._found.records)
        self._configs.go_on_from({id: each.trial for id, each in shorter.items() if each.kept})
        self._growing = {
            label.trial: shorter[label.trial]
            for label in self._waiting
            if label.trial in shorter and not has_checkpoint(self._study.trial(label.trial))
        }
        for growth in told(self._growing):
            self._emit(Growing(growth))

    def _prune(self, pruned: Pruned) -> None:
        """Give a tuning trial up at its rung: the end of its last attempt, which a larger budget may undo."""
        label = self._configs.label(pruned.trial)
        attempt = self._study.trial(label.trial).attempts()[-1]
        words = f"given up at step {pruned.step}: others of its batch were better there"
        seal(attempt.end, {"end": "pruned", "error": words, "at": now()})
        self._agenda.gave_up(label.trial)
        self._emit(events.Pruned(label.trial, label.shown, label.seed, pruned.step))
        self._books.enter(lambda index: index.failed(label, attempt.number, words, "pruned"))

    def _tell_tuned(self) -> None:
        """Say which arms have found their values, and keep the plan as it is now."""
        plan, chosen = self._agenda.plan, self._agenda.chosen
        if plan is self._plan:
            return
        names = {arm["id"]: arm["name"] for arm in plan["arms"]}
        for arm in chosen.keys() - self._tuned.keys():
            best, tried = self._agenda.best(arm), self._agenda.tried(arm)
            self._emit(Tuned(names[arm], best.values, self._agenda.value(best.cost), len(tried)))
            self._books.enter(proposals(names[arm], self._agenda, arm))
        self._tuned, self._plan, self._configs = chosen, plan, Configs(plan)
        write_plan(self._study, plan, None)

    def _reconcile(self, index: Index) -> None:
        index.reconcile(self._found.records, self._found.failed, self._opened.keys())

    def _counts(self) -> Counts:
        ends = [*self._ends.values(), *(each.end for each in self._failures.values())]
        planned = self._agenda.total
        counts = Counts(
            planned=planned,
            complete=ends.count("complete"),
            diverged=ends.count("diverged"),
            failed=ends.count("failed"),
            oom=sum(each.cause == "oom" for each in self._failures.values()),
            running=len(self._running),
            waiting=planned - len(ends) - len(self._running),
            timed_out=ends.count("timed_out"),
            pruned=ends.count("pruned"),
        )
        assert counts.waiting >= len(self._waiting)
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
                for trial in self._silence.hung():
                    self._pool.kill(trial)

    def _hand_out(self) -> None:
        while self._slots and self._waiting and not self._stopping and self._has_room():
            label = self._waiting.popleft()
            folder = self._study.trial(label.trial)
            self._write_config(label)
            attempt = next_attempt(folder)
            slot = heapq.heappop(self._slots)
            self._running[folder.id] = _Running(label, attempt, slot, time.monotonic())
            self._silence.begins(folder)
            self._pool.submit(
                replace(self._job, trial=folder.id, folder=str(folder.path.resolve()), attempt=attempt.number)
            )
            self._emit(TrialStarted(folder.id, label.shown, label.seed, attempt.number, slot, *self._work(label)))
            self._books.enter(_runs(label, attempt.number))

    def _has_room(self) -> bool:
        """Whether one more can run; there is less room than was thought where trials take more memory."""
        room = self._pool.room(self._need)
        if room.places < self._places:
            self._places = room.places
            self._emit(Crowded(room.places, room.limit))
        return len(self._running) < room.places

    def _to_do(self) -> float:
        """How much work this call has before it: trials that open later are counted as the mean of all arms."""
        arms = self._plan["arms"]
        later = (self._agenda.total - len(self._opened)) * sum(work_of(self._plan, arm) for arm in arms) / len(arms)
        return later + sum(work * (1 - done) for work, done in map(self._work, self._waiting))

    def _work(self, label: Label) -> tuple[float, float]:
        """How much work a trial is, and the fraction of it that its checkpoints hold."""
        arm = self._configs.arm(self._opened[label.trial].trial)
        done = fraction_done(self._study.trial(label.trial), steps_of(self._plan, arm))
        return work_of(self._plan, arm), done

    def _write_config(self, label: Label) -> None:
        run = self._opened[label.trial]
        if (label.trial, run.pause_at) not in self._written:
            write_config(self._study.trial(label.trial), self._configs.of(run.trial, run.pause_at))
            self._written.add((label.trial, run.pause_at))

    def _write_ahead(self) -> None:
        """Write the next trials' configurations: being sure of a file takes longer than anything at a start."""
        for label in itertools.islice(self._waiting, 0 if self._stopping else self._places):
            self._write_config(label)

    def _advance(self, report: Advanced) -> None:
        if running := self._running.get(report.trial):
            self._budget.trains(report.trial)
            self._silence.hears(report.trial)
            self._emit(
                TrialProgress(
                    report.trial, running.slot, report.step, report.steps, report.loss, report.tokens_per_second
                )
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
        elif report.end == "failed":
            self._failed(running, report.error or "", cause=report.cause)
        elif report.end == "timed_out" or (hung and report.end == "lost"):
            self._failed(running, hung or "", "timed_out")
        elif report.end == "paused" and (reached := rung_of(running.attempt)):
            self._paused(running, *reached)
        elif self._stopping or report.end == "stale":
            if report.end == "stale":
                self._stale = report.error
            self._waiting.appendleft(running.label)
            self._books.enter(_waits(folder.id))
        else:
            self._lost(running, report.error or report.end)

    def _paused(self, running: _Running, step: int, value: float | None) -> None:
        label = running.label
        self._agenda.reached(label.trial, step, value)
        self._emit(Paused(label.trial, label.shown, label.seed, running.slot, step, value))
        self._books.enter(lambda index: index.reached(label.trial, step, value))
        self._open()

    def _sealed(self, running: _Running, record: Record) -> None:
        self._ends[running.label.trial] = record["end"]
        shorter = self._growing.get(running.label.trial)
        if shorter and shorter.kept and not record.get("continued_from"):
            why = f"the checkpoint of trial {shorter.trial} could not be used, so it was trained from the start"
            self._emit(Reconciled(running.label.trial, why))
        value = record["metrics"].get(self._plan["objective"]["metric"])
        reason = "{rule} at step {step}".format(**record["reason"]) if record.get("reason") else None
        self._emit(running.ended(record["end"], value=value, reason=reason))
        self._books.enter(lambda index: index.sealed(record))
        self._agenda.sealed(record)
        self._open()

    def _failed(self, running: _Running, error: str, end: str = "failed", *, cause: str | None = None) -> None:
        label, attempt = running.label, running.attempt
        seal(attempt.end, {"end": end, "cause": cause, "error": error, "at": now()})  # the worker has, if it could
        found = self._failures[label.trial] = failure(label, attempt)
        self._emit(running.ended(found.end, reason=found.error, failure=found))
        self._books.enter(lambda index: index.failed(label, attempt.number, found.error, found.end))

    def _lost(self, running: _Running, cause: str) -> None:
        label, attempt = running.label, running.attempt
        self._losses[label.trial] = 0 if self._got_further(attempt) else self._losses[label.trial] + 1
        again = self._losses[label.trial] <= self._plan["budget"]["retries"]
        self._emit(WorkerLost(label.trial, label.shown, label.seed, attempt.number, running.slot, cause, again))
        if again:
            self._waiting.appendleft(running.label)
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
