"""Tuning, seen from the folders and the events of a sweep of stub trials."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from optuna.trial import TrialState

from ablate.errors import RefusedError
from ablate.records.layout import StudyFolder, read_json
from ablate.sweep import backlog
from ablate.sweep.collecting import collect, waste
from ablate.sweep.events import (
    Counts,
    Growing,
    Paused,
    Pruned,
    Reconciled,
    SweepStarted,
    TrialEnded,
    TrialStarted,
    Tuned,
)
from ablate.sweep.preparing import write_plan
from ablate.sweep.preview import preview
from tests.ablate.sweep.conftest import StartDriver
from tests.ablate.sweep.stub_study import Run, attempts, entries, make_plan, sealed, until

PATH = "model.lr"
GRID = [1e-4, 1e-3, 1e-2, 1e-1]


def tuned_plan(best: dict[int, float], *, seeds: int = 2, steps: int = 9, **options: Any) -> dict[str, Any]:
    """Arms whose loss is smallest at these learning rates, and one that has nothing to tune."""
    plan = make_plan([{"lr": 1e-3, "best": rate} for rate in best.values()] + [{}], seeds=seeds, steps=steps)
    tuning: dict[str, Any] = {
        "method": "grid",
        "params": {PATH: {"log": [GRID[0], GRID[-1]], "linear": None, "values": None, "n": len(GRID)}},
        "points": {PATH: GRID},
        "beyond": {},
        "seeds": [100, 101],
        "combinations": len(GRID),
        "batch": 4,
        "halving": None,
        "widen": False,
        "at_baseline": False,
        **options,
    }
    for arm in plan["arms"]:
        arm["steps"] = steps
        if "lr" in arm["config"]["model"]:
            arm["tuning"] = {"identity": f"what {arm['id']} is", "params": [PATH]}
    trials = [{**trial, "id": f"p{trial['id']}"} for trial in plan["trials"]]
    return {**plan, "trials": trials, "tuning": tuning}


def chosen(study: StudyFolder) -> dict[str, Any]:
    return {arm["id"]: arm["tuned"][PATH] for arm in read_json(study.plan)["arms"] if "tuned" in arm}


def test_each_arm_is_reported_at_its_own_best_values(study: StudyFolder) -> None:
    plan = tuned_plan({0: 1e-3, 1: 1e-2})
    run = Run(study, plan)
    assert run.outcome.counts == Counts(planned=22, complete=22, diverged=0, failed=0, running=0, waiting=0)
    assert chosen(study) == {"arm0": 1e-3, "arm1": 1e-2}
    assert sorted((event.arm, event.values[PATH], event.combinations) for event in run.of(Tuned)) == [
        ("baseline", 1e-3, 4),
        ("x=1", 1e-2, 4),
    ]
    tuning = {trial["id"] for trial in read_json(study.plan)["tuning"]["runs"]}
    replayed = {each.id: read_json(each.config)["observe"].get("first_bad", True) for each in study.trials()}
    assert replayed == {
        trial: trial not in tuning for trial in replayed
    }  # where a diverged trial broke is asked of few
    kept = read_json(study.plan)
    assert [arm["config"]["model"].get("lr") for arm in kept["arms"]] == [1e-3, 1e-2, None]
    assert len(kept["tuning"]["runs"]) == 16
    records = sealed(study)
    for trial in kept["trials"]:
        assert records[trial["id"]]["seed"] == trial["seed"] < 100
    assert {records[trial["id"]]["seed"] for trial in kept["tuning"]["runs"]} == {100, 101}
    assert len(records) == 22  # each trial of arm, seed and values is one
    found = Counter(entry.user_attrs["trial"] for entry in entries(study) if entry.state == TrialState.COMPLETE)
    assert found == Counter(list(records))
    assert {entry.user_attrs.get("tuned", {}).get(PATH) for entry in entries(study)} == {*GRID, None}


def test_a_plan_that_takes_long_to_write_is_written_less_often_and_at_the_end(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    def write(study: StudyFolder, plan: Mapping[str, Any], source: str | None) -> None:
        written.append(sum("tuned" in arm for arm in plan["arms"]))
        write_plan(study, plan, source)

    monkeypatch.setattr(backlog, "write_plan", write)
    monkeypatch.setattr(backlog, "SHARE", 1e-9)
    Run(study, tuned_plan({0: 1e-3, 1: 1e-2, 2: 1e-1}, seeds=1), parallel=1)
    assert written == [0, 3]
    assert chosen(study) == {"arm0": 1e-3, "arm1": 1e-2, "arm2": 1e-1}


def test_the_same_call_again_runs_nothing(study: StudyFolder) -> None:
    plan = tuned_plan({0: 1e-3, 1: 1e-2})
    Run(study, plan)
    before = study.plan.read_text()
    again = Run(study, plan)
    assert again.of(TrialStarted) == []
    assert again.outcome.counts.complete == 22
    assert study.plan.read_text() == before


@pytest.mark.parametrize("method", ["random", "tpe"])
def test_one_worker_and_four_propose_the_same_values(study: StudyFolder, method: str) -> None:
    plan = tuned_plan({0: 3e-3}, method=method, combinations=12, points={PATH: None})
    other = StudyFolder(study.path.with_name("other"))
    Run(study, plan, parallel=1)
    run = Run(other, plan, parallel=4)
    runs, others = (read_json(each.plan)["tuning"]["runs"] for each in (study, other))
    assert runs == others
    assert len({trial["tuned"][PATH] for trial in runs}) == 12
    assert all(GRID[0] <= trial["tuned"][PATH] <= GRID[-1] for trial in runs)
    (found,) = run.of(Tuned)
    nearest = min((trial["tuned"][PATH] for trial in runs), key=lambda rate: abs(math.log10(rate / 3e-3)))
    assert found.values[PATH] == nearest


def test_a_killed_search_goes_on_to_the_same_values(study: StudyFolder, start_driver: StartDriver) -> None:
    plan = tuned_plan({0: 3e-3}, method="tpe", combinations=8, points={PATH: None})
    undisturbed = StudyFolder(study.path.with_name("undisturbed"))
    Run(undisturbed, plan)
    driver = start_driver(plan)
    until(lambda: len(sealed(study)) >= 5, 60)
    driver.kill()
    driver.wait()
    assert len(sealed(study)) < 20
    Run(study, plan)
    assert read_json(study.plan) == read_json(undisturbed.plan)
    metrics = [{id: record["metrics"] for id, record in sealed(each).items()} for each in (study, undisturbed)]
    assert metrics[0] == metrics[1]


def test_halving_judges_a_batch_at_each_rung_and_gives_the_worse_up(study: StudyFolder) -> None:
    plan = tuned_plan({0: 1e-2}, seeds=1, steps=9, halving={"reduction": 2, "rungs": 2})
    run = Run(study, plan)
    assert chosen(study) == {"arm0": 1e-2}
    assert sorted((event.arm, event.seed, event.step) for event in run.of(Pruned)) == [
        (f"baseline [lr={rate}]", seed, step)
        for rate, step in (("0.0001", 2), ("0.001", 4), ("0.1", 2))
        for seed in (100, 101)
    ]  # of four combinations two go on to step 4, and one of these to the end
    assert run.outcome.counts == Counts(4 * 2 + 2, complete=4, diverged=0, failed=0, running=0, waiting=0, pruned=6)
    states = Counter(entry.state for entry in entries(study))
    assert states == {TrialState.COMPLETE: 4, TrialState.PRUNED: 6}
    survivor = next(t for t in read_json(study.plan)["tuning"]["runs"] if t["tuned"][PATH] == 1e-2)
    assert [step for _, step, _ in attempts(study.trial(survivor["id"]))] == [0, 2, 4]  # paused, and gone on
    again = Run(study, plan)
    assert again.of(TrialStarted) == []
    assert [(event.to_run, event.work) for event in again.of(SweepStarted)] == [(0, 0.0)]  # what was given up is over


def test_a_trial_that_goes_on_from_its_rung_is_no_other_start_to_the_limit(study: StudyFolder) -> None:
    plan = tuned_plan({0: 1e-2}, seeds=1, steps=9, halving={"reduction": 2, "rungs": 2})
    run = Run(study, plan, limit=8)  # all that tuning starts: four combinations on two seeds
    assert len({event.trial for event in run.of(TrialStarted)}) == 8
    assert chosen(study) == {"arm0": 1e-2}
    assert run.outcome.counts.waiting == 2  # the two that report
    assert len({event.trial for event in Run(study, plan, limit=1).of(TrialStarted)}) == 1


@pytest.mark.parametrize("method", ["random", "tpe"])
def test_a_combination_that_is_proposed_again_is_tried_once_and_judged_once(study: StudyFolder, method: str) -> None:
    options = {"log": None, "linear": None, "values": GRID, "n": None}
    plan = tuned_plan({0: 1e-2}, seeds=1, method=method, params={PATH: options}, combinations=12)
    plan["tuning"]["halving"] = {"reduction": 2, "rungs": 2}
    run = Run(study, plan)
    (tuned,) = run.of(Tuned)
    assert tuned.values == {PATH: 1e-2}
    assert tuned.combinations <= len(GRID)  # in one batch of 12, and in three of 4
    counts, runs = run.outcome.counts, read_json(study.plan)["tuning"]["runs"]
    assert (counts.planned, counts.done) == (len(runs) + 2, len(runs) + 2)
    assert len({trial["number"] for trial in runs}) == tuned.combinations == len(runs) // 2
    again = Run(study, plan)
    assert again.of(TrialStarted) == []
    assert again.outcome.counts == counts


def grown_by_a_rung(study: StudyFolder, evaluates: list[int]) -> Run:
    """Tuning of two rates without halving, then with it and a third, which is the best one."""
    both = tuned_plan({0: 1e-2}, seeds=1, points={PATH: [4e-3, 1e-1]}, combinations=2)
    three = tuned_plan({0: 1e-2}, seeds=1, points={PATH: [4e-3, 1e-1, 1e-2]}, combinations=3)
    three["tuning"]["halving"] = {"reduction": 3, "rungs": 1}  # at step 3 of 9
    for plan in (both, three):
        plan["arms"][0]["config"]["model"]["evaluates"] = evaluates
    Run(study, both)
    assert chosen(study) == {"arm0": 4e-3}
    seen = preview(study, three, extend=True)
    run = Run(study, three, extend=True)
    assert [event.text for event in run.of(Growing)] == list(seen.growth)
    return run


def test_complete_trials_are_judged_at_a_new_rung_by_what_they_had_there(study: StudyFolder) -> None:
    run = grown_by_a_rung(study, evaluates=[1, 3, 6])
    assert chosen(study) == {"arm0": 1e-2}  # at step 3 it has a higher loss than 4e-3 has at step 9
    assert (run.of(Pruned), run.of(Growing)) == ([], [])
    (given_up, *_) = [each for each in entries(study, name="stub: tuning of baseline") if each.params[PATH] == 4e-3]
    assert given_up.state == TrialState.PRUNED
    assert given_up.intermediate_values == {3: pytest.approx((math.log10(4e-3) + 2) ** 2 + 1 / 3 + 100.5 / 1e6)}


def test_complete_trials_that_were_not_evaluated_at_a_new_rung_are_not_given_up_there(study: StudyFolder) -> None:
    run = grown_by_a_rung(study, evaluates=[4])
    assert chosen(study) == {"arm0": 1e-2}
    assert run.of(Pruned) == []  # alone at its rung
    words = "4 tuning trials cannot be given up at step 3: trained before that was a rung, with no evaluation there"
    assert [event.text for event in run.of(Growing)] == [words]
    states = [each.state for each in entries(study, name="stub: tuning of baseline")]
    assert states == [TrialState.COMPLETE] * 3


def test_what_halving_gave_up_goes_on_where_the_search_no_longer_halves(study: StudyFolder) -> None:
    Run(study, tuned_plan({0: 1e-2}, seeds=1, halving={"reduction": 2, "rungs": 1}))
    again = Run(study, tuned_plan({0: 1e-2}, seeds=1))
    assert again.outcome.counts.complete == 10
    assert all(event.attempt > 1 for event in again.of(TrialStarted))
    assert {event.end for event in again.of(TrialEnded)} == {"complete"}


def test_another_objective_is_judged_by_its_own_values_at_the_rungs(study: StudyFolder) -> None:
    first = tuned_plan({0: 1e-2}, seeds=1, steps=8, halving={"reduction": 2, "rungs": 2})
    second = {**first, "objective": {"metric": "val/other", "goal": "min"}}
    undisturbed = StudyFolder(study.path.with_name("undisturbed"))
    Run(undisturbed, second)
    Run(study, first)
    assert chosen(study) == {"arm0": 1e-2}
    changed = Run(study, second, extend=True)
    assert chosen(study) == {"arm0": 1e-4}
    assert changed.outcome.counts.pruned == 6 - 2  # that which was best before has been trained to the end
    assert {event.arm for event in changed.of(TrialStarted)} == {"baseline [lr=0.0001]"}
    assert read_json(study.plan) == read_json(undisturbed.plan)
    assert Run(study, second).of(TrialStarted) == []


def test_what_failed_past_a_rung_and_is_given_up_there_is_given_up_once(study: StudyFolder) -> None:
    plan = tuned_plan({0: 1e-2}, seeds=1, steps=9, halving={"reduction": 2, "rungs": 2})
    plan["arms"][0]["config"]["model"] |= {"raises": "no", "attempts": [2], "after": 1}
    assert Run(study, plan).outcome.counts.failed == 4  # the two rates that go on, on two seeds
    plan["objective"] = {"metric": "val/other", "goal": "min"}
    given_up = {event.trial for event in Run(study, plan, extend=True).of(Pruned)}
    last = [study.trial(trial).attempts()[-1] for trial in given_up]
    assert [read_json(attempt.end)["end"] for attempt in last] == ["pruned"] * 2
    run = Run(study, plan, retry="failed")
    assert given_up.isdisjoint(event.trial for event in run.of(Pruned))
    assert run.outcome.counts == Counts(10, complete=4, diverged=0, failed=0, running=0, waiting=0, pruned=6)
    assert len(Run(study, plan).events) == 2  # it starts, and it ends


def test_a_grid_widens_for_all_arms_where_one_has_its_best_at_the_edge(study: StudyFolder) -> None:
    beyond = {PATH: {"below": [1e-5, 1e-6], "above": [1.0, 10.0, 100.0]}}
    run = Run(study, tuned_plan({0: 1e-3, 1: 1.0}, seeds=1, widen=True, beyond=beyond))
    assert chosen(study) == {"arm0": 1e-3, "arm1": 1.0}
    kept = read_json(study.plan)
    tried = Counter(trial["arm"] for trial in kept["tuning"]["runs"])
    assert tried == {"arm0": 12, "arm1": 12}  # 1.0, and 10.0 since 1.0 was at the edge: for both
    assert kept["tuning"]["widened"] == 2
    assert run.outcome.counts.planned == run.outcome.counts.complete == 27
    assert Run(study, tuned_plan({0: 1e-3, 1: 1.0}, seeds=1, widen=True, beyond=beyond)).of(TrialStarted) == []


def test_without_leave_to_widen_the_best_stays_at_the_edge(study: StudyFolder) -> None:
    Run(study, tuned_plan({0: 1.0}, seeds=1))
    assert chosen(study) == {"arm0": 1e-1}


def test_arms_also_run_at_the_baselines_values(study: StudyFolder) -> None:
    run = Run(study, tuned_plan({0: 1e-3, 1: 1e-2, 2: 1e-3}, at_baseline=True))
    again = read_json(study.plan)["tuning"]["at_baseline"]
    assert [(trial["arm"], trial["seed"], trial["tuned"][PATH]) for trial in again] == [
        ("arm1", 0, 1e-3),
        ("arm1", 1, 1e-3),
    ]  # arm2 has chosen them itself
    assert run.outcome.counts.planned == run.outcome.counts.complete == 24 + 8 + 2


def test_a_failed_tuning_trial_leaves_its_arm_waiting_until_it_is_retried(study: StudyFolder) -> None:
    plan = tuned_plan({0: 1e-3, 1: 1e-2}, seeds=1)
    plan["arms"][1]["config"]["model"] |= {"raises": "no luck", "attempts": [1]}
    run = Run(study, plan)
    assert chosen(study) == {"arm0": 1e-3}
    assert run.outcome.counts == Counts(19, complete=10, diverged=0, failed=8, running=0, waiting=1)
    assert run.outcome.exit_code == 1
    del plan["arms"][1]["config"]["model"]["raises"]
    again = Run(study, plan, retry="failed")
    assert chosen(study) == {"arm0": 1e-3, "arm1": 1e-2}
    assert again.outcome.counts.complete == 19


def test_a_finer_grid_reuses_what_was_tried(study: StudyFolder) -> None:
    Run(study, tuned_plan({0: 1e-3}, seeds=1))
    finer = tuned_plan({0: 1e-3}, seeds=1, points={PATH: [*GRID, 3e-3]}, combinations=5)
    again = Run(study, finer)
    assert [event.arm for event in again.of(TrialStarted)] == ["baseline [lr=0.003]"] * 2
    assert again.outcome.counts.planned == again.outcome.counts.complete == 12


def test_the_index_has_every_proposal_however_the_last_driver_ended(study: StudyFolder) -> None:
    plan = tuned_plan({0: 1e-3, 1: 1e-2}, seeds=1)
    plan["arms"][1]["name"] = "baseline"  # two arms may have one name
    Run(study, plan)
    titles = [f"stub: tuning of baseline ({arm})" for arm in ("arm0", "arm1")]
    before = [_proposed(study, title) for title in titles]
    assert [len(each) for each in before] == [4, 4]
    study.storage.unlink()
    again = Run(study, plan)
    assert [event.difference for event in again.of(Reconciled)] == ["the index knew none of 19 results"]
    assert [_proposed(study, title) for title in titles] == before
    assert Run(study, plan).of(Reconciled) == []


def _proposed(study: StudyFolder, title: str) -> list[tuple[Any, float | None]]:
    return [(entry.params[PATH], entry.value) for entry in entries(study, name=title)]


def test_what_waits_at_a_rung_is_planned_and_no_failure_to_the_index(study: StudyFolder) -> None:
    plan = tuned_plan({0: 1e-2}, seeds=1, halving={"reduction": 2, "rungs": 1})
    assert len(Run(study, plan, limit=3).of(Paused)) == 3
    total = preview(study, plan).total
    assert (total.planned, total.resume, total.later, total.anew, total.new) == (10, 0, 3 + 1, 6, 0)
    Run(study, plan)
    assert {entry.state for entry in entries(study)} == {TrialState.COMPLETE, TrialState.PRUNED}


def test_other_tuned_values_that_leave_results_out_are_said(study: StudyFolder) -> None:
    plan = tuned_plan({0: 1e-2}, seeds=1)
    Run(study, plan)
    fewer = tuned_plan({0: 1e-2}, seeds=1, points={PATH: GRID[:2]}, combinations=2)
    with pytest.raises(RefusedError, match=r"\n  baseline \(1 result\): tuned to model.lr: 0.01 -> 0.001\n"):
        Run(study, fewer)
    longer = tuned_plan({0: 1e-2}, seeds=1, steps=12, points={PATH: GRID[:2]}, combinations=2)
    for trial in [*longer["trials"], *longer["arms"]]:
        trial.update({key: f"{trial[key]}b" for key in ("id", "arm") if key in trial})
    longer["baseline"] += "b"
    longer["budget"] = {**longer["budget"], "steps": 12}
    with pytest.raises(RefusedError, match=r"\n  baseline \(1 result\): budget.steps: 9 -> 12\n"):
        Run(study, longer)  # its learning rate is to be found, and no change
    untuned = {**plan, "tuning": None, "arms": [{**arm, "tuning": None} for arm in plan["arms"]]}
    with pytest.raises(RefusedError, match=r"\n  baseline \(1 result\): the arm is tuned no more\n"):
        Run(study, untuned)


def test_more_steps_tune_an_arm_anew_and_that_is_said(study: StudyFolder) -> None:
    Run(study, tuned_plan({0: 1e-2}, seeds=1))
    longer = tuned_plan({0: 1e-2}, seeds=1, steps=12)
    longer["baseline"] += "b"
    longer["budget"] = {**longer["budget"], "steps": 12}
    for trial in [*longer["trials"], *longer["arms"]]:
        trial.update({key: f"{trial[key]}b" for key in ("id", "arm") if key in trial})
    longer["arms"][0]["tuning"]["identity"] += ", for longer"
    why = "what is best for fewer steps need not be best for more\n  = help"
    with pytest.raises(RefusedError, match=f"\n  = note: an arm that is tuned .* tuned anew: {why}") as refused:
        Run(study, longer)
    seen = preview(study, longer)
    assert (seen.refusal, seen.growth) == (str(refused.value), ())
    told = "1 arm is tuned anew, from the first step: what is best for fewer steps need not be best for more"
    assert preview(study, longer, extend=True).growth == (told,)
    run = Run(study, longer, extend=True)
    assert [event.text for event in run.of(Growing)] == [told]
    assert len(run.of(TrialStarted)) == 8 + 2
    assert Run(study, longer).of(Growing) == []


def test_tuning_that_is_no_longer_asked_for_can_be_collected_once_the_search_is_through(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ablate.sweep.collecting.plan_fault", lambda plan: None)
    Run(study, tuned_plan({0: 1e-2}, seeds=1))
    elsewhere = tuned_plan({0: 1e-2}, seeds=1)
    elsewhere["tuning"]["seeds"] = [200, 201]
    Run(study, elsewhere, limit=1)
    assert [each.count for each in waste(study) if each.kind == "orphans"] == [0]  # it may come to them again
    Run(study, elsewhere)
    assert [each.count for each in waste(study) if each.kind == "orphans"] == [4 * 2]
    collect(study, ["orphans"])
    assert len(list(study.trials())) == 10
    assert Run(study, elsewhere).of(TrialStarted) == []
