"""Shows a sweep while it runs: a live view in a terminal, plain lines with times in a pipe."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ablate.cli.output import duration
from ablate.records.spelling import spelled
from ablate.sweep.events import (
    Beat,
    Counts,
    Event,
    Failure,
    IndexBehind,
    Outcome,
    Paused,
    Pruned,
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

HEARTBEAT = 60.0
"""Seconds without a line in a pipe after which one says that all is well."""
REFRESH = 0.1
"""Seconds between two drawings of the live view."""
BAR = 16
"""Columns of a progress bar."""
NOTHING = Counts(planned=0, complete=0, diverged=0, failed=0, running=0, waiting=0)


class Progress:
    """Takes a sweep's events and shows them on standard error; results never go there, nor progress to standard output.

    Use it as a context: ``with Progress() as progress: sweep(..., on_event=progress)``.
    """

    def __init__(self, console: Console | None = None, *, live: bool | None = None) -> None:
        """Show on ``console``; ``live`` if that is a terminal that can move its cursor, unless it is said."""
        self._console = console or Console(file=sys.stderr)
        if live is None:
            # Not is_terminal, which FORCE_COLOR sets too: colours are welcome in a pipe, a moving cursor is not.
            live = self._console.file.isatty() and not self._console.is_dumb_terminal
        self._view = _View()
        self._live = (
            Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False) if live else None
        )
        self._drawn = self._spoken = time.monotonic()

    def __enter__(self) -> Self:
        """Start the live view, if there is one."""
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the terminal back, whatever happened."""
        if self._live:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        self._view.take(event)
        if isinstance(event, SweepEnded):
            if self._live:
                self._live.update("", refresh=True)
            for line in _summary(event):
                self._print(line)
            return
        if lines := self._view.lines(event, every=not self._live):
            self._say(lines)
        elif not self._live and isinstance(event, Beat) and time.monotonic() - self._spoken >= HEARTBEAT:
            self._say([self._view.totals()])
        if self._live and time.monotonic() - self._drawn >= REFRESH:
            self._drawn = time.monotonic()
            self._live.update(self._view.drawing(), refresh=True)

    def _say(self, lines: list[str]) -> None:
        self._spoken = time.monotonic()
        clock = time.strftime("%H:%M:%S")
        for number, line in enumerate(lines):
            self._print(f"{clock if number == 0 else ' ' * len(clock)}  {line}")

    def _print(self, line: str) -> None:
        # As text, so that brackets in a level or a log are no markup; whole, since a pipe has no width.
        self._console.print(Text(line), soft_wrap=True)


@dataclass(frozen=True)
class _Row:
    """A trial that runs."""

    arm: str
    seed: int
    attempt: int
    step: int = 0
    steps: int = 0
    loss: float | None = None
    tokens_per_second: float | None = None
    resumed: float | None = None
    """The fraction that was done when it was first heard of, by an earlier attempt for the most part."""

    @property
    def fraction(self) -> float:
        return self.step / self.steps if self.steps else 0.0


class _View:
    """What is known of the sweep from its events."""

    def __init__(self) -> None:
        self._counts = NOTHING
        self._rows: dict[int, _Row] = {}
        self._slots = 0
        self._metric = ""
        self._to_run = 0
        self._ended = 0
        self._worked = 0.0
        """Trials' worth of work that this call has done in trials that have ended."""
        self._began: float | None = None

    def take(self, event: Event) -> None:
        """Learn from an event."""
        match event:
            case SweepStarted():
                self._counts, self._to_run = event.counts, event.to_run
                self._slots, self._metric = event.slots, event.metric
            case TrialStarted():
                self._began = self._began or time.monotonic()
                self._rows[event.slot] = _Row(event.arm, event.seed, event.attempt)
                self._count(waiting=-1, running=1)
            case TrialProgress():
                row = self._rows[event.slot]
                self._rows[event.slot] = replace(
                    row,
                    resumed=event.step / event.steps if row.resumed is None else row.resumed,
                    step=event.step,
                    steps=event.steps,
                    loss=event.loss,
                    tokens_per_second=event.tokens_per_second,
                )
            case TrialEnded():
                row = self._rows.pop(event.slot)
                self._ended += 1
                self._worked += 1 - (row.resumed or 0.0)
                self._count(running=-1, **{event.end: 1})
            case Paused():
                self._rows.pop(event.slot, None)
                self._count(running=-1, waiting=1)
            case Pruned():
                self._count(waiting=-1, pruned=1)
            case WorkerLost(again=True):
                self._rows.pop(event.slot, None)
                self._count(running=-1, waiting=1)
            case Beat():
                self._counts = event.counts

    def _count(self, **changes: int) -> None:
        self._counts = replace(self._counts, **{name: getattr(self._counts, name) + by for name, by in changes.items()})

    def lines(self, event: Event, *, every: bool) -> list[str]:
        """What is to be said of an event; ``every`` if nothing else shows what a live view does."""
        match event:
            case SweepStarted() if every:
                lines = [f"{_standing(event.counts)}; {event.to_run} to run, {event.slots} at once"]
            case Reconciled():
                where = f"trial {event.trial}" if event.trial else "the study"
                lines = [f"put right: {where}: {event.difference}"]
            case IndexBehind():
                lines = [event.text]
            case TrialEnded() if every or event.end != "complete":
                lines = self._end(event)
            case WorkerLost(again=True):
                who = f"{event.arm}, seed {event.seed}"
                lines = [f"{who}: its worker ended ({event.cause}); it goes on in a new attempt"]
            case Tuned():
                lines = [f"{event.arm}: tuned to {_values(event)}"]
            case Paused() if every:
                lines = [f"{event.arm}, seed {event.seed}: at step {event.step}, to be judged among its batch"]
            case Pruned() if every:
                lines = [f"{event.arm}, seed {event.seed}: given up at step {event.step}"]
            case Stopping():
                second = "; a second signal ends at once" if event.signal else ""
                why = event.signal or (event.exhausted.used_up if event.exhausted else "no trial can run any more")
                lines = [f"{why}: running trials write a checkpoint{second}"]
            case _:
                lines = []
        return lines

    def _end(self, event: TrialEnded) -> list[str]:
        counts = self._counts
        who = f"[{counts.done + counts.failed + counts.timed_out}/{counts.planned}] {event.arm}, seed {event.seed}"
        if event.end == "failed":
            tail = event.failure.log_tail if event.failure else ()
            return [f"{who}: failed: {event.reason}", *(f"  | {_clean(line)}" for line in tail)]
        if event.end == "timed_out":
            return [f"{who}: timed out: {event.reason}"]
        if event.end == "diverged":
            return [f"{who}: diverged, {event.reason}"]
        value = "no value" if event.value is None else f"{event.value:.4g}"
        return [f"{who}: {self._metric} {value} after {duration(event.seconds)}"]

    def totals(self) -> str:
        """One line on where everything stands."""
        counts = self._counts
        parts = [
            f"{counts.done}/{counts.planned} done",
            f"{counts.diverged} diverged",
            f"{counts.failed} failed",
            *_rare(counts),
            f"{counts.running} running",
        ]
        if (left := self._left()) is not None:
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)

    def drawing(self) -> Group:
        """The live view: a row for each place that runs trials, and the totals."""
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=44)
        table.add_column(no_wrap=True, min_width=7)
        table.add_column()
        for width in (9, 11, 10):  # steps, loss, speed: in a narrow window it is the arm's name that gives way
            table.add_column(no_wrap=True, justify="right", min_width=width)
        for slot in range(self._slots):
            row = self._rows.get(slot)
            if row is None:
                table.add_row(Text("idle", style="dim"))
                continue
            again = f" (attempt {row.attempt})" if row.attempt > 1 else ""
            table.add_row(
                Text(row.arm, style="bold"),
                f"seed {row.seed}{again}",
                ProgressBar(total=row.steps or 1, completed=row.step, width=BAR),
                f"{row.step}/{row.steps}" if row.steps else "starting",
                "" if row.loss is None else f"loss {row.loss:.4f}",
                "" if row.tokens_per_second is None else f"{row.tokens_per_second:,.0f} tok/s",
            )
        return Group(table, Text(self.totals()))

    def _left(self) -> float | None:
        """Seconds until this call is through, at the pace so far; None before there is one."""
        rows = self._rows.values()
        worked = self._worked + sum(row.fraction - (row.resumed or 0.0) for row in rows)
        if self._began is None or worked <= 0:
            return None
        missing = self._to_run - self._ended - sum(row.fraction for row in rows)
        return (time.monotonic() - self._began) * max(0.0, missing) / worked


def _values(event: Tuned) -> str:
    values = ", ".join(f"{path.rpartition('.')[2]}={spelled(value)}" for path, value in event.values.items())
    tried = f"the best of {event.combinations} combinations"
    return f"{values}, {tried}" + (" though every one diverged" if event.value is None else f" ({event.value:.4g})")


def _standing(counts: Counts) -> str:
    parts = [f"{counts.complete} complete", f"{counts.diverged} diverged", f"{counts.failed} failed"]
    return f"{counts.planned} trials: {', '.join([*parts, *_rare(counts)])}"


def _rare(counts: Counts) -> list[str]:
    """Ends that are named where there are any."""
    told = {"timed out": counts.timed_out, "pruned in tuning": counts.pruned}
    return [f"{count} {words}" for words, count in told.items() if count]


def _summary(event: SweepEnded) -> list[str]:
    outcome = event.outcome
    waiting = f", {outcome.counts.waiting} waiting" if outcome.counts.waiting else ""
    lines = [_standing(outcome.counts) + waiting]
    if event.interrupted:
        lines.append("interrupted; the same command goes on from here")
    elif outcome.exhausted:
        lines.append(f"stopped: {outcome.exhausted}")
    return lines + _failures(outcome)


def _failures(outcome: Outcome) -> list[str]:
    failed = [failure for failure in outcome.failures if failure.end == "failed"]
    late = [failure for failure in outcome.failures if failure.end == "timed_out"]
    lines = [f"  failed: {_failure(failure)}" for failure in failed]
    if failed:
        lines.append("  = help: `--retry failed` runs them again; every attempt is kept")
    lines += [f"  timed out: {_failure(failure)}" for failure in late]
    if late:
        lines.append("  = help: raise `trial_timeout`; `--retry timeout` goes on from their checkpoints")
    return lines


def _failure(failure: Failure) -> str:
    return f"{failure.arm}, seed {failure.seed}: {_clean(failure.error)}\n          {failure.log}"


def _clean(line: str) -> str:
    """Without what would move the cursor or colour the terminal: a log may hold anything."""
    return re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]", "", line.rpartition("\r")[2])
