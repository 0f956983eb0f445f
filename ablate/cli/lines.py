"""What is said of a sweep, line by line: in a pipe of everything, in a terminal of what must be seen."""

from __future__ import annotations

import re

from ablate.cli.output import duration
from ablate.records.spelling import in_words
from ablate.sweep.events import (
    BatchSplit,
    Counts,
    Crowded,
    Event,
    Failure,
    Growing,
    IndexBehind,
    Outcome,
    Paused,
    Pruned,
    Reconciled,
    Stopping,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    Tuned,
    WorkerLost,
)
from ablate.sweep.standing import Standing
from ablate.sweep.workers.lifeline import lost_by

_SEQUENCES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # a window's title, a link
    r"|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]"  # colours, the cursor
    r"|[\x00-\x08\x0a-\x1f\x7f-\x9f]"  # any other control character but the tab
    r"|[\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # what turns the direction of writing
)


def clean(line: str) -> str:
    """A line without what would move the cursor, colour the terminal or turn the text: a log may hold anything."""
    return _SEQUENCES.sub("", line)


def shown(line: str) -> str:
    """What a terminal would have shown of a line of a log in the end, cleaned: a progress bar writes over itself."""
    return clean(line.rstrip("\r").rpartition("\r")[2])


def event_lines(event: Event, ended: int, planned: int, metric: str, *, every: bool) -> list[str]:
    """What is to be said of an event.

    Args:
        event: what happened.
        ended: how many trials have ended by then.
        planned: of how many.
        metric: the objective's name.
        every: say everything, since nothing else shows what a live view does.
    """
    match event:
        case SweepStarted() if every:
            lines = [f"{standing_line(event.counts)}; {event.to_run} to run, {event.slots} at once"]
        case Crowded():
            lines = [f"{event.slots} at once, {event.limit}"]
        case Reconciled():
            where = f"trial {event.trial}" if event.trial else "the study"
            lines = [f"put right: {where}: {event.difference}"]
        case IndexBehind() | Growing():
            lines = [event.text]
        case TrialEnded() if every or event.end != "complete":
            lines = _end(event, f"[{ended}/{planned}] {event.arm}, seed {event.seed}", metric)
        case WorkerLost(again=True):
            who = f"{event.arm}, seed {event.seed}"
            lines = [f"{who}: its worker ended ({lost_by(event.cause)}); it goes on in a new attempt"]
        case BatchSplit():
            lines = [
                f"{event.arm}, seed {event.seed}: out of memory; its batch goes through in micro-batches of "
                f"{event.micro_batch}, with the same gradient"
            ]
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


def _end(event: TrialEnded, who: str, metric: str) -> list[str]:
    if event.end == "failed":
        tail = event.failure.log_tail if event.failure else ()
        return [f"{who}: failed: {event.reason}", *(f"  | {shown(line)}" for line in tail)]
    if event.end == "timed_out":
        return [f"{who}: timed out: {event.reason}"]
    if event.end == "diverged":
        return [f"{who}: diverged, {event.reason}"]
    value = "no value" if event.value is None else f"{event.value:.4g}"
    return [f"{who}: {metric} {value} after {duration(event.seconds)}"]


def totals_line(standing: Standing) -> str:
    """Where everything stands, while it runs."""
    counts = standing.counts
    parts = [
        f"{counts.done}/{counts.planned} done",
        f"{counts.diverged} diverged",
        f"{counts.failed} failed",
        *_rare(counts),
        f"{counts.running} running",
    ]
    if standing.left is not None:
        parts.append(f"about {duration(standing.left)} left")
    return ", ".join(parts)


def standing_line(counts: Counts) -> str:
    """How many trials there are, and how many have ended in which way."""
    parts = [f"{counts.complete} complete", f"{counts.diverged} diverged", f"{counts.failed} failed"]
    return f"{counts.planned} trials: {', '.join([*parts, *_rare(counts)])}"


def summary_lines(event: SweepEnded) -> list[str]:
    """How a sweep ended, with what failed and how to run that again."""
    outcome = event.outcome
    waiting = f", {outcome.counts.waiting} waiting" if outcome.counts.waiting else ""
    lines = [standing_line(outcome.counts) + waiting]
    if event.interrupted:
        lines.append("interrupted; the same command goes on from here")
    elif outcome.exhausted:
        lines.append(f"stopped: {outcome.exhausted}")
    return lines + _failures(outcome)


def _values(event: Tuned) -> str:
    tried = f"the best of {event.combinations} combinations"
    return f"{in_words(event.values)}, {tried}" + (
        " though every one diverged" if event.value is None else f" ({event.value:.4g})"
    )


def _rare(counts: Counts) -> list[str]:
    """Ends that are named where there are any."""
    told = {"timed out": counts.timed_out, "pruned in tuning": counts.pruned}
    return [f"{count} {words}" for words, count in told.items() if count]


def _failures(outcome: Outcome) -> list[str]:
    failed = [failure for failure in outcome.failures if failure.end == "failed"]
    late = [failure for failure in outcome.failures if failure.end == "timed_out"]
    lines = [line for failure in failed for line in _failure("failed", failure)]
    short = sum(failure.cause == "oom" for failure in failed)
    if short < len(failed):
        lines.append("  = help: `--retry failed` runs them again; every attempt is kept")
    if short:
        which = f"the {short} that ran" if short < len(failed) else "those that ran"
        lines.append(f"  = help: `--retry oom` runs {which} out of memory again; every attempt is kept")
    lines += [line for failure in late for line in _failure("timed out", failure)]
    if late:
        lines.append("  = help: raise `trial_timeout`; `--retry timeout` goes on from their checkpoints")
    return lines


def _failure(end: str, failure: Failure) -> list[str]:
    return [f"  {end}: {failure.arm}, seed {failure.seed}: {failure.error}", f"          {failure.log}"]
