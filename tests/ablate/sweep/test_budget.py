"""The limits of a budget: `gpu_hours`, `wall` and `disk` stop a sweep, and `trial_timeout` ends a trial."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from optuna.trial import TrialState

from ablate.records.layout import StudyFolder, read_json
from ablate.records.steps import noted_seconds, noted_step
from ablate.records.usage import Use, folder_size
from ablate.sweep import budget
from ablate.sweep.events import (
    Counts,
    Event,
    Reconciled,
    Stopping,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    TrialProgress,
    TrialStarted,
)
from ablate.sweep.preview import Tally, preview
from ablate.sweep.silence import Silence
from tests.ablate.sweep.stub_study import STUB, Run, assert_exactly_once, attempts, entries, make_plan

HOUR = 3600.0


def limited(plan: dict[str, Any], **limits: float | None) -> dict[str, Any]:
    """The same plan with other limits."""
    return plan | {"budget": plan["budget"] | limits}


def started(run: Run) -> list[str]:
    return [event.trial for event in run.of(TrialStarted)]


# --- gpu_hours ---


def test_hours_of_sealed_results_stop_a_sweep_and_a_raised_limit_goes_on(study: StudyFolder) -> None:
    plan = make_plan([{"costs": HOUR}] * 4)  # ten hours each
    run = Run(study, limited(plan, gpu_hours=15), parallel=1)
    assert started(run) == ["t000", "t001"]
    assert run.outcome.exhausted == Use("gpu_hours", 15, 20.0)
    assert run.outcome.counts == Counts(planned=4, complete=2, diverged=0, failed=0, running=0, waiting=2)
    assert run.outcome.exit_code == 3
    assert run.of(Stopping) == []  # nothing ran that would have had to write a checkpoint
    assert run.events[-1] == SweepEnded(run.outcome, interrupted=False)

    again = Run(study, limited(plan, gpu_hours=20))
    assert started(again) == []
    assert again.outcome.exhausted == Use("gpu_hours", 20, 20.0)
    (begun,) = again.of(SweepStarted)
    assert (begun.counts, begun.to_run) == (run.outcome.counts, 0)
    seen = preview(study, limited(plan, gpu_hours=20))
    assert seen.refusal == (
        "refused: the budget of 20 h `gpu_hours` is used up (20 h); raise it in the file and run the same command"
    )

    raised = Run(study, limited(plan, gpu_hours=20.5), parallel=1)
    assert started(raised) == ["t002"]
    assert raised.outcome.exhausted == Use("gpu_hours", 20.5, 30.0)
    assert Run(study, plan).outcome.exit_code == 0
    assert_exactly_once(study, plan)


def test_a_study_that_is_through_is_done_whatever_it_took(study: StudyFolder) -> None:
    plan = limited(make_plan([{"costs": HOUR}] * 2), gpu_hours=15, disk=1 << 40)
    assert Run(study, plan, parallel=1).outcome.exit_code == 0
    again = Run(study, plan)
    assert (again.outcome.exhausted, again.outcome.exit_code) == (None, 0)
    assert preview(study, plan).refusal is None


def test_hours_of_what_runs_and_of_checkpoints_count(study: StudyFolder) -> None:
    plan = make_plan([{"seconds": 0.02, "checkpoint": 1000, "costs": 10.0}], steps=150)
    run = Run(study, limited(plan, gpu_hours=0.3 / HOUR))
    assert run.outcome.exhausted
    assert run.outcome.exhausted.name == "gpu_hours"
    assert run.of(Stopping) == [Stopping(None, run.outcome.exhausted)]
    attempt = study.trial("t000").attempt(1)
    step = noted_step(attempt)
    assert step
    assert noted_seconds(attempt) == 10 * step
    assert [entry.state for entry in entries(study)] == [TrialState.WAITING]

    again = Run(study, limited(plan, gpu_hours=0.3 / HOUR))
    assert started(again) == []
    assert again.outcome.exhausted == Use("gpu_hours", 0.3 / HOUR, 10 * step / HOUR)
    assert Run(study, plan).of(Reconciled) == []
    assert attempts(study.trial("t000"))[1][1] == step
    assert_exactly_once(study, plan)


# --- wall and disk ---


def test_the_time_of_one_call_is_limited_and_the_next_goes_on(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = 0.0
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + late))

    def pass_time(event: Event) -> None:
        nonlocal late
        late = 1000.0 if isinstance(event, TrialProgress) else late

    plan = make_plan([{"seconds": 0.05, "slow": [1], "checkpoint": 1000}] * 2, steps=800)
    run = Run(study, limited(plan, wall=500.0), parallel=1, on_event=pass_time)
    assert run.outcome.exhausted
    assert (run.outcome.exhausted.name, run.outcome.exhausted.limit) == ("wall", 500.0)
    assert str(run.outcome.exhausted).endswith("; the same command goes on")
    assert run.outcome.counts == Counts(planned=2, complete=0, diverged=0, failed=0, running=0, waiting=2)
    assert run.outcome.exit_code == 3
    for arm in plan["arms"]:
        arm["config"]["model"]["slow"] = []
    Run(study, plan)
    assert attempts(study.trial("t000"))[1][1] > 0
    assert_exactly_once(study, plan)


def test_what_came_before_the_sweep_counts_as_time_of_the_call(study: StudyFolder) -> None:
    run = Run(study, limited(make_plan([{}]), wall=50.0), began=time.monotonic() - 100)
    assert started(run) == []
    assert run.outcome.exhausted
    assert run.outcome.exhausted.used >= 100
    words = "; nothing was started: `wall` is shorter than the start; raise it in the file"
    assert str(run.outcome.exhausted).endswith(words)


def test_a_folder_that_is_too_large_already_starts_nothing(study: StudyFolder) -> None:
    plan = make_plan([{}] * 2)
    run = Run(study, limited(plan, disk=10))
    assert started(run) == []
    assert run.outcome.exhausted
    assert (run.outcome.exhausted.name, run.outcome.exit_code) == ("disk", 3)
    assert run.outcome.exhausted.used >= study.plan.stat().st_size
    Run(study, plan)
    assert_exactly_once(study, plan)


def test_a_folder_that_grows_too_large_stops_a_sweep(study: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MEASURE", 0.0)
    monkeypatch.setattr(budget, "SHARE", 1.0)
    plan = make_plan([{}, *[{"pad": "x" * 200_000}] * 5])
    Run(study, plan, limit=1)
    run = Run(study, limited(plan, disk=folder_size(study.path) + 300_000), parallel=1)
    assert 1 <= len(started(run)) < 5
    assert run.outcome.exhausted
    assert run.outcome.exhausted.name == "disk"
    Run(study, plan)
    assert_exactly_once(study, plan)


# --- trial_timeout ---


def test_a_trial_that_takes_too_long_is_missing_and_goes_on_with_more_time(study: StudyFolder) -> None:
    plan = make_plan([{}, {"costs": 10.0}, {}])
    short = limited(plan, trial_timeout=35.0)
    run = Run(study, short, parallel=1)
    assert run.outcome.counts == Counts(3, complete=2, diverged=0, failed=0, running=0, waiting=0, timed_out=1)
    assert run.outcome.exit_code == 1
    (ended,) = [event for event in run.of(TrialEnded) if event.trial == "t001"]
    assert (ended.end, ended.value, ended.reason) == ("timed_out", None, "at step 4")
    assert run.outcome.failures == (ended.failure,)
    assert ended.failure
    assert ended.failure.end == "timed_out"
    end = read_json(study.trial("t001").attempt(1).end)
    assert (end["end"], end["error"]) == ("timed_out", "at step 4")
    assert len({attempts(folder)[0][2] for folder in study.trials()}) == 1  # its worker is none the worse for it
    (entry,) = [entry for entry in entries(study) if entry.user_attrs["trial"] == "t001"]
    assert (entry.state, entry.user_attrs["end"], entry.user_attrs["reason"]) == (
        TrialState.FAIL, "timed_out", "at step 4",
    )  # fmt: skip

    for retry in ((), "failed"):
        again = Run(study, short, retry=retry)
        assert started(again) == []
        assert again.of(Reconciled) == []
        assert again.outcome == run.outcome
    assert preview(study, short, retry="failed").total == Tally(results=2, timed_out=1)
    assert preview(study, short, retry="timeout").total == Tally(results=2, resume=1)

    retried = Run(study, limited(plan, trial_timeout=1000.0), retry=["timeout", "failed"])
    assert started(retried) == ["t001"]
    assert retried.outcome.exit_code == 0
    assert [attempt[:2] for attempt in attempts(study.trial("t001"))] == [(1, 0), (2, 4)]
    assert read_json(study.trial("t001").config)["observe"]["trial_timeout"] == 1000.0
    assert_exactly_once(study, plan)


@pytest.mark.parametrize("trainer", [STUB, "tests.ablate.sweep.threaded_trainer:train"])
def test_a_trial_that_hangs_in_a_step_is_ended_and_timed_out(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch, trainer: str
) -> None:
    monkeypatch.setattr("ablate.sweep.silence.GRACE", 0.5)
    plan = make_plan([{"hangs": True, "attempts": [1]}])
    run = Run(study, limited(plan, trial_timeout=1.0), trainer=trainer)
    (failure,) = run.outcome.failures
    assert (failure.trial, failure.end, failure.cause) == ("t000", "timed_out", None)
    assert failure.error == "`trial_timeout` is 1 s, and it said nothing for 0.5 s more; its worker was ended"
    assert read_json(study.trial("t000").attempt(1).end)["error"] == failure.error
    assert [event.attempt for event in run.of(TrialStarted)] == [1]
    assert Run(study, limited(plan, trial_timeout=1000.0), retry="timeout").outcome.exit_code == 0
    assert_exactly_once(study, plan)


def test_a_trial_has_hung_when_its_time_is_up_and_it_has_said_nothing_since(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    folder = study.trial("t000")
    silence = Silence(100.0)
    silence.begins(folder)
    clock = 399.0
    assert silence.hung() == []
    silence.hears("t000")
    clock = 698.0
    assert silence.hung() == []
    clock = 699.0
    assert silence.hung() == ["t000"]
    assert silence.hung() == []
    said = "`trial_timeout` is 100 s, and it said nothing for 300 s more; its worker was ended"
    assert [silence.ended("t000"), silence.ended("t000")] == [said, None]


def test_a_retry_without_more_time_times_out_again(study: StudyFolder) -> None:
    plan = limited(make_plan([{"costs": 10.0}]), trial_timeout=35.0)
    Run(study, plan)
    run = Run(study, plan, retry="timeout")
    assert [(each.attempt, each.error) for each in run.outcome.failures] == [(2, "at step 5")]
    assert run.outcome.counts.timed_out == 1


def test_retry_timeout_takes_no_failed_trial(study: StudyFolder) -> None:
    plan = make_plan([{"raises": "no"}])
    Run(study, plan)
    assert started(Run(study, plan, retry="timeout")) == []


def test_an_index_that_is_made_anew_knows_what_timed_out(study: StudyFolder) -> None:
    plan = limited(make_plan([{"costs": 10.0}]), trial_timeout=35.0)
    run = Run(study, plan)
    study.storage.unlink()
    assert Run(study, plan).outcome == run.outcome
    assert [entry.user_attrs["end"] for entry in entries(study)] == ["timed_out"]


def test_a_trainer_that_times_out_and_does_not_say_why_has_failed(study: StudyFolder) -> None:
    run = Run(study, limited(make_plan([{"costs": 10.0, "forgets_its_end": True}]), trial_timeout=35.0))
    (failure,) = run.outcome.failures
    assert failure.end == "failed"
    assert failure.error == "RuntimeError: tests.ablate.sweep.stub_trainer:train said 'timed_out' and wrote no end.json"
