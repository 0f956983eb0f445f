"""Where a sweep stands, from what happens in it: what every view of it draws, in its own process or another."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from ablate.records.locks import now
from ablate.sweep.events import (
    Beat,
    Counts,
    Event,
    Paused,
    Pruned,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    TrialProgress,
    TrialStarted,
    WorkerLost,
)

NOTHING = Counts(planned=0, complete=0, diverged=0, failed=0, running=0, waiting=0)


@dataclass(frozen=True)
class Row:
    """A trial that runs, and the place that runs it."""

    slot: int
    trial: str
    arm: str
    """The arm's name."""
    seed: int
    attempt: int
    since: str
    """When this attempt was handed to a worker (UTC)."""
    step: int = 0
    steps: int = 0
    """0 until its worker has begun."""
    loss: float | None = None
    """The last training loss in the task's unit; None while there is none, or it is not finite."""
    tokens_per_second: float | None = None

    @property
    def fraction(self) -> float:
        """How much of its steps is done, those of earlier attempts too."""
        return self.step / self.steps if self.steps else 0.0


@dataclass(frozen=True)
class Standing:
    """A sweep at one moment."""

    counts: Counts = NOTHING
    slots: int = 0
    """How many trials run at once."""
    metric: str = ""
    """The objective's name."""
    rows: tuple[Row, ...] = ()
    """What runs, by slot."""
    left: float | None = None
    """Seconds until this call is through, as far as can be told; None before there is a pace."""


@dataclass(frozen=True)
class _Task:
    """The work of a running trial, in the unit of :func:`ablate.sweep.work.work_of`."""

    work: float
    """Of all its steps."""
    done: float
    """The fraction that its checkpoint had when it was handed out."""
    began: float


class Course:
    """Follows the events of one sweep, and knows where it stands."""

    def __init__(self) -> None:
        """Nothing has happened yet."""
        self._counts = NOTHING
        self._slots = 0
        self._metric = ""
        self._rows: dict[int, Row] = {}
        self._tasks: dict[int, _Task] = {}
        self._began: float | None = None
        self._missing = 0.0
        """Work of trials that are not handed out yet."""
        self._worked = 0.0
        """Work that this call has done in trials that have ended."""
        self._waits: dict[str, float] = {}
        """Work of trials that have begun and wait again, as it is counted into what is missing."""

    def take(self, event: Event) -> None:
        """Learn from an event."""
        match event:
            case SweepStarted():
                self._counts, self._slots, self._metric = event.counts, event.slots, event.metric
                self._missing = event.to_run if event.work is None else event.work
            case TrialStarted():
                self._start(event)
            case TrialProgress() if event.slot in self._rows:
                self._rows[event.slot] = replace(
                    self._rows[event.slot],
                    step=event.step,
                    steps=event.steps,
                    loss=event.loss,
                    tokens_per_second=event.tokens_per_second,
                )
            case TrialEnded():
                self._worked += self._worked_in(event.slot, through=event.end == "complete")
                self._free(event.slot)
                self._count(running=-1, **{event.end: 1})
            case Paused():
                self._worked += self._worked_in(event.slot)
                self._put_back(event.slot, event.trial, self._rows[event.slot].fraction)
            case Pruned():
                self._missing -= self._waits.pop(event.trial, 0.0)
                self._count(waiting=-1, pruned=1)
            case WorkerLost(again=True):
                self._put_back(event.slot, event.trial, 0.0)
            case Beat():
                self._counts = event.counts
            case SweepEnded():
                self._counts = event.outcome.counts
                self._rows.clear()
                self._tasks.clear()

    @property
    def ended(self) -> int:
        """How many trials have ended, in earlier calls too."""
        return self._counts.planned - self._counts.running - self._counts.waiting

    @property
    def standing(self) -> Standing:
        """Where the sweep stands at this moment."""
        rows = tuple(self._rows[slot] for slot in sorted(self._rows))
        return Standing(self._counts, self._slots, self._metric, rows, self._left())

    def _start(self, event: TrialStarted) -> None:
        moment = time.monotonic()
        self._began = self._began or moment
        self._missing -= self._waits.pop(event.trial, event.work * (1 - event.done))
        self._tasks[event.slot] = _Task(event.work, event.done, moment)
        self._rows[event.slot] = Row(event.slot, event.trial, event.arm, event.seed, event.attempt, now())
        self._count(waiting=-1, running=1)

    def _put_back(self, slot: int, trial: str, fraction: float) -> None:
        task = self._tasks[slot]
        self._waits[trial] = task.work * (1 - max(fraction, task.done))
        self._missing += self._waits[trial]
        self._free(slot)
        self._count(running=-1, waiting=1)

    def _free(self, slot: int) -> None:
        del self._rows[slot], self._tasks[slot]

    def _count(self, **changes: int) -> None:
        self._counts = replace(self._counts, **{name: getattr(self._counts, name) + by for name, by in changes.items()})

    def _worked_in(self, slot: int, *, through: bool = False) -> float:
        task, fraction = self._tasks[slot], 1.0 if through else self._rows[slot].fraction
        return task.work * max(0.0, fraction - task.done)

    def _left(self) -> float | None:
        """At the pace so far of all together; and no less than the slowest running trial takes at its own."""
        moment = time.monotonic()
        worked = self._worked + sum(map(self._worked_in, self._rows))
        if self._began is None or worked <= 0:
            return None
        missing = max(0.0, self._missing)
        alone = 0.0
        for slot, row in self._rows.items():
            task, done = self._tasks[slot], self._worked_in(slot)
            rest = task.work * (1 - max(row.fraction, task.done))
            missing += rest
            if done > 0:
                alone = max(alone, rest * (moment - task.began) / done)
        return max(missing * (moment - self._began) / worked, alone)
