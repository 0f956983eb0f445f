from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import typer

from ablate.cli.status import show_status
from ablate.cli.watch import follow
from ablate.records.layout import StudyFolder
from ablate.sweep import watching
from ablate.sweep.events import Counts, Event, Failure, Outcome, SweepEnded, SweepStarted, TrialEnded, TrialProgress
from ablate.sweep.events import TrialStarted as Started
from ablate.sweep.lock import driving
from ablate.sweep.watching import Publisher
from tests.study_maker import make_study

RUNS = Path("runs")
COUNTS = Counts(planned=3, complete=0, diverged=0, failed=0, running=0, waiting=3)
FAILURE = Failure("t1", "ratio=1", 0, 1, "RuntimeError: no", Path("log.txt"), ("Traceback …", "\x1b[31mred"))


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyFolder:
    monkeypatch.setattr(watching, "EVERY", 0.0)
    cells = [("baseline", 0), ("ratio=1", 0), ("ratio=2", 0)]
    return StudyFolder(make_study(tmp_path / "study", seeds=1, factors={"ratio": [4, 1, 2]}, waiting=cells))


class Sweep:
    """A sweep that does one thing whenever someone waits."""

    def __init__(self, study: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stack = ExitStack()
        driver = self.stack.enter_context(driving(study))
        self.publish = self.stack.enter_context(Publisher(study, driver, lambda event: None))
        self._script: Iterator[Callable[[], None]] = iter(())
        monkeypatch.setattr(time, "sleep", lambda seconds: next(self._script)())

    def will(self, *happens: Event | Callable[[], None]) -> None:
        def step(what: Event | Callable[[], None]) -> Callable[[], None]:
            return what if callable(what) else lambda: self.publish(what)

        self._script = map(step, happens)


@pytest.fixture
def sweep(study: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sweep]:
    sweep = Sweep(study, monkeypatch)
    with sweep.stack:
        sweep.publish(SweepStarted(COUNTS, 3, 1, "val/loss"))
        sweep.publish(Started("t0", "baseline", 0, 1, 0))
        yield sweep


def said(capsys: pytest.CaptureFixture[str]) -> str:
    text = capsys.readouterr().err.replace(f"process {os.getpid()}", "process 1")
    return re.sub(r"\d\d:\d\d:\d\d(?!Z)", "00:00:00", re.sub(r"since \S+Z", "since then", text))


def test_it_shows_what_happens_until_the_sweep_ends(
    study: StudyFolder, sweep: Sweep, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep.publish(TrialEnded("t0", "baseline", 0, 1, 0, "complete", 1.5, None, 2.0))
    sweep.will(
        Started("t1", "ratio=1", 0, 1, 0),
        TrialEnded("t1", "ratio=1", 0, 1, 0, "failed", None, "RuntimeError: no", 1.0, FAILURE),
        Started("t2", "ratio=2", 0, 1, 0),
        TrialEnded("t2", "ratio=2", 0, 1, 0, "complete", 1.25, None, 3.0),
        SweepEnded(Outcome(Counts(3, 2, 0, 1, 0, 0), (FAILURE,)), interrupted=False),
        sweep.stack.close,
    )
    follow(study.path, RUNS)
    assert (
        said(capsys)
        == """\
00:00:00  3 trials: 1 complete, 0 diverged, 0 failed; run by process 1 since then
00:00:00  [2/3] ratio=1, seed 0: failed: RuntimeError: no
            | Traceback …
            | red
00:00:00  [3/3] ratio=2, seed 0: val/loss 1.25 after 3.0 s
note: the sweep is through
"""
    )


def test_a_pipe_gets_a_heartbeat_a_minute(
    study: StudyFolder, sweep: Sweep, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: clock)

    def pass_time() -> None:
        nonlocal clock
        clock += 61
        sweep.publish(TrialProgress("t0", 0, 50, 100, 1.0, 1.0))

    sweep.will(pass_time, sweep.stack.close)
    follow(study.path, RUNS)
    assert "00:00:00  0/3 done, 0 diverged, 0 failed, 1 running, about " in said(capsys)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (SweepEnded(Outcome(COUNTS, ()), interrupted=True), "the sweep was interrupted"),
        (None, "the sweep was broken off"),
    ],
)
def test_it_says_how_the_sweep_ended(
    study: StudyFolder, sweep: Sweep, capsys: pytest.CaptureFixture[str], end: Event | None, words: str
) -> None:
    if end:
        sweep.publish(end)
    sweep.will(sweep.stack.close)
    follow(study.path, RUNS)
    assert said(capsys).splitlines()[-1] == f"note: {words}"


def test_a_sweep_that_is_killed_ends_the_view_too(
    study: StudyFolder, sweep: Sweep, capsys: pytest.CaptureFixture[str]
) -> None:
    written = study.progress.read_bytes()

    def kill() -> None:
        sweep.stack.close()
        study.progress.write_bytes(written)

    sweep.will(kill)
    follow(study.path, RUNS)
    assert said(capsys).splitlines()[-1] == "note: the process that ran it has ended without a word"


def test_ctrl_c_ends_the_view_alone(study: StudyFolder, sweep: Sweep, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    sweep.will(interrupt)
    with pytest.raises(typer.Exit) as left:
        follow(study.path, RUNS)
    assert left.value.exit_code == 130
    assert said(capsys).splitlines()[-1] == "no longer watched; the sweep goes on"
    assert watching.running(study) is not None


def test_a_study_that_no_one_runs_is_said_to_be_so(study: StudyFolder, capsys: pytest.CaptureFixture[str]) -> None:
    follow(study.path, RUNS)
    assert said(capsys) == "note: no process runs this study; this is how it stands\n"


def test_status_says_what_runs_how_far_it_is_and_how_to_watch_it(
    study: StudyFolder, sweep: Sweep, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep.publish(TrialProgress("t0", 0, 50, 100, 1.25, 55_000.0))
    show_status(study.path, RUNS, as_json=False)
    *_, who, row, following = re.sub(r"since \S+Z", "since then", capsys.readouterr().out).splitlines()
    assert who.startswith(
        f"process {os.getpid()} since then runs it: 0/3 done, 0 diverged, 0 failed, 1 running, about "
    )
    assert row == "running: baseline, seed 0: step 50 of 100, loss 1.2500, 55,000 tok/s, attempt 1 since then"
    assert following == f"next: ablate status {study.path} --watch"
    show_status(study.path, RUNS, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert shown["driver"].keys() == {"pid", "started", "host"}
    (running,) = shown["trials_running"]
    assert running.pop("since").endswith("Z")
    assert running == {
        "slot": 0, "trial": "t0", "arm": "baseline", "seed": 0, "attempt": 1, "step": 50, "steps": 100, "loss": 1.25,
        "tokens_per_second": 55000.0,
    }  # fmt: skip
    sweep.stack.close()
    show_status(study.path, RUNS, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["driver"], shown["trials_running"]) == (None, [])


def test_a_sweep_that_has_just_begun_has_no_rows_yet(
    study: StudyFolder, sweep: Sweep, capsys: pytest.CaptureFixture[str]
) -> None:
    study.progress.unlink()
    show_status(study.path, RUNS, as_json=False)
    assert "runs it, and has just begun\n" in capsys.readouterr().out
