from __future__ import annotations

import io
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from ablate.cli import progress as module
from ablate.cli.progress import Progress
from ablate.records.usage import Use
from ablate.sweep.events import (
    Beat,
    Counts,
    Event,
    Failure,
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

FAILURE = Failure(
    "t2", "scale=off", 1, 1, "RuntimeError: [bold]no", Path("runs/x/log.txt"), ("Traceback …", "\x1b[31mred\x1b[0m\a")
)
COUNTS = Counts(planned=6, complete=1, diverged=1, failed=1, running=0, waiting=3)
STORY: list[Event] = [
    SweepStarted(Counts(planned=6, complete=0, diverged=0, failed=0, running=0, waiting=6), 6, 2, "val/loss"),
    Reconciled("t9", "was still marked as running"),
    TrialStarted("t0", "baseline", 0, 1, 0),
    TrialStarted("t1", "kernel=[3, 5]", 0, 2, 1),
    TrialProgress("t0", 0, 275, 550, 1.75, 55_000.0),
    WorkerLost("t1", "kernel=[3, 5]", 0, 2, 1, "SIGKILL", again=True),
    TrialEnded("t0", "baseline", 0, 1, 0, "complete", 1.68341, None, 10.2),
    TrialStarted("t1", "kernel=[3, 5]", 0, 3, 0),
    TrialEnded("t1", "kernel=[3, 5]", 0, 3, 0, "diverged", None, "nonfinite at step 12", 3.0),
    TrialStarted("t2", "scale=off", 1, 1, 0),
    TrialEnded("t2", "scale=off", 1, 1, 0, "failed", None, "RuntimeError: [bold]no", 3.0, FAILURE),
    Stopping("SIGINT"),
    SweepEnded(Outcome(COUNTS, (FAILURE,)), interrupted=True),
]


def plain(events: list[Event]) -> str:
    """What a pipe gets, with every time as 00:00:00."""
    file = io.StringIO()
    with Progress(Console(file=file, width=40)) as progress:
        for event in events:
            progress(event)
    return re.sub(r"^\d\d:\d\d:\d\d", "00:00:00", file.getvalue(), flags=re.MULTILINE)


def test_a_pipe_gets_a_line_for_whatever_happens() -> None:
    assert (
        plain(STORY)
        == """\
00:00:00  6 trials: 0 complete, 0 diverged, 0 failed; 6 to run, 2 at once
00:00:00  put right: trial t9: was still marked as running
00:00:00  kernel=[3, 5], seed 0: its worker ended (SIGKILL); it goes on in a new attempt
00:00:00  [1/6] baseline, seed 0: val/loss 1.683 after 10 s
00:00:00  [2/6] kernel=[3, 5], seed 0: diverged, nonfinite at step 12
00:00:00  [3/6] scale=off, seed 1: failed: RuntimeError: [bold]no
            | Traceback …
            | red
00:00:00  SIGINT: running trials write a checkpoint; a second signal ends at once
6 trials: 1 complete, 1 diverged, 1 failed, 3 waiting
interrupted; the same command goes on from here
  failed: scale=off, seed 1: RuntimeError: [bold]no
          runs/x/log.txt
  = help: `--retry failed` runs them again; every attempt is kept
"""
    )


def test_a_budget_that_is_used_up_and_a_trial_that_takes_too_long_are_told() -> None:
    used_up = Use("gpu_hours", 30, 30.12)
    late = replace(FAILURE, error="at step 4 of 9", end="timed_out")
    counts = replace(COUNTS, failed=0, timed_out=1)
    story = [
        *STORY[:10],
        TrialEnded("t2", "scale=off", 1, 1, 0, "timed_out", None, "at step 4 of 9", 3.0, late),
        Stopping(None, used_up),
        SweepEnded(Outcome(counts, (late,), used_up), interrupted=False),
    ]
    assert (
        "".join(plain(story).splitlines(keepends=True)[5:])
        == """\
00:00:00  [3/6] scale=off, seed 1: timed out: at step 4 of 9
00:00:00  the budget of 30 h `gpu_hours` is used up (30.1 h): running trials write a checkpoint
6 trials: 1 complete, 1 diverged, 0 failed, 1 timed out, 3 waiting
stopped: the budget of 30 h `gpu_hours` is used up (30.1 h); raise it in the file and run the same command
  timed out: scale=off, seed 1: at step 4 of 9
          runs/x/log.txt
  = help: raise `trial_timeout`; `--retry timeout` goes on from their checkpoints
"""
    )


def test_a_pipe_gets_a_heartbeat_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    file = io.StringIO()
    counts = Counts(planned=4, complete=0, diverged=0, failed=0, running=2, waiting=2)
    with Progress(Console(file=file, width=200)) as progress:
        progress(SweepStarted(counts, 4, 2, "val/loss"))
        progress(TrialStarted("t0", "baseline", 0, 1, 0))
        progress(TrialProgress("t0", 0, 0, 100, 1.0, 1.0))
        for second in range(125):
            clock = 1000.0 + second
            progress(TrialProgress("t0", 0, second // 2, 100, 1.0, 1.0))
            progress(Beat(counts))
    first, *beats = file.getvalue().splitlines()
    assert "4 trials" in first
    assert [beat[10:] for beat in beats] == [
        "0/4 done, 0 diverged, 0 failed, 2 running, about 12 min 20 s left",
        "0/4 done, 0 diverged, 0 failed, 2 running, about 11 min 20 s left",
    ]


def test_a_terminal_shows_a_row_for_each_place_and_the_totals() -> None:
    file = io.StringIO()
    with Progress(Console(file=file, width=120, force_terminal=True, color_system=None), live=True) as progress:
        for event in STORY[:5]:
            time.sleep(module.REFRESH)
            progress(event)
    shown = file.getvalue()
    assert "baseline       seed 0" in shown
    assert "275/550  loss 1.7500  55,000 tok/s" in shown
    assert "kernel=[3, 5]  seed 0 (attempt 2)" in shown
    assert "starting" in shown
    assert "0/6 done, 0 diverged, 0 failed, 2 running" in shown


def test_a_terminal_keeps_what_must_be_seen_and_ends_with_the_summary() -> None:
    file = io.StringIO()
    with Progress(Console(file=file, width=120, force_terminal=True, color_system=None), live=True) as progress:
        for event in STORY:
            progress(event)
    shown = file.getvalue()
    for text in ("SIGKILL", "diverged, nonfinite", "failed: RuntimeError: [bold]no", "| red", "interrupted; the same"):
        assert text in shown
    assert "val/loss 1.683" not in shown
    assert shown.index("\x1b[?25l") < shown.index("\x1b[?25h"), "the cursor is back"


def test_no_color_and_a_pipe_mean_no_escape_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[?" not in plain(STORY)
    assert "\x1b[3" not in plain(STORY)


def test_by_default_it_speaks_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        for event in STORY:
            progress(event)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "6 trials: 1 complete" in captured.err
