from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from ablate.cli import progress as module
from ablate.cli.drawing import drawing
from ablate.cli.lines import shown
from ablate.cli.progress import Progress
from ablate.records.usage import Use
from ablate.sweep.events import (
    BatchSplit,
    Beat,
    Counts,
    Crowded,
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
from ablate.sweep.standing import Row, Standing

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
    BatchSplit("t2", "scale=off", 1, 8),
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
    killer = ", perhaps the out-of-memory killer"
    assert f"(SIGKILL{killer})" in plain(STORY)
    assert (
        plain(STORY).replace(killer, "", 1)
        == """\
00:00:00  6 trials: 0 complete, 0 diverged, 0 failed; 6 to run, 2 at once
00:00:00  put right: trial t9: was still marked as running
00:00:00  kernel=[3, 5], seed 0: its worker ended (SIGKILL); it goes on in a new attempt
00:00:00  [1/6] baseline, seed 0: val/loss 1.683 after 10 s
00:00:00  [2/6] kernel=[3, 5], seed 0: diverged, nonfinite at step 12
00:00:00  scale=off, seed 1: out of memory; its batch goes through in micro-batches of 8, with the same gradient
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


@pytest.mark.parametrize("live", [False, True])
def test_that_memory_limits_how_many_run_is_said_everywhere(live: bool) -> None:
    file = io.StringIO()
    with Progress(Console(file=file, width=100, force_terminal=live, no_color=True), live=live) as progress:
        progress(Crowded(1, "for lack of memory: one may take 2.1 GB, and 0.9 GB are free; there are 2 cores"))
    text = "1 at once, for lack of memory: one may take 2.1 GB, and 0.9 GB are free; there are 2 cores"
    assert text in file.getvalue()


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


def drawn(rows: int, width: int, height: int, arm: str = "scale=off", attempt: int = 1) -> list[str]:
    """The live view of so many trials in a window of this size."""
    row = Row(0, "0123456789abcdef", arm, 0, attempt, "2026-01-02T03:04:05Z", 275, 550, 1.75, 55_000.0)
    counts = Counts(planned=40, complete=1, diverged=0, failed=0, running=rows, waiting=39 - rows)
    standing = Standing(counts, rows, "val/loss", tuple(replace(row, slot=slot) for slot in range(rows)), 90.0)
    console = Console(width=width, height=height, color_system=None)
    with console.capture() as captured:
        console.print(drawing(standing, console))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_narrow_window_shortens_the_arms_name_and_nothing_else() -> None:
    long = "placement=sandwich, feed_forward=narrow, kernel=[3, 5], residual=off, scale=off"
    wide, totals = drawn(1, 160, 24, long)
    assert wide.startswith(f"01234567  {long}  seed 0  ━")
    assert totals == "1/40 done, 0 diverged, 0 failed, 1 running, about 1 min 30 s left"
    narrow, totals = drawn(1, 80, 24, long, attempt=2)
    assert narrow == "placement=sandwich, f…  seed 0 (attempt 2)    275/550  loss 1.7500  55,000 tok/s"
    assert len(narrow) <= 80
    assert drawn(1, 50, 24, long)[1] == "1/40 done, 0 diverged, 0 failed, 1 running, about…"


def test_more_trials_than_lines_leave_room_for_the_totals() -> None:
    lines = drawn(30, 120, 10)
    assert len(lines) == 8
    assert lines[-2:] == ["and 24 more", "1/40 done, 0 diverged, 0 failed, 30 running, about 1 min 30 s left"]
    assert len(drawn(7, 120, 10)) == 8
    assert len(drawn(3, 120, 1)) == 2


def test_what_a_log_holds_does_nothing_to_the_terminal() -> None:
    assert shown("10%\r\x1b[2K\x1b[1;31m100%\x1b[0m\r") == "100%"
    assert shown("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x9b31mc\x9c\x85\td\x00") == "abc\td"
    assert shown("1 < 2 [bold] é \u202eabc\u2066") == "1 < 2 [bold] é abc"
    evil = replace(FAILURE, log_tail=("\x1b[2J\x1b[Hgone", "\x1b]0;title\x07"), arm="a\x1b[2J")
    story = [STORY[0], *STORY[9:10], TrialEnded("t2", evil.arm, 1, 1, 0, "failed", None, "no\x1b[2J", 3.0, evil)]
    assert plain(story).splitlines()[1:] == [
        "00:00:00  [1/6] a, seed 1: failed: no",
        "            | gone",
        "            | ",
    ]


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


@pytest.mark.parametrize("view", ["progress.Progress", "event_output.EventOutput"])
def test_a_sweep_goes_on_where_nobody_reads_what_it_says(view: str) -> None:
    module, name = view.split(".")
    code = (
        f"from ablate.cli.{module} import {name}\n"
        f"with {name}() as view:\n"
        "    for number in range(3):\n"
        "        view.note('x' * 100_000)\n"
        "        print(number)\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    shown = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=writer, text=True, check=False)
    os.close(writer)
    assert (shown.stdout, shown.returncode) == ("0\n1\n2\n", 0)
