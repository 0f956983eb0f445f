"""What a sweep has to do: the trials that wait, those that open as others end, and what became of the rest."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ablate.records.layout import AttemptFolder, StudyFolder
from ablate.records.locks import now
from ablate.records.sealing import seal
from ablate.sweep import events
from ablate.sweep.agenda import Agenda
from ablate.sweep.bookkeeping.books import Books
from ablate.sweep.bookkeeping.index import Index, Label, Record
from ablate.sweep.choosing import Chosen
from ablate.sweep.events import Counts, Event, Failure, Growing, Reconciled, Tuned
from ablate.sweep.growing import Lineages, Shorter, has_checkpoint, told
from ablate.sweep.preparing import Configs, next_attempt, write_config, write_plan
from ablate.sweep.survey import Survey, failure
from ablate.sweep.tuning.entering import proposals
from ablate.sweep.tuning.search import Pruned, Run
from ablate.sweep.work import fraction_done, steps_of, work_of

SHARE = 0.05
"""Share of the time that keeping the plan may take, which changes with every arm that is tuned."""


class Backlog:
    """The trials of one call of :func:`ablate.sweep.sweep`, but for those that run."""

    def __init__(
        self,
        study: StudyFolder,
        agenda: Agenda,
        found: Survey,
        books: Books,
        emit: Callable[[Event], None],
        *,
        retry: frozenset[str],
        limit: int | None,
        chosen: Chosen,
    ) -> None:
        """Nothing is opened yet."""
        self._study = study
        self._agenda = agenda
        self._found = found
        self._books = books
        self._emit = emit
        self._retry = retry
        self._limit = limit
        self._begun: set[str] = set()
        """The trials that this call starts, or has started; one that a rung has stopped is no other when it goes on."""
        self._chosen = chosen
        self.plan = agenda.plan
        """The plan as far as it is decided."""
        self._kept = self.plan
        """The plan that is on disk."""
        self._keep_at = 0.0
        """When it may be written next."""
        self._configs = Configs(self.plan)
        self._opened: dict[str, Run] = {}
        """The trials that there are so far, each with how far it is to go."""
        self._tuned = agenda.chosen
        self.waiting: deque[Label] = deque()
        """The trials to start, the next one first."""
        self._ends: dict[str, str] = {}
        self._failures: dict[str, Failure] = {}
        self._going_on: dict[str, str] = {}
        """Trials and those of fewer steps that they may go on from."""
        self._growing: dict[str, Shorter] = {}
        """What those to be started go on from that have no checkpoint of their own."""
        self._written: set[tuple[str, int | None]] = set()

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The trials that failed or timed out, in earlier calls too."""
        return tuple(self._failures.values())

    @property
    def unopened(self) -> int:
        """How many trials are still to open."""
        return self._agenda.total - len(self._opened.keys() | self._ends.keys())

    def counts(self, running: int) -> Counts:
        """Where the planned trials stand; ``running`` of them run."""
        ends = [*self._ends.values(), *(each.end for each in self._failures.values())]
        planned = self._agenda.total
        counts = Counts(
            planned=planned,
            complete=ends.count("complete"),
            diverged=ends.count("diverged"),
            failed=ends.count("failed"),
            oom=sum(each.cause == "oom" for each in self._failures.values()),
            running=running,
            waiting=planned - len(ends) - running,
            timed_out=ends.count("timed_out"),
            pruned=ends.count("pruned"),
        )
        assert counts.waiting >= len(self.waiting)
        return counts

    # --- what opens ---

    def begin(self) -> None:
        """Take up what the study's folders and the plan say."""
        planned = {trial["id"] for trial in self.plan["trials"]}
        for trial in self._found.damaged:
            again = ", and the trial runs again" if trial in planned else ""
            self._emit(Reconciled(trial, f"its record was damaged; it was set aside{again}"))
        self._books.enter(self._reconcile)
        for arm in self._tuned:  # whoever found their values may have died before they were entered
            self._books.enter(proposals(self._title(arm), self._agenda, arm))
        self.open()
        self._grow()

    def open(self) -> None:
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
        here = (run.trial for run in runs)
        for id, fate in self._found.fates(here, self._chosen, self._retry, self._limit, self._begun):
            label = self._configs.label(self._opened[id].trial)
            if fate == "sealed":
                self._ends[id] = self._found.records[id]["end"]
            elif fate == "run":
                self.waiting.append(label)
                if self._limit is not None and id not in self._begun:
                    self._limit -= 1
                self._begun.add(id)
            elif fate != "held":
                attempt = self._study.trial(id).attempt(gave_up[id].attempt)
                self._failures[id] = failure(label, attempt)

    def _grow(self) -> None:
        """Let the trials that wait go on from where the same trials of fewer steps ended, and say what has grown."""
        shorter = Lineages(self.plan).shorter(self._study, self._found.records)
        self._going_on = {id: each.trial for id, each in shorter.items() if each.kept}
        self._configs.go_on_from(self._going_on)
        self._growing = {
            label.trial: shorter[label.trial]
            for label in self.waiting
            if label.trial in shorter and not has_checkpoint(self._study.trial(label.trial))
        }
        for growth in (*told(self._growing), *self._agenda.unjudged):
            self._emit(Growing(growth))

    def _prune(self, pruned: Pruned) -> None:
        """Give a tuning trial up at its rung: the end of its last attempt, which a larger budget may undo."""
        label = self._configs.label(pruned.trial)
        folder = self._study.trial(label.trial)
        attempt = folder.attempts()[-1]
        if attempt.end.exists():  # it went on from there and failed, and is judged anew, as by another objective
            attempt = next_attempt(folder)
        words = f"given up at step {pruned.step}: others of its batch were better there"
        seal(attempt.end, {"end": "pruned", "error": words, "at": now()})
        self._agenda.gave_up(label.trial)
        self._emit(events.Pruned(label.trial, label.shown, label.seed, pruned.step))
        self._books.enter(lambda index: index.failed(label, attempt.number, words, "pruned"))

    def _tell_tuned(self) -> None:
        """Say which arms have found their values, and keep the plan as it is now."""
        plan, chosen = self._agenda.plan, self._agenda.chosen
        if plan is self.plan:
            return
        names = {arm["id"]: arm["name"] for arm in plan["arms"]}
        for arm in chosen.keys() - self._tuned.keys():
            best, tried = self._agenda.best(arm), self._agenda.tried(arm)
            self._emit(Tuned(names[arm], best.values, self._agenda.value(best.cost), len(tried)))
            self._books.enter(proposals(self._title(arm), self._agenda, arm))
        self._tuned, self.plan, self._configs = chosen, plan, Configs(plan)
        self._configs.go_on_from(self._going_on)
        self.keep_plan()

    def keep_plan(self, *, wait: bool = True) -> None:
        """Write the plan as it is now, if it has changed; where that takes long, it may ``wait`` for more changes.

        Nothing hangs on it but what others see: the next start makes it anew from the folders.
        """
        began = time.monotonic()
        if self._kept is not self.plan and not (wait and began < self._keep_at):
            write_plan(self._study, self.plan, None)
            self._kept, ended = self.plan, time.monotonic()
            self._keep_at = ended + (ended - began) / SHARE

    def _title(self, id: str) -> str:
        """What an arm's proposals are called: by its name, and where another has the same, by its identity too."""
        names = {arm["id"]: str(arm["name"]) for arm in self.plan["arms"]}
        alone = list(names.values()).count(names[id]) == 1
        return names[id] if alone else f"{names[id]} ({id})"

    def _reconcile(self, index: Index) -> None:
        at_rungs = {trial["id"] for trial in (self.plan.get("tuning") or {}).get("runs", ())}  # some wait for judgement
        index.reconcile(self._found.records, self._found.failed, self._opened.keys() | at_rungs)

    # --- what is started ---

    def prepare(self, label: Label) -> None:
        """Write the configuration of a trial that is to start."""
        run = self._opened[label.trial]
        if (label.trial, run.pause_at) not in self._written:
            write_config(self._study.trial(label.trial), self._configs.of(run.trial, run.pause_at))
            self._written.add((label.trial, run.pause_at))

    def prepare_next(self, count: int) -> None:
        """Write the next trials' configurations: being sure of a file takes longer than anything at a start."""
        for label in itertools.islice(self.waiting, count):
            self.prepare(label)

    def to_do(self) -> float:
        """How much work is before this call: trials that open later are counted as the mean of all arms."""
        arms = self.plan["arms"]
        later = self.unopened * sum(work_of(self.plan, arm) for arm in arms) / len(arms)
        return later + sum(work * (1 - done) for work, done in map(self.work, self.waiting))

    def work(self, label: Label) -> tuple[float, float]:
        """How much work a trial is, and the fraction of it that its checkpoints hold."""
        arm = self._configs.arm(self._opened[label.trial].trial)
        done = fraction_done(self._study.trial(label.trial), steps_of(self.plan, arm))
        return work_of(self.plan, arm), done

    # --- what has ended ---

    def sealed(self, record: Record) -> None:
        """A trial has its result."""
        trial = record["trial"]
        self._ends[trial] = record["end"]
        shorter = self._growing.get(trial)
        if shorter and shorter.kept and not record.get("continued_from"):
            why = f"the checkpoint of trial {shorter.trial} could not be used, so it was trained from the start"
            self._emit(Reconciled(trial, why))
        self._books.enter(lambda index: index.sealed(record))
        self._agenda.sealed(record)

    def reached(self, trial: str, step: int, value: float | None) -> None:
        """A tuning trial has come to a rung."""
        self._agenda.reached(trial, step, value)
        self._books.enter(lambda index: index.reached(trial, step, value))

    def failed(self, label: Label, attempt: AttemptFolder, end: dict[str, Any]) -> Failure:
        """An attempt gave no result, and is not followed by another; its worker has sealed why, if it could."""
        seal(attempt.end, {**end, "at": now()})
        found = self._failures[label.trial] = failure(label, attempt)
        self._books.enter(lambda index: index.failed(label, attempt.number, found.error, found.end))
        return found
