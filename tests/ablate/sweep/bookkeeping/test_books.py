"""A storage that is locked, or fails half-way, stops no trial; every entry is made once, now or at the next start."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from sqlalchemy.exc import OperationalError

from ablate.records.layout import StudyFolder
from ablate.sweep.bookkeeping import books
from ablate.sweep.events import Event, IndexBehind, Reconciled, TrialEnded, TrialStarted
from tests.ablate.sweep.conftest import StartDriver
from tests.ablate.sweep.stub_study import Run, assert_exactly_once, entries, environment, make_plan


@contextlib.contextmanager
def locked(study: StudyFolder) -> Iterator[sqlite3.Connection]:
    """Another program writes to the file, and does not come to an end."""
    with contextlib.closing(sqlite3.connect(study.storage, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other
        other.rollback()


def test_a_lock_that_stays_is_told_of_and_the_next_start_puts_the_index_right(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "GRACE", 0.0)
    monkeypatch.setattr(books, "PATIENCE", 3.0)
    plan = make_plan([{}] * 3)
    Run(study, plan, limit=1)
    with locked(study):
        run = Run(study, plan)
    assert run.outcome.counts.complete == 3
    first, last = run.of(IndexBehind)
    assert (first.reason, first.given_up, last.reason, last.given_up) == (
        "database is locked", False, "database is locked", True,
    )  # fmt: skip
    assert first.text == (
        "the Optuna study takes no entries at this moment (database is locked): trials go on, and are entered later"
    )
    assert last.text == (
        "the Optuna study takes no entries (database is locked): all results are in the study's folder, and the next "
        "run enters what is missing"
    )
    again = Run(study, plan)
    assert {event.difference for event in again.of(Reconciled)} == {"has a result that the index had not"}
    assert again.of(TrialStarted) == []
    assert_exactly_once(study, plan)


def test_a_lock_that_goes_is_told_of_and_every_entry_is_made(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "GRACE", 0.0)
    plan = make_plan([{}] * 3)
    Run(study, plan, limit=1)
    events: list[Event] = []
    with locked(study) as other:

        def watch(event: Event) -> None:
            events.append(event)
            if isinstance(event, IndexBehind) and event.reason:
                other.rollback()

        Run(study, plan, on_event=watch)
    assert [event.reason for event in events if isinstance(event, IndexBehind)] == ["database is locked", None]
    assert_exactly_once(study, plan)
    assert len(entries(study)) == 3


def test_a_signal_is_heard_while_the_index_is_locked(study: StudyFolder, start_driver: StartDriver) -> None:
    plan = make_plan([{}, {"seconds": 0.2}])
    Run(study, plan, limit=1)
    with locked(study):
        driver = start_driver(plan)
        assert driver.stdout
        driver.stdout.readline()
        driver.send_signal(signal.SIGINT)
        assert driver.wait(timeout=30) == 130
    Run(study, plan)
    assert_exactly_once(study, plan)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["create_new_trial", "set_trial_state_values", "set_trial_user_attr"])
@pytest.mark.parametrize("written", [True, False])
def test_an_entry_that_failed_is_made_once_whether_it_was_written_or_not(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch, method: str, written: bool
) -> None:
    """As when the connection is lost in a commit: nobody knows whether the server has made it."""
    monkeypatch.setattr(books, "PAUSE", 0.0)
    plan = make_plan([{}, {"raises": "no"}, {}])
    does = getattr(RDBStorage, method)
    calls: list[str] = []

    def fails(self: RDBStorage, *arguments: Any, **options: Any) -> Any:
        calls.append(method)
        if len(calls) not in (1, 4):
            return does(self, *arguments, **options)
        if written:
            does(self, *arguments, **options)
        with self.engine.connect() as connection, contextlib.suppress(OperationalError):
            connection.exec_driver_sql("SELECT no_such_column")  # so that SQLAlchemy has seen an error
        raise StorageInternalError("lost in the commit")

    monkeypatch.setattr(RDBStorage, method, fails)
    Run(study, plan)
    monkeypatch.undo()
    assert calls
    found = entries(study)
    assert sorted((entry.user_attrs["trial"], entry.state) for entry in found) == [
        ("t000", TrialState.COMPLETE), ("t001", TrialState.FAIL), ("t002", TrialState.COMPLETE),
    ]  # fmt: skip
    assert Run(study, plan).of(Reconciled) == []


def test_only_what_a_slot_has_taken_is_in_the_study(study: StudyFolder) -> None:
    plan = make_plan([{}] * 5)
    Run(study, plan, limit=2)
    assert sorted(entry.user_attrs["trial"] for entry in entries(study)) == ["t000", "t001"]


@pytest.mark.slow
def test_a_lock_of_30_seconds_is_waited_for(study: StudyFolder) -> None:
    plan = make_plan([{}] * 3)
    Run(study, plan, limit=1)
    ended: dict[str, float] = {}
    with locked(study) as other:
        release = threading.Timer(30.0, other.rollback)
        release.start()
        began = time.monotonic()
        Run(study, plan, on_event=lambda event: note(ended, event))
        assert time.monotonic() - began > 25
        release.join()
    assert max(ended.values()) - began < 25
    assert_exactly_once(study, plan)


def note(ended: dict[str, float], event: Event) -> None:
    if isinstance(event, TrialEnded):
        ended[event.trial] = time.monotonic()


DRIVER = """
import json, os, signal, sys
from pathlib import Path
from sqlalchemy import event
from ablate.records.layout import StudyFolder
from ablate.sweep.bookkeeping import tables
from ablate.sweep.events import IndexBehind
from tests.ablate.sweep.stub_study import Run
folder, plan, url, dies = sys.argv[1:]
if dies:  # in a transaction that has written and is not committed
    connect = tables.Tables._connect
    def connected(self):
        opened = connect(self)
        commits = []
        def dying(connection):
            commits.append(1)
            if len(commits) == 4:
                os.kill(os.getpid(), signal.SIGKILL)
        event.listen(opened[0].engine, "commit", dying)
        return opened
    tables.Tables._connect = connected
run = Run(StudyFolder(Path(folder)), json.loads(plan), parallel=1, storage=url)
print([behind.text for behind in run.of(IndexBehind)])
"""


@pytest.mark.slow
def test_eight_processes_on_one_file_of_which_one_is_killed_in_the_middle_of_a_write(tmp_path: Path) -> None:
    """Row 10 of the user's cases: no "database is locked" reaches the user, and nothing is lost."""
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    plans = [make_plan([{}, {}, {}]) | {"name": f"study{number}"} for number in range(8)]

    def start(number: int, dies: str = "") -> subprocess.Popen[str]:
        arguments = [str(tmp_path / f"study{number}"), json.dumps(plans[number]), url, dies]
        return subprocess.Popen(
            [sys.executable, "-c", DRIVER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment(),
        )  # fmt: skip

    drivers = [start(number, "dies" if number == 3 else "") for number in range(8)]
    told = [driver.communicate(timeout=240)[0] for driver in drivers]
    assert drivers[3].returncode == -signal.SIGKILL
    assert [text for number, text in enumerate(told) if number != 3] == ["[]\n"] * 7
    again = start(3)
    assert again.communicate(timeout=60)[0] == "[]\n"
    for number, plan in enumerate(plans):
        assert_exactly_once(StudyFolder(tmp_path / f"study{number}"), plan, url)
        assert len(entries(StudyFolder(tmp_path), url, f"study{number}")) == 3
