from __future__ import annotations

import time
from pathlib import Path

import pytest

from ablate.records.layout import StudyFolder, TrialFolder
from ablate.records.steps import note_step
from ablate.sweep.events import (
    Beat,
    Counts,
    Event,
    Outcome,
    Paused,
    Pruned,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    TrialProgress,
    TrialStarted,
    WorkerLost,
)
from ablate.sweep.standing import Course, Row
from ablate.sweep.work import fraction_done, work_of
from tests.ablate.sweep.stub_study import Run, make_plan


class Clock:
    """A course whose time is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = 1000.0
        self.course = Course()
        monkeypatch.setattr(time, "monotonic", lambda: self.time)

    def at(self, seconds: float, *events: Event) -> float | None:
        """What is left when these have happened."""
        self.time = 1000.0 + seconds
        for event in events:
            self.course.take(event)
        return self.course.standing.left


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def started(planned: int, work: float | None) -> SweepStarted:
    return SweepStarted(Counts(planned, 0, 0, 0, 0, planned), planned, 2, "val/loss", work)


def ended(trial: str, slot: int, end: str = "complete") -> TrialEnded:
    return TrialEnded(trial, trial, 0, 1, slot, end, 1.0, None, 1.0)


def step(trial: str, slot: int, step: int) -> TrialProgress:
    return TrialProgress(trial, slot, step, 100, 1.5, 10.0)


def test_a_short_trial_says_little_of_a_long_one(clock: Clock) -> None:
    """1 of 10 units of work took 10 s, so that 9 take 90: by the number of trials it would be 10 s."""
    clock.at(0, started(2, 10.0), TrialStarted("short", "short", 0, 1, 0, work=1.0))
    assert clock.at(10, ended("short", 0)) == pytest.approx(90)
    assert clock.at(10, TrialStarted("long", "long", 0, 1, 0, work=9.0)) == pytest.approx(90)
    assert clock.at(55, step("long", 0, 50)) == pytest.approx(45)


def test_what_a_checkpoint_holds_is_neither_missing_nor_done_by_this_call(clock: Clock) -> None:
    clock.at(0, started(2, 1.2), TrialStarted("a", "a", 0, 2, 0, work=1.0, done=0.8))
    assert clock.at(10, step("a", 0, 80)) is None
    assert clock.at(10, step("a", 0, 90)) == pytest.approx(10 * (0.1 + 1.0) / 0.1)
    assert clock.at(20, ended("a", 0)) == pytest.approx(100)


def test_the_work_of_a_lost_worker_is_to_be_done_again_from_its_checkpoint(clock: Clock) -> None:
    clock.at(0, started(2, 2.0), TrialStarted("a", "a", 0, 1, 0), TrialStarted("b", "b", 0, 1, 1))
    clock.at(10, step("a", 0, 50), ended("b", 1))
    assert clock.at(10, WorkerLost("a", "a", 0, 1, 0, "SIGKILL", again=True)) == pytest.approx(10)
    assert clock.course.standing.counts == Counts(2, 1, 0, 0, 0, 1)
    assert clock.at(10, TrialStarted("a", "a", 0, 2, 0, done=0.4)) == pytest.approx(6)


def test_a_trial_that_waits_at_a_rung_has_the_rest_before_it_until_it_is_given_up(clock: Clock) -> None:
    clock.at(0, started(2, 2.0), TrialStarted("a", "a", 0, 1, 0))
    assert clock.at(10, step("a", 0, 50), Paused("a", "a", 0, 0, 50, 1.5)) == pytest.approx(30)
    assert clock.at(10, Pruned("a", "a", 0, 50)) == pytest.approx(20)
    assert clock.course.standing.counts == Counts(2, 0, 0, 0, 0, 1, pruned=1)


def test_the_last_trial_takes_as_long_as_its_own_pace_says_however_fast_all_were_together(clock: Clock) -> None:
    clock.at(0, started(4, 4.0), *(TrialStarted(name, name, 0, 1, slot) for slot, name in enumerate("abcd")))
    clock.at(10, *(ended(name, slot) for slot, name in enumerate("abc")))
    assert clock.at(10, step("d", 3, 25)) == pytest.approx(30)  # all together made 3.25 trials in 10 s


def test_a_trial_that_failed_early_was_little_work(clock: Clock) -> None:
    clock.at(0, started(2, 2.0), TrialStarted("a", "a", 0, 1, 0))
    assert clock.at(5, ended("a", 0, "failed")) is None
    clock.at(5, TrialStarted("b", "b", 0, 1, 0))
    assert clock.at(10, step("b", 0, 50)) == pytest.approx(10)


def test_rows_and_counts_are_what_happened(clock: Clock) -> None:
    clock.at(0, started(3, 3.0), TrialStarted("b", "arm b", 1, 2, 1), TrialStarted("a", "arm a", 0, 1, 0))
    clock.at(1, step("b", 1, 7))
    first, second = clock.course.standing.rows
    assert (first.slot, first.arm, first.fraction, first.loss) == (0, "arm a", 0.0, None)
    assert second == Row(1, "b", "arm b", 1, 2, second.since, 7, 100, 1.5, 10.0)
    assert clock.course.ended == 0
    clock.at(2, ended("b", 1, "diverged"))
    assert clock.course.standing.counts == Counts(3, 0, 1, 0, 1, 1)
    assert clock.course.ended == 1
    clock.at(3, Beat(Counts(3, 1, 1, 0, 0, 1)))
    assert clock.course.standing.counts.complete == 1
    clock.at(4, SweepEnded(Outcome(Counts(3, 1, 1, 0, 0, 1), ()), interrupted=True))
    assert clock.course.standing.rows == ()


def test_work_is_steps_by_what_a_step_costs() -> None:
    plan = make_plan([{}])
    arm = plan["arms"][0]
    base = work_of(plan, arm)
    assert work_of(plan, arm | {"steps": 30}) == pytest.approx(3 * base)
    assert work_of(plan, arm | {"flops": 3e9}) > 10 * base
    assert work_of(plan | {"device": "cuda"}, arm | {"flops": 3e9}) < 2 * base


def test_a_fraction_is_that_of_the_furthest_checkpoint(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path / "t")
    assert fraction_done(folder, 10) == 0
    folder.attempt(1).path.mkdir(parents=True)
    folder.attempt(1).checkpoint.write_bytes(b"anything")
    note_step(folder.attempt(1), 4)
    assert fraction_done(folder, 10) == 0.4
    assert fraction_done(folder, 2) == 1.0


def test_a_sweep_says_how_much_work_there_is(study: StudyFolder) -> None:
    plan = make_plan([{}, {"dies": "SIGKILL", "after": 7, "attempts": [1]}])
    plan["arms"][1] |= {"steps": 20}
    run = Run(study, plan, parallel=1)
    (begun,) = run.of(SweepStarted)
    starts = [(event.trial, event.work, event.done) for event in run.of(TrialStarted)]
    short, long = (work_of(plan, arm) for arm in plan["arms"])
    assert begun.work == pytest.approx(short + long)
    assert starts == [("t000", short, 0.0), ("t001", long, 0.0), ("t001", long, 0.25)]
