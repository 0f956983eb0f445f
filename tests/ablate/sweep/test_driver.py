from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from ablate.errors import AblateError, InputError, RefusedError
from ablate.records.layout import StudyFolder, read_json
from ablate.records.steps import noted_step
from ablate.sweep.driver import sweep
from ablate.sweep.events import (
    BatchSplit,
    Beat,
    Counts,
    Event,
    Interrupted,
    Reconciled,
    Stopping,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    TrialProgress,
    TrialStarted,
    WorkerLost,
)
from ablate.sweep.preview import Tally, preview
from ablate_plugins.executor import Local
from tests.ablate.sweep.conftest import StartDriver
from tests.ablate.sweep.stub_study import (
    STUB,
    Run,
    alive,
    assert_exactly_once,
    attempts,
    descendants,
    entries,
    make_plan,
    parents,
    sealed,
    until,
)
from tests.ablate.sweep.stub_trainer import final


def test_six_uneven_trials_on_four_workers_run_exactly_once(study: StudyFolder) -> None:
    plan = make_plan([{"seconds": 0.001 * number} for number in range(6)])
    run = Run(study, plan, parallel=4)
    assert_exactly_once(study, plan)
    assert [len(attempts(folder)) for folder in study.trials()] == [1] * 6
    assert [event.trial for event in run.of(TrialStarted)] == [trial["id"] for trial in plan["trials"]]
    assert run.outcome.counts == Counts(planned=6, complete=6, diverged=0, failed=0, running=0, waiting=0)
    assert run.outcome.exit_code == 0
    (started,) = run.of(SweepStarted)
    assert replace(started, work=None) == SweepStarted(Counts(6, 0, 0, 0, 0, 6), 6, slots=4, metric="val/loss")
    assert run.events[-1] == SweepEnded(run.outcome, interrupted=False)


def test_never_more_trials_at_once_than_slots_and_workers_are_kept(study: StudyFolder) -> None:
    run = Run(study, make_plan([{}] * 8), parallel=2)
    busy: set[int] = set()
    for event in run.events:
        if isinstance(event, TrialStarted):
            assert event.slot in {0, 1} - busy
            busy.add(event.slot)
        elif isinstance(event, TrialEnded):
            busy.remove(event.slot)
    assert len({pid for folder in study.trials() for _, _, pid in attempts(folder)}) == 2


def test_what_no_trial_can_do_without_stops_the_sweep_with_one_message(study: StudyFolder) -> None:
    plan = make_plan([{"is_stale": "the data are gone"}, {"seconds": 0.05, "checkpoint": 1}, {}], seeds=3)
    events: list[Event] = []
    with pytest.raises(AblateError, match=r"^error\[S305\]: the data are gone"):
        sweep(study, plan, Local(parallel=2), on_event=events.append, trainer=STUB)
    [stopping] = [event for event in events if isinstance(event, Stopping)]
    assert stopping.stale == "error[S305]: the data are gone\n  = help: bring it back"
    assert [event.end for event in events if isinstance(event, TrialEnded) if event.end != "complete"] == []
    assert {entry.state for entry in entries(study)} <= {TrialState.WAITING, TrialState.COMPLETE}
    for arm in plan["arms"]:
        arm["config"]["model"].pop("is_stale", None)
    Run(study, plan)
    assert_exactly_once(study, plan)


def test_the_same_call_again_runs_nothing(study: StudyFolder) -> None:
    plan = make_plan([{}] * 3)
    Run(study, plan)
    before = {folder.id: folder.result.stat().st_ino for folder in study.trials()}
    again = Run(study, plan)
    assert again.of(TrialStarted) == []
    assert again.of(Reconciled) == []
    assert again.outcome.counts.complete == 3
    assert {folder.id: folder.result.stat().st_ino for folder in study.trials()} == before
    assert_exactly_once(study, plan)


def test_a_plan_that_grows_runs_what_is_new_and_one_that_shrinks_keeps_the_rest(study: StudyFolder) -> None:
    small, large = make_plan([{}] * 2), make_plan([{}] * 2, seeds=2)
    Run(study, small)
    grown = Run(study, large)
    assert [event.trial for event in grown.of(TrialStarted)] == ["t002", "t003"]
    assert_exactly_once(study, large)
    shrunk = Run(study, small, extend=True)
    assert shrunk.outcome.counts == Counts(planned=2, complete=2, diverged=0, failed=0, running=0, waiting=0)
    assert shrunk.of(Reconciled) == []
    assert_exactly_once(study, large)


def test_a_limit_leaves_the_rest_waiting(study: StudyFolder) -> None:
    plan = make_plan([{}] * 5)
    run = Run(study, plan, limit=2)
    assert run.outcome.counts == Counts(planned=5, complete=2, diverged=0, failed=0, running=0, waiting=3)
    Run(study, plan)
    assert_exactly_once(study, plan)


def test_what_a_trainer_is_told_and_what_it_prints(study: StudyFolder, tmp_path: Path) -> None:
    levels: dict[str, Any] = {"a/b": None, "c": [1, 1.0, True], "d": {"kind": "é"}}
    plan = make_plan([{}])
    plan["arms"][0] |= {"name": "n" * 300, "levels": levels}
    plan["folder"] = str(tmp_path)
    run = Run(study, plan, source="schema: 1\n")
    assert read_json(study.plan) == plan
    assert study.experiment.read_text() == "schema: 1\n"
    folder = study.trial("t000")
    config = read_json(folder.config)
    assert config == {
        "trial": "t000",
        "arm": "arm0",
        "arm_name": "n" * 300,
        "levels": levels,
        "seed": 0,
        "config": {
            "model": {},
            "task": {},
            "training": {},
            "steps": 10,
            "diverged": {"nonfinite": True},
            "precision": "32-true",
            "threads": 1,
        },
        "observe": {
            "evaluations": 1,
            "checkpoint_seconds": 30.0,
            "probes": {"every": 50},
            "objective": "val/loss",
        },
        "components": [],
        "data": {"hash": "0"},
        "folder": str(tmp_path),
    }
    assert folder.attempt(1).log.read_text() == "starting at step 0\nand this past Python\n"
    (entry,) = entries(study)
    assert entry.user_attrs == {
        "trial": "t000",
        "arm": "n" * 300,
        "seed": 0,
        "levels": levels,
        "attempt": 1,
        "end": "complete",
    }
    last = run.of(TrialProgress)[-1]
    assert (last.step, last.steps, last.loss) == (10, 10, final(0, 10))


def test_an_arm_may_have_steps_of_its_own_and_lack_a_factor(study: StudyFolder) -> None:
    plan = make_plan([{}, {}])
    plan["arms"][1] |= {"steps": 4, "levels": {}}
    plan["budget"] |= {"gpu_hours": None, "disk": 10**12, "wall": 3600.0, "trial_timeout": 60.0}
    run = Run(study, plan)
    assert run.outcome.counts.complete == 2
    assert {id: record["metrics"]["val/loss"] for id, record in sealed(study).items()} == {
        "t000": final(0, 10), "t001": final(0, 4),
    }  # fmt: skip
    assert Run(study, plan).of(Reconciled) == []


def test_a_diverged_trial_is_a_result(study: StudyFolder) -> None:
    plan = make_plan([{}, {"diverges": True}])
    run = Run(study, plan)
    assert run.outcome.counts == Counts(planned=2, complete=1, diverged=1, failed=0, running=0, waiting=0)
    assert run.outcome.exit_code == 0
    (ended,) = [event for event in run.of(TrialEnded) if event.end == "diverged"]
    assert (ended.value, ended.reason) == (None, "nonfinite at step 2")
    assert_exactly_once(study, plan)
    assert [entry.value for entry in entries(study) if entry.user_attrs["end"] == "diverged"] == [1e9]
    assert Run(study, plan, retry=frozenset({"failed"})).of(TrialStarted) == []


# --- lost workers ---


def test_a_killed_worker_costs_an_attempt_and_the_trial_goes_on_from_its_checkpoint(study: StudyFolder) -> None:
    plan = make_plan([{}, {}, {"dies": "SIGKILL", "after": 7, "attempts": [1]}, {}, {}, {}])
    run = Run(study, plan)
    assert_exactly_once(study, plan)
    assert [attempt[:2] for attempt in attempts(study.trial("t002"))] == [(1, 0), (2, 5)]
    assert sealed(study)["t002"]["attempt"] == 2
    (lost,) = run.of(WorkerLost)
    assert (lost.trial, lost.attempt, lost.cause, lost.again) == ("t002", 1, "SIGKILL", True)
    assert not study.trial("t002").attempt(1).end.exists()
    assert len(run.of(TrialEnded)) == 6


def test_a_trial_that_loses_its_worker_again_and_again_has_failed(study: StudyFolder) -> None:
    plan = make_plan([{}, {"dies": "SIGSEGV"}, {}], retries=1)
    run = Run(study, plan)
    assert run.outcome.counts == Counts(planned=3, complete=2, diverged=0, failed=1, running=0, waiting=0)
    assert [event.again for event in run.of(WorkerLost)] == [True, False]
    (failure,) = run.outcome.failures
    assert failure.error == "its worker was lost 2 times in a row without a new checkpoint (SIGSEGV)"
    assert "Fatal Python error: Segmentation fault" in "\n".join(failure.log_tail)
    assert read_json(study.trial("t001").attempt(2).end)["error"] == failure.error
    assert [entry.state for entry in entries(study) if entry.user_attrs["trial"] == "t001"] == [TrialState.FAIL]


def test_a_trial_whose_code_ends_the_process_is_lost_whatever_its_exit_code(study: StudyFolder) -> None:
    plan = make_plan([{"vanishes": 0}, {"vanishes": 3, "attempts": [1]}, {}], retries=1)
    run = Run(study, plan, parallel=1)
    assert [(event.trial, event.cause) for event in run.of(WorkerLost)] == [
        ("t000", "exit code 0"), ("t000", "exit code 0"), ("t001", "exit code 3"),
    ]  # fmt: skip
    (failure,) = run.outcome.failures
    assert failure.error == "its worker was lost 2 times in a row without a new checkpoint (exit code 0)"
    assert sealed(study).keys() == {"t001", "t002"}


def test_losses_with_a_new_checkpoint_each_are_not_counted(study: StudyFolder) -> None:
    plan = make_plan([{"dies": "SIGKILL", "checkpoint": 2, "after": 3, "attempts": [1, 2, 3]}], retries=0)
    run = Run(study, plan)
    assert [attempt[:2] for attempt in attempts(study.trial("t000"))] == [(1, 0), (2, 2), (3, 4), (4, 6)]
    assert run.outcome.exit_code == 0
    assert_exactly_once(study, plan)


def test_losses_beside_a_checkpoint_that_is_no_new_work_are_counted(study: StudyFolder) -> None:
    plan = make_plan([{"dies": "SIGKILL", "checkpoint": 5, "after": 7, "forgets": True}], retries=1)
    run = Run(study, plan)
    assert [attempt[:2] for attempt in attempts(study.trial("t000"))] == [(1, 0), (2, 0), (3, 0)]
    assert [noted_step(attempt) for attempt in study.trial("t000").attempts()] == [5, 5, 5]
    assert [event.again for event in run.of(WorkerLost)] == [True, True, False]
    (failure,) = run.outcome.failures
    assert failure.error == (
        "its worker was lost 2 times in a row without a new checkpoint (SIGKILL, perhaps the out-of-memory killer)"
    )


@pytest.mark.parametrize("end", ["failed", "timed_out"])
def test_an_end_that_is_sealed_counts_though_the_worker_died_before_it_said_so(study: StudyFolder, end: str) -> None:
    plan = make_plan([{"seals": end, "dies": "SIGKILL", "attempts": [1]}], retries=5)
    run = Run(study, plan)
    (ended,) = run.of(TrialEnded)
    assert (ended.end, ended.reason) == (end, "said on disk")
    assert attempts(study.trial("t000"))[1:] == []
    again = Run(study, plan, retry=("failed", "timeout"))
    assert again.of(Reconciled) == []
    assert_exactly_once(study, plan)


def test_the_end_of_the_process_that_starts_workers_is_survived(study: StudyFolder) -> None:
    plan = make_plan([{"seconds": 0.02}] * 6)
    killed: list[int] = []

    def kill(event: Event) -> None:
        if isinstance(event, TrialProgress) and not killed:
            killed.append(descendants(os.getpid())[0])
            os.kill(killed[0], signal.SIGKILL)

    run = sweep(study, plan, Local(parallel=2), on_event=kill, trainer=STUB)
    assert run.exit_code == 0
    assert killed
    assert_exactly_once(study, plan)


# --- failures ---


def test_a_failure_whose_message_is_no_text_is_a_failure(study: StudyFolder) -> None:
    plan = make_plan([{"raises_bytes": "61ff62"}, {"cannot_tell": True}])
    run = Run(study, plan)
    errors = ["RuntimeError: a\\udcffb", "_Silent: its message cannot be told (ValueError)"]
    assert [failed.error for failed in sorted(run.outcome.failures, key=lambda each: each.trial)] == errors
    assert [read_json(study.trial(id).attempt(1).end)["error"] for id in ("t000", "t001")] == errors
    assert [len(folder.attempts()) for folder in study.trials()] == [1, 1]


def test_a_trial_that_raises_is_shown_at_once_and_the_others_run(study: StudyFolder) -> None:
    plan = make_plan([{}, {"raises": "no such width\nsecond line", "attempts": [1]}, {}, {}, {}, {}])
    run = Run(study, plan, parallel=1)
    assert run.outcome.counts == Counts(planned=6, complete=5, diverged=0, failed=1, running=0, waiting=0)
    assert run.outcome.exit_code == 1
    (ended,) = [event for event in run.of(TrialEnded) if event.end == "failed"]
    assert run.events.index(ended) < run.events.index(run.of(TrialStarted)[2])
    assert ended.reason == "RuntimeError: no such width"
    assert ended.failure is not None
    assert ended.failure.log_tail[-2:] == ("RuntimeError: no such width", "second line")
    assert run.outcome.failures == (ended.failure,)
    end = read_json(study.trial("t001").attempt(1).end)
    assert (end["end"], end["error"]) == ("failed", "RuntimeError: no such width")

    again = Run(study, plan)
    assert again.of(TrialStarted) == []
    assert again.outcome == run.outcome

    retried = Run(study, plan, retry=frozenset({"failed"}))
    assert [(event.trial, event.attempt) for event in retried.of(TrialStarted)] == [("t001", 2)]
    assert retried.outcome.exit_code == 0
    assert [attempt.number for attempt in study.trial("t001").attempts()] == [1, 2]
    assert study.trial("t001").attempt(1).end.exists()
    assert_exactly_once(study, plan)
    states = [entry.state for entry in entries(study) if entry.user_attrs["trial"] == "t001"]
    assert states == [TrialState.FAIL, TrialState.COMPLETE]


def test_a_trial_after_a_failed_one_gets_a_fresh_process(study: StudyFolder) -> None:
    plan = make_plan([{"raises": "no"}, {}, {}])
    Run(study, plan, parallel=1)
    first, second, third = (attempts(folder)[0][2] for folder in study.trials())
    assert first != second == third


def test_a_trial_after_one_that_changed_the_whole_process_gets_a_fresh_one(study: StudyFolder) -> None:
    plan = make_plan([{}, {"moves": "/"}, {}, {}])
    run = Run(study, plan, parallel=1)
    first, second, third, fourth = (attempts(folder)[0][2] for folder in study.trials())
    assert first == second != third == fourth
    assert run.of(WorkerLost) == []
    said = "this trial changed the working folder for the whole process, which runs no other trial"
    assert [said in folder.attempt(1).log.read_text() for folder in study.trials()] == [False, True, False, False]


def test_a_trainer_that_exits_has_failed(study: StudyFolder) -> None:
    run = Run(study, make_plan([{"exits": 3}, {}]))
    assert [failure.error for failure in run.outcome.failures] == ["SystemExit: 3"]
    assert run.outcome.counts.complete == 1


def test_what_ran_out_of_memory_can_be_retried_alone(study: StudyFolder) -> None:
    plan = make_plan([{}, {"runs_out": "too large", "attempts": [1, 2]}, {"raises": "no", "attempts": [1]}])
    run = Run(study, plan, parallel=1)
    assert [(each.trial, each.end, each.cause) for each in run.outcome.failures] == [
        ("t001", "failed", "oom"), ("t002", "failed", None),
    ]  # fmt: skip
    assert (run.outcome.counts.failed, run.outcome.counts.oom) == (2, 1)
    assert read_json(study.trial("t001").attempt(1).end)["cause"] == "oom"
    assert preview(study, plan).total == Tally(results=1, failed=1, oom=1)
    assert preview(study, plan, retry="oom").total == Tally(results=1, failed=1, anew=1)
    assert preview(study, plan, retry="failed").total == Tally(results=1, anew=2)
    assert Run(study, plan, retry="timeout").of(TrialStarted) == []

    again = Run(study, plan, retry="oom")
    assert [(each.trial, each.attempt) for each in again.of(TrialStarted)] == [("t001", 2)]
    assert {each.trial for each in again.outcome.failures} == {"t001", "t002"}
    Run(study, plan, retry="failed")
    assert_exactly_once(study, plan)
    assert [attempt[0] for attempt in attempts(study.trial("t001"))] == [1, 2, 3]


def test_a_lost_worker_is_the_cause_of_a_failure_and_no_want_of_memory(study: StudyFolder) -> None:
    plan = make_plan([{"dies": "SIGKILL"}], retries=0)
    (failure,) = Run(study, plan).outcome.failures
    assert failure.cause == read_json(study.trial("t000").attempt(1).end)["cause"] == "lost"
    assert preview(study, plan, retry="oom").total == Tally(failed=1)


def test_a_micro_batch_is_told(study: StudyFolder) -> None:
    run = Run(study, make_plan([{"micro_batch": 2}, {}]))
    assert run.of(BatchSplit) == [BatchSplit("t000", "baseline", 0, 2)]


def test_retry_takes_the_classes_that_exist(study: StudyFolder) -> None:
    for words in ("bored", ["failed", "bored"]):
        with pytest.raises(InputError) as raised:
            Run(study, make_plan([{}]), retry=words)
        text = "error[S115]: nothing that ends as `bored` can be run again\n  = help: there are: failed, oom, timeout"
        assert str(raised.value) == text
    assert not study.path.exists()


def test_what_cannot_be_imported_is_one_error_and_no_trial_fails(study: StudyFolder) -> None:
    with pytest.raises(AblateError, match="cannot be imported") as raised:
        Run(study, make_plan([{}]), trainer="tests.ablate.sweep.no_such_module:train")
    assert "ModuleNotFoundError: No module named 'tests.ablate.sweep.no_such_module'" in str(raised.value)
    plan = make_plan([{}])
    Run(study, plan)
    assert_exactly_once(study, plan)


def test_an_exception_of_the_consumer_ends_the_workers(study: StudyFolder) -> None:
    def refuse(event: Event) -> None:
        if isinstance(event, TrialProgress):
            raise ZeroDivisionError

    plan = make_plan([{"seconds": 0.01}] * 2)
    with pytest.raises(ZeroDivisionError):
        sweep(study, plan, Local(parallel=2), on_event=refuse, trainer=STUB)
    assert descendants(os.getpid()) == []
    Run(study, plan)
    assert_exactly_once(study, plan)


# --- the driver's own end ---


def test_two_drivers_on_one_study(study: StudyFolder, start_driver: StartDriver) -> None:
    plan = make_plan([{"seconds": 0.05}] * 4)
    first = start_driver(plan)
    assert first.stdout
    first.stdout.readline()
    with pytest.raises(RefusedError) as refused:
        Run(study, plan)
    assert f"{study.path} is being run by process {first.pid} since 20" in str(refused.value)
    assert str(refused.value).endswith(f"  = help: watch it with `ablate status {study.path} --watch`")
    assert first.wait(20) == 0
    assert_exactly_once(study, plan)


def is_marked_as_running(study: StudyFolder, trial: str) -> bool:
    query = "SELECT state FROM trials JOIN trial_user_attributes USING (trial_id) WHERE value_json = ?"
    try:
        with contextlib.closing(sqlite3.connect(f"{study.storage.as_uri()}?mode=ro", uri=True)) as connection:
            return ("RUNNING",) in connection.execute(query, [json.dumps(trial)]).fetchall()
    except sqlite3.OperationalError:
        return False  # it is not made yet


def test_a_killed_driver_takes_its_workers_along_and_the_same_call_goes_on(
    study: StudyFolder, start_driver: StartDriver
) -> None:
    hangs = {"hangs": True, "after": 6, "attempts": [1]}
    plan = make_plan([{}, {}, hangs, hangs, {}, {}])
    driver = start_driver(plan)
    until((study.path / "trials/t003/a001/checkpoint.pt").exists)
    until(lambda: is_marked_as_running(study, "t003"))  # the index is kept beside the trials, and may be behind them
    workers = descendants(driver.pid)
    driver.kill()
    driver.wait()
    until(lambda: not any(map(alive, workers)), seconds=5)
    before = {id: study.trial(id).result.stat() for id in sealed(study)}
    assert before.keys() == {"t000", "t001"}

    run = Run(study, plan)
    assert_exactly_once(study, plan)
    assert {id: study.trial(id).result.stat() for id in before} == before
    assert [len(attempts(study.trial(id))) for id in before] == [1, 1]
    assert attempts(study.trial("t003"))[1][:2] == (2, 5)
    told = {event.trial: event.difference for event in run.of(Reconciled)}
    assert told["t003"] == "was still marked as running"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_checkpoints_and_ends_and_the_same_call_goes_on(
    study: StudyFolder, start_driver: StartDriver, number: signal.Signals
) -> None:
    plan = make_plan([{"seconds": 0.02, "checkpoint": 1000}] * 2 + [{}] * 2, steps=150)
    driver = start_driver(plan)
    assert driver.stdout
    driver.stdout.readline()
    driver.send_signal(number)
    assert driver.wait(10) == 130
    begun = [folder for folder in study.trials() if attempts(folder)]
    assert begun
    assert all(folder.attempt(1).checkpoint.exists() for folder in begun)
    assert {entry.state for entry in entries(study)} == {TrialState.WAITING}

    run = Run(study, plan)
    assert run.of(Reconciled) == []
    assert_exactly_once(study, plan)
    for folder in begun:
        assert attempts(folder)[1][1] > 0


def test_a_signal_during_the_imports_waits_for_nothing(study: StudyFolder) -> None:
    plan = make_plan([{}] * 3)

    def interrupt(event: Event) -> None:
        if isinstance(event, TrialStarted):
            os.kill(os.getpid(), signal.SIGINT)

    began = time.monotonic()
    with pytest.raises(Interrupted, match="stopped by SIGINT; the same command goes on from here"):
        sweep(study, plan, Local(parallel=1), on_event=interrupt, trainer="tests.ablate.sweep.slow_trainer:train")
    assert time.monotonic() - began < 5
    assert [entry.state for entry in entries(study)] == [TrialState.WAITING]
    Run(study, plan)
    assert_exactly_once(study, plan)


def test_a_trial_that_does_not_listen_delays_the_end_no_longer_than_patience(
    study: StudyFolder, start_driver: StartDriver
) -> None:
    driver = start_driver(make_plan([{"seconds": 0.1, "deaf": True}], steps=1000), patience=0.5)
    assert driver.stdout
    driver.stdout.readline()
    workers = descendants(driver.pid)
    driver.send_signal(signal.SIGINT)
    assert driver.wait(5) == 130
    assert not any(map(alive, workers))


def test_a_second_signal_ends_at_once(study: StudyFolder, start_driver: StartDriver) -> None:
    driver = start_driver(make_plan([{"seconds": 0.05, "deaf": True}], steps=1000), patience=100)
    assert driver.stdout
    driver.stdout.readline()
    workers = descendants(driver.pid)
    driver.send_signal(signal.SIGINT)
    assert "Stopping\n" in driver.stdout
    time.sleep(0.4)
    driver.send_signal(signal.SIGINT)
    started = time.monotonic()
    assert driver.wait(5) == 130
    assert time.monotonic() - started < 5
    assert not any(map(alive, workers))
    plan = make_plan([{}], steps=1000)
    Run(study, plan)
    assert_exactly_once(study, plan)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_to_the_workers_alone_costs_no_attempt_without_its_checkpoint(
    study: StudyFolder, number: signal.Signals
) -> None:
    plan = make_plan([{"seconds": 0.02, "slow": [1], "checkpoint": 1000}], steps=800)
    told: list[int] = []

    def terminate(event: Event) -> None:
        if isinstance(event, TrialProgress) and not told:
            told.append(attempts(study.trial("t000"))[0][2])
            os.kill(told[0], number)

    sweep(study, plan, Local(parallel=1), on_event=terminate, trainer=STUB)
    assert attempts(study.trial("t000"))[1][1] > 0
    assert_exactly_once(study, plan)


def test_no_signal_ends_the_process_that_starts_workers(study: StudyFolder) -> None:
    told: list[int] = []

    def signal_it(event: Event) -> None:
        if isinstance(event, TrialProgress) and not told:
            told.append(descendants(os.getpid())[0])
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
                os.kill(told[0], number)

    plan = make_plan([{"seconds": 0.01}] * 3)
    sweep(study, plan, Local(parallel=1), on_event=signal_it, trainer=STUB)
    assert told
    assert {parent for folder in study.trials() for parent in parents(folder)} == set(told)


def test_handlers_of_signals_are_the_callers_again_afterwards(study: StudyFolder) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
    before = [signal.getsignal(number) for number in numbers]
    Run(study, make_plan([{}]))
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_thread_can_drive(study: StudyFolder) -> None:
    plan = make_plan([{}] * 3)
    thread = threading.Thread(target=Run, args=(study, plan))
    thread.start()
    thread.join()
    assert_exactly_once(study, plan)


# --- records and news ---


def test_a_damaged_record_is_set_aside_and_its_trial_runs_again(study: StudyFolder) -> None:
    plan = make_plan([{}] * 3)
    Run(study, plan)
    result = study.trial("t001").result
    result.write_text(result.read_text()[:40])
    run = Run(study, plan)
    assert [event.trial for event in run.of(TrialStarted)] == ["t001"]
    assert run.of(Reconciled)[0] == Reconciled(
        "t001", "its record was damaged; it was set aside, and the trial runs again"
    )
    assert (study.trial("t001").path / "result.damaged.json").exists()
    assert_exactly_once(study, plan)


def test_the_counts_always_sum_to_what_was_planned_and_come_once_a_second(study: StudyFolder) -> None:
    run = Run(study, make_plan([{"seconds": 0.3}, {"seconds": 0.3}, {"raises": "no"}]))
    beats = run.of(Beat)
    assert len(beats) >= 2
    for counts in (beat.counts for beat in beats):
        assert counts.planned == counts.done + counts.failed + counts.running + counts.waiting
    for earlier, later in pairwise(beats):
        assert later.counts.done >= earlier.counts.done


def test_a_repeat_runs_once_and_is_told_apart(study: StudyFolder) -> None:
    plain = make_plan([{}, {}], seeds=2)
    plan = {**plain, "repeats": [{"id": "again", "arm": "arm0", "seed": 0, "repeat": 1}]}
    Run(study, plain)
    before = preview(study, plan)
    assert (before.total.planned, before.total.new, before.total.anew, before.refusal) == (5, 1, 1, None)
    run = Run(study, plan)
    assert run.outcome.counts == Counts(planned=5, complete=5, diverged=0, failed=0, running=0, waiting=0)
    assert [(event.arm, event.seed) for event in run.of(TrialStarted)] == [("baseline once more", 0)]
    assert read_json(study.trial("again").config)["repeat"] == 1
    assert [entry.user_attrs.get("repeat") for entry in entries(study)] == [None] * 4 + [1]
    assert not Run(study, plan).of(TrialStarted)
    study.plan.unlink()  # nobody knows what was planned, and all that has a folder counts
    assert not Run(study, plan).of(TrialStarted)
    assert preview(study, plain).refusal is None
