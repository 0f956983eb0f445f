from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial

from ablate.records.layout import StudyFolder
from ablate.sweep.bookkeeping.embedded import Embedded
from ablate.sweep.bookkeeping.index import Index, Label
from ablate.sweep.bookkeeping.tables import MOST
from ablate.sweep.events import Reconciled, TrialStarted
from tests.ablate.sweep.stub_study import Run, assert_exactly_once, entries, make_plan

LABEL = Label("t001", "x=1", 0, {"x": 1})


@contextlib.contextmanager
def opened(study: StudyFolder, plan: Mapping[str, Any]) -> Iterator[Index]:
    index = Index(Embedded(study.storage), plan["name"], plan["objective"])
    try:
        yield index
    finally:
        index.close()


def differences(run: Run) -> list[tuple[str | None, str]]:
    return [(event.trial, event.difference) for event in run.of(Reconciled)]


def test_a_trial_is_running_from_the_moment_that_a_slot_takes_it(study: StudyFolder) -> None:
    plan = make_plan([{}, {}])
    study.path.mkdir()
    with opened(study, plan) as index:
        index.runs(LABEL, 1)
        (entry,) = entries(study)
        assert (entry.state, entry.user_attrs["arm"]) == (TrialState.RUNNING, "x=1")
        index.runs(LABEL, 2)
        (entry,) = entries(study)
        assert (entry.state, entry.user_attrs["attempt"]) == (TrialState.RUNNING, 2)
        index.waits("t001")
        assert [entry.state for entry in entries(study)] == [TrialState.WAITING]


def test_a_trial_that_was_running_when_everything_died_is_taken_up_again(study: StudyFolder) -> None:
    plan = make_plan([{}, {}])
    study.path.mkdir()
    with opened(study, plan) as index:
        index.runs(LABEL, 1)
    run = Run(study, plan)
    assert differences(run) == [("t001", "was still marked as running")]
    assert len(entries(study)) == 2
    assert_exactly_once(study, plan)


def test_a_trial_that_was_running_and_is_planned_no_more_is_closed(study: StudyFolder) -> None:
    study.path.mkdir()
    with opened(study, make_plan([{}, {}])) as index:
        index.runs(LABEL, 1)
    Run(study, make_plan([{}]))
    (closed,) = [entry for entry in entries(study) if entry.user_attrs["trial"] == "t001"]
    assert (closed.state, closed.user_attrs["reason"]) == (TrialState.FAIL, "interrupted")


def test_a_result_that_was_sealed_and_not_told_is_told_once(study: StudyFolder) -> None:
    plan = make_plan([{}, {}])
    Run(study, plan, limit=1)
    sealed_alone = make_plan([{}, {}])
    other = StudyFolder(study.path.with_name("other"))
    Run(other, sealed_alone)
    shutil.copytree(other.trial("t001").path, study.trial("t001").path)
    run = Run(study, plan)
    assert differences(run) == [("t001", "has a result that the index had not")]
    assert run.of(TrialStarted) == []
    assert_exactly_once(study, plan)


def test_a_lost_index_is_made_anew_with_its_failures(study: StudyFolder) -> None:
    plan = make_plan([{}, {"raises": "no", "attempts": [1]}, {"raises": "no", "attempts": [1, 2]}])
    Run(study, plan)
    Run(study, plan, retry=frozenset({"failed"}))
    before = sorted((entry.user_attrs["trial"], entry.state, entry.user_attrs["attempt"]) for entry in entries(study))
    for path in study.path.glob("study.db*"):
        path.unlink()
    run = Run(study, plan)
    assert differences(run) == [(None, "the index knew none of 2 results")]
    after = sorted((entry.user_attrs["trial"], entry.state, entry.user_attrs["attempt"]) for entry in entries(study))
    assert after == before
    assert before == [
        ("t000", TrialState.COMPLETE, 1),
        ("t001", TrialState.COMPLETE, 2),
        ("t001", TrialState.FAIL, 1),
        ("t002", TrialState.FAIL, 1),
        ("t002", TrialState.FAIL, 2),
    ]


def test_a_damaged_index_is_set_aside(study: StudyFolder) -> None:
    plan = make_plan([{}, {}])
    Run(study, plan)
    study.storage.write_bytes(b"this is no database, and long enough to be seen as none" * 100)
    run = Run(study, plan)
    assert differences(run)[0] == (
        None,
        "the index was damaged (file is not a database); the index was made anew, and the old one is study.old.db",
    )
    assert (study.path / "study.old.db").exists()
    assert_exactly_once(study, plan)


@pytest.mark.parametrize("damage", ["{", "", "nonsense", "[[["])
def test_a_damaged_text_in_the_index_makes_it_anew(study: StudyFolder, damage: str) -> None:
    plan = make_plan([{}, {}])
    Run(study, plan)
    with contextlib.closing(sqlite3.connect(study.storage)) as connection:
        connection.execute("UPDATE trial_user_attributes SET value_json = ? WHERE key = 'attempt'", (damage,))
        connection.commit()
    run = Run(study, plan)
    ((trial, difference),) = differences(run)
    assert trial is None
    assert difference.startswith("the index was damaged (JSONDecodeError: ")
    assert difference.endswith("; the index was made anew, and the old one is study.old.db")
    assert run.of(TrialStarted) == []
    assert_exactly_once(study, plan)
    assert differences(Run(study, plan)) == []


@pytest.mark.parametrize("value", ["[]", "{}", "null", '"7"'])
def test_a_value_of_another_type_in_the_index_does_no_harm(study: StudyFolder, value: str) -> None:
    plan = make_plan([{}, {"raises": "no"}, {}])
    Run(study, plan, limit=2)
    with opened(study, plan) as index:
        index.runs(Label("t002", "x=2", 0, {"x": 2}), 1)
    with contextlib.closing(sqlite3.connect(study.storage)) as connection:
        connection.execute("UPDATE trial_user_attributes SET value_json = ?", (value,))
        connection.commit()
    assert Run(study, plan).outcome.counts.complete == 2
    assert differences(Run(study, plan)) == []


def test_an_index_of_another_goal_or_metric_is_made_anew(study: StudyFolder) -> None:
    plan = make_plan([{}, {"diverges": True}])
    Run(study, plan)
    turned = plan | {"objective": {"metric": "val/loss", "goal": "max"}}
    run = Run(study, turned)
    assert differences(run) == [
        (None, "the objective's goal has changed; the index was made anew, and the old one is study.old.db")
    ]
    assert sorted(entry.value or 0 for entry in entries(study))[0] == -1e9
    assert_exactly_once(study, plan)
    assert differences(Run(study, turned)) == []


def test_a_record_that_was_removed_leaves_no_result_in_the_index(study: StudyFolder) -> None:
    plan = make_plan([{}, {}])
    Run(study, plan)
    shutil.rmtree(study.trial("t001").path)
    run = Run(study, plan)
    assert "trial t001 had a result in it and no record" in differences(run)[0][1]
    assert_exactly_once(study, plan)


def test_what_others_put_into_the_study_is_left_alone(study: StudyFolder) -> None:
    plan = make_plan([{}])
    Run(study, plan)
    storage = RDBStorage(f"sqlite:///{study.storage}")
    optuna.load_study(study_name="stub", storage=storage).add_trial(create_trial(value=0.5))
    storage.remove_session()
    storage.engine.dispose()
    assert differences(Run(study, plan)) == []
    assert sorted(entry.user_attrs.get("trial", "") for entry in entries(study)) == ["", "t000"]


def test_a_writer_beside_us_delays_and_breaks_nothing(study: StudyFolder) -> None:
    plan = make_plan([{}, {}, {}])
    Run(study, plan, limit=1)
    release = threading.Timer(1.0, lambda: None)
    with contextlib.closing(sqlite3.connect(study.storage, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        release.function = other.rollback
        release.start()
        Run(study, plan)
        release.join()
    assert_exactly_once(study, plan)


def test_a_folder_may_be_called_anything(study: StudyFolder) -> None:
    strange = StudyFolder(study.path.with_name("a {b} ?c=1#d % é"))
    plan = make_plan([{}])
    Run(strange, plan)
    with contextlib.closing(sqlite3.connect(strange.storage)) as connection:
        assert connection.execute("SELECT state FROM trials").fetchall() == [("COMPLETE",)]
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    assert not list(strange.path.parent.glob("*.db"))


def test_optuna_is_quiet_and_its_logging_is_as_it_was(study: StudyFolder, capfd: pytest.CaptureFixture[str]) -> None:
    assert optuna.logging.get_verbosity() == logging.INFO
    Run(study, make_plan([{}]))
    assert optuna.logging.get_verbosity() == logging.INFO
    assert capfd.readouterr() == ("", "")


def test_an_entry_costs_little_however_many_there_are(study: StudyFolder) -> None:
    study.path.mkdir()
    with opened(study, make_plan([{}])) as index:
        for number in range(20):
            index.runs(Label(f"w{number}", "x=1", number, {"x": 1}), 1)
        began = time.process_time()
        for number in range(100):
            label = Label(f"t{number}", "x=1", number, {"x": 1})
            index.runs(label, 1)
            index.sealed(
                {
                    "trial": label.trial,
                    "arm_name": "x=1",
                    "seed": number,
                    "levels": {"x": 1},
                    "attempt": 1,
                    "end": "complete",
                    "metrics": {"val/loss": 1.0},
                }
            )
        assert (time.process_time() - began) / 100 < 0.025


def levels_of(study: StudyFolder, plan: dict[str, Any], *levels: Mapping[str, Any]) -> None:
    """Enter a trial of each of these levels that is the better the earlier it comes, and more often than once."""
    study.path.mkdir(exist_ok=True)
    found = [(f"{number}{seed}", seed, each, number) for number, each in enumerate(levels) for seed in range(4)]
    records = {
        id: {
            "trial": id, "arm_name": id, "seed": seed, "levels": each, "end": "complete", "attempt": 1,
            "metrics": {"val/loss": number + seed / 100},
        }
        for id, seed, each, number in found
    }  # fmt: skip
    with opened(study, plan) as index:
        index.reconcile(records, [], [])


@pytest.mark.filterwarnings("ignore::UserWarning")  # so few trials say little
def test_levels_are_parameters_whose_importance_can_be_asked_for_also_once_there_are_more(study: StudyFolder) -> None:
    plan = make_plan([{}])
    first = {"norm": "rms", "width": 64, "scale": None}
    levels = [first, {**first, "norm": "layer"}, {**first, "width": 128}, {"norm": "layer", "width": 64.0}]
    levels_of(study, plan, *levels[:2])
    levels_of(study, plan, *levels)
    found = {entry.user_attrs["trial"]: entry for entry in entries(study)}
    assert len(found) == 16
    assert found["00"].params == {"norm": "rms", "width": "64", "scale": "null"}
    assert found["30"].params == {"norm": "layer", "width": "64.0"}
    assert {entry.distributions["width"] for entry in found.values()} == {
        CategoricalDistribution(("64", "128", "64.0"))
    }
    storage = RDBStorage(f"sqlite:///{study.storage}")
    importances = optuna.importance.get_param_importances(optuna.load_study(study_name="stub", storage=storage))
    assert importances.keys() == {"norm", "width", "scale"}
    assert importances["norm"] > importances["scale"] == 0
    storage.remove_session()
    storage.engine.dispose()


def test_of_very_many_levels_only_the_first_are_choices(study: StudyFolder) -> None:
    levels_of(study, make_plan([{}]), *({"x": number} for number in range(MOST + 1)))
    found = entries(study)
    assert [entry.params for entry in found[-8:]] == [{"x": f"{MOST - 1}"}] * 4 + [{}] * 4
    assert found[-1].user_attrs["levels"] == {"x": MOST}


def test_a_number_of_somebody_elses_that_is_called_like_a_factor_is_left_alone(study: StudyFolder) -> None:
    plan = make_plan([{}])
    study.path.mkdir()
    with opened(study, plan) as index:
        index.runs(LABEL, 1)
    storage = RDBStorage(f"sqlite:///{study.storage}")
    other = create_trial(params={"y": 1.0}, distributions={"y": FloatDistribution(0, 1)}, value=1.0)
    optuna.load_study(study_name="stub", storage=storage).add_trial(other)
    storage.remove_session()
    storage.engine.dispose()
    levels_of(study, plan, {"x": 1, "y": 2})
    assert [entry.params for entry in entries(study)][-1] == {"x": "1"}
