"""What happens in a sweep, as values: what progress, notebooks and tests look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.records.usage import Use


@dataclass(frozen=True)
class Counts:
    """Where the planned trials stand; every one of them is counted once."""

    planned: int
    complete: int
    diverged: int
    failed: int
    running: int
    waiting: int
    timed_out: int = 0
    oom: int = 0
    """How many of ``failed`` ran out of memory."""
    pruned: int = 0
    """Tuning trials that were given up at a rung."""

    @property
    def done(self) -> int:
        """Trials that are over for good."""
        return self.complete + self.diverged + self.pruned


@dataclass(frozen=True)
class Failure:
    """A trial without a result, and what is known of why."""

    trial: str
    arm: str
    """The arm's name."""
    seed: int
    attempt: int
    error: str
    """One line."""
    log: Path
    """What the attempt printed, whole."""
    log_tail: tuple[str, ...]
    """The last lines of it."""
    end: str = "failed"
    """``failed`` or ``timed_out``."""
    cause: str | None = None
    """Why it failed, where that is of a known kind: ``oom``, memory was too short, or ``lost``, its worker died."""


@dataclass(frozen=True)
class Outcome:
    """How a sweep stands when it returns."""

    counts: Counts
    failures: tuple[Failure, ...]
    """All trials of the plan that failed or timed out, those of earlier runs too."""
    exhausted: Use | None = None
    """The limit of the budget that ended the sweep before it was through."""

    @property
    def exit_code(self) -> int:
        """0; 3 if the budget was used up, else 1 if trials failed or timed out; a diverged trial is a result."""
        return 3 if self.exhausted else 1 if self.failures else 0


@dataclass(frozen=True)
class SweepStarted:
    """The study is open; ``counts`` is what earlier runs left."""

    counts: Counts
    to_run: int
    """How many trials this call starts, if nothing stops it."""
    slots: int
    """How many run at once."""
    metric: str
    """The objective's name, whose values the trials' ends carry."""
    work: float | None = None
    """What there is to do without what checkpoints hold, in the unit of :class:`TrialStarted`; None: a 1 a trial."""


@dataclass(frozen=True)
class Reconciled:
    """The folders and their index differed, and the index (or a damaged record) was put right."""

    trial: str | None
    """None if it concerns the study as a whole."""
    difference: str


@dataclass(frozen=True)
class IndexBehind:
    """The index takes no entries at this moment, which trials do not wait for; said once, and once when it does again.

    Nothing is lost by it: the trials' folders have it all, and the next start puts the index right.
    """

    reason: str | None
    """What the database says; None if it has caught up."""
    entries: int
    """How many are still to be made."""
    given_up: bool = False
    """Whether the sweep has ended, and waits no longer."""

    @property
    def text(self) -> str:
        """What a user is told."""
        if self.reason is None:
            return "the Optuna study takes entries again"
        if self.given_up:
            kept = "all results are in the study's folder, and the next run enters what is missing"
            return f"the Optuna study takes no entries ({self.reason}): {kept}"
        return f"the Optuna study takes no entries at this moment ({self.reason}): trials go on, and are entered later"


@dataclass(frozen=True)
class Growing:
    """The plan has grown: how many trials go on from how far, or are not judged at a rung that is new."""

    text: str


@dataclass(frozen=True)
class TrialStarted:
    """An attempt was handed to a worker."""

    trial: str
    arm: str
    seed: int
    attempt: int
    slot: int
    """Which of the places that run trials, from 0; free again when the trial ends or its worker is lost."""
    work: float = 1.0
    """How much work all its steps are, beside other trials."""
    done: float = 0.0
    """The fraction of it that a checkpoint holds, from which it goes on."""


@dataclass(frozen=True)
class TrialProgress:
    """How far a running trial has come."""

    trial: str
    slot: int
    step: int
    steps: int
    loss: float
    tokens_per_second: float


@dataclass(frozen=True)
class BatchSplit:
    """Memory was too short for a trial's batch: it goes through in micro-batches, and the trial stays the same."""

    trial: str
    arm: str
    seed: int
    micro_batch: int
    """So many sequences at once."""


@dataclass(frozen=True)
class TrialEnded:
    """A trial has ended: ``complete`` or ``diverged`` for good, ``failed`` or ``timed_out`` until it is retried."""

    trial: str
    arm: str
    seed: int
    attempt: int
    slot: int
    end: str
    value: float | None
    """The objective's value of a complete trial."""
    reason: str | None
    """Why it diverged, failed or timed out, in one line."""
    seconds: float
    """Since it was handed out."""
    failure: Failure | None = None


@dataclass(frozen=True)
class Paused:
    """A tuning trial has come to a rung, where it is judged once its batch is there."""

    trial: str
    arm: str
    seed: int
    slot: int
    step: int
    value: float | None
    """The objective's value; None where it is not finite."""


@dataclass(frozen=True)
class Pruned:
    """A tuning trial was given up at a rung."""

    trial: str
    arm: str
    seed: int
    step: int


@dataclass(frozen=True)
class Tuned:
    """An arm's search is through, and its values are frozen."""

    arm: str
    values: Mapping[str, Any]
    """By dotted path."""
    value: float | None
    """Mean of the objective over the tuning seeds; None where every combination diverged."""
    combinations: int
    """How many were tried."""


@dataclass(frozen=True)
class WorkerLost:
    """A worker ended under its trial, which goes on in a new attempt if ``again``, and otherwise has failed."""

    trial: str
    arm: str
    seed: int
    attempt: int
    slot: int
    cause: str
    """The signal's name, as ``SIGKILL``, or the exit code."""
    again: bool


@dataclass(frozen=True)
class Crowded:
    """Memory, not cores or devices, limits how many trials run at once; said again where it becomes less."""

    slots: int
    """How many run at once."""
    limit: str
    """Why, in words that follow the number."""


@dataclass(frozen=True)
class Stopping:
    """A signal came, the budget is used up or no trial can run: those under way write a checkpoint, and that is all."""

    signal: str | None
    """The signal's name."""
    exhausted: Use | None = None
    """The limit that is reached."""
    stale: str | None = None
    """What the plan was made from and is no longer there as it was."""


@dataclass(frozen=True)
class Beat:
    """Said once a second, so that a consumer needs no clock and no thread of its own."""

    counts: Counts


@dataclass(frozen=True)
class SweepEnded:
    """The last event of every sweep that was not stopped at once."""

    outcome: Outcome
    interrupted: bool


Event = (
    SweepStarted
    | Crowded
    | Reconciled
    | IndexBehind
    | Growing
    | TrialStarted
    | TrialProgress
    | BatchSplit
    | TrialEnded
    | Paused
    | Pruned
    | Tuned
    | WorkerLost
    | Stopping
    | Beat
    | SweepEnded
)


class Interrupted(KeyboardInterrupt):
    """A signal ended the sweep; the same call goes on from where it was."""

    exit_code = 130
