"""The index in a real PostgreSQL: exactly once, one folder a study, no password anywhere."""

from __future__ import annotations

import contextlib
import shutil
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import Connection, Engine

from ablate.errors import AblateError, InputError, RefusedError
from ablate.records.layout import StudyFolder, read_json
from ablate.sweep.bookkeeping import books
from ablate.sweep.events import Event, IndexBehind, Reconciled, TrialEnded, TrialStarted
from tests.ablate.sweep.conftest import StartDriver
from tests.ablate.sweep.postgres import PASSWORD, Postgres
from tests.ablate.sweep.stub_study import Run, assert_exactly_once, entries, make_plan


def differences(run: Run) -> list[tuple[str | None, str]]:
    return [(event.trial, event.difference) for event in run.of(Reconciled)]


def shown(url: str) -> str:
    return url.partition("?")[0].replace(quote(PASSWORD, safe=""), "***")


def delete_study(url: str) -> None:
    storage = RDBStorage(url)
    optuna.delete_study(study_name="stub", storage=storage)
    storage.remove_session()
    storage.engine.dispose()


def test_a_sweep_ends_exactly_once_and_its_password_is_nowhere(
    study: StudyFolder, database: str, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = make_plan([{}, {"diverges": True}, {"raises": "no", "attempts": [1]}, {}])
    first = Run(study, plan, storage=database, repeat_storage=True)
    assert first.outcome.counts.failed == 1
    second = Run(study, plan, storage=database, repeat_storage=True, retry="failed")
    assert read_json(study.database)["url"].partition("@")[0].endswith(":***")
    assert differences(second) == []
    assert_exactly_once(study, plan, database)
    assert len(entries(study, database)) == 5
    assert not study.storage.exists()
    told = repr(first.events + second.events) + "".join(capfd.readouterr())
    written = b"".join(path.read_bytes() for path in study.path.rglob("*") if path.is_file())
    for secret in (PASSWORD, quote(PASSWORD, safe="")):
        assert secret not in told
        assert secret.encode() not in written


def test_a_trial_is_called_by_its_names_and_carries_ends_alone(study: StudyFolder, database: str) -> None:
    Run(study, make_plan([{}, {"raises": "no"}]), storage=database)
    complete, failed = sorted(entries(study, database), key=lambda entry: str(entry.user_attrs["trial"]))
    names = {"trial": "t000", "arm": "baseline", "seed": 0, "levels": {"x": 0}, "attempt": 1}
    assert complete.user_attrs == names | {"end": "complete"}
    assert failed.user_attrs == names | {
        "trial": "t001", "arm": "x=1", "levels": {"x": 1}, "end": "failed", "reason": "RuntimeError: no",
    }  # fmt: skip
    assert (complete.params, failed.params) == ({"x": "0"}, {"x": "1"})
    assert not any(entry.intermediate_values or entry.system_attrs for entry in (complete, failed))


def test_a_killed_driver_goes_on(study: StudyFolder, database: str, start_driver: StartDriver) -> None:
    plan = make_plan([{"seconds": 0.05}, {}, {}])
    driver = start_driver(plan, storage=database)
    assert driver.stdout
    driver.stdout.readline()
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    Run(study, plan, storage=database)
    assert_exactly_once(study, plan, database)


@pytest.mark.slow
def test_a_server_that_restarts_stops_no_trial_and_is_told_of_once(
    study: StudyFolder, postgres: Postgres, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "GRACE", 0.0)
    plan = make_plan([{"seconds": 0.02}] * 4)
    ended: list[Event] = []

    def watch(event: Event) -> None:
        ended.append(event)
        if isinstance(event, TrialEnded) and event.trial == "t000":
            postgres.stop()
        elif isinstance(event, IndexBehind) and event.reason:
            postgres.start()

    Run(study, plan, parallel=1, storage=database, on_event=watch)
    behind = [event for event in ended if isinstance(event, IndexBehind)]
    assert [(event.reason is None, event.given_up) for event in behind] == [(False, False), (True, False)]
    assert PASSWORD not in repr(behind)
    assert_exactly_once(study, plan, database)
    assert len(entries(study, database)) == 4
    again = Run(study, plan, storage=database)
    assert (again.of(TrialStarted), differences(again)) == ([], [])


@contextlib.contextmanager
def losing_what_is_entered(url: str) -> Iterator[list[int]]:
    """The server takes the first trial that is entered, and the connection is lost before it has said so."""
    lost: list[int] = []

    def notes(connection: Connection, cursor: object, statement: str, *rest: object) -> None:
        connection.info["enters"] = connection.info.get("enters") or statement.startswith("INSERT INTO trials ")

    def loses(connection: Connection) -> None:
        if not connection.info.pop("enters", False) or lost:
            return
        own: Any = connection.connection.dbapi_connection
        own.commit()
        own.execute("SELECT 1")  # so that there is something to commit
        lost.append(own.info.backend_pid)
        other = create_engine(url)
        with other.connect() as another:
            another.execute(text("SELECT pg_terminate_backend(:process)"), {"process": lost[0]})
        other.dispose()

    event.listen(Engine, "before_cursor_execute", notes)
    event.listen(Engine, "commit", loses)
    try:
        yield lost
    finally:
        event.remove(Engine, "before_cursor_execute", notes)
        event.remove(Engine, "commit", loses)


def test_what_the_server_took_before_the_connection_was_lost_is_not_entered_again(
    study: StudyFolder, database: str
) -> None:
    plan = make_plan([{}, {}, {}])
    with losing_what_is_entered(database) as lost:
        Run(study, plan, storage=database)
    assert lost
    assert [entry.state for entry in entries(study, database)] == [TrialState.COMPLETE] * 3
    assert_exactly_once(study, plan, database)
    assert differences(Run(study, plan, storage=database)) == []


def test_one_study_belongs_to_one_folder(study: StudyFolder, database: str) -> None:
    plan = make_plan([{}])
    Run(study, plan, storage=database)
    other = StudyFolder(study.path.with_name("other"))
    with pytest.raises(RefusedError) as refused:
        Run(other, plan, storage=database)
    first, help = str(refused.value).splitlines()
    assert first.startswith(f"the study `stub` in {shown(database)} belongs to the folder {study.path} on ")
    assert help == "  = help: give this experiment another `name`, or run it from there (`--runs`)"
    assert not list(other.trials())
    Run(other, plan | {"name": "another"}, storage=database)

    shutil.copytree(study.path, copy := study.path.with_name("copy"))
    with pytest.raises(RefusedError, match=f"belongs to the folder {study.path} on "):
        Run(StudyFolder(copy), plan, storage=database)

    shutil.rmtree(copy)
    study.path.rename(moved := study.path.with_name("moved"))
    assert differences(Run(StudyFolder(moved), plan, storage=database)) == []
    assert len(entries(study, database)) == 1

    shutil.rmtree(moved)
    assert differences(Run(study, plan, storage=database)) == [
        (None, "trial t000 had a result in it and no record; the index was made anew, and the old one is the study "
         "`stub (old 1)`"),
    ]  # fmt: skip
    assert_exactly_once(study, plan, database)
    assert len(entries(study, database, "stub (old 1)")) == 1


def test_a_study_that_lost_its_trials_is_made_right(study: StudyFolder, database: str) -> None:
    plan = make_plan([{}, {"raises": "no"}])
    Run(study, plan, storage=database)
    delete_study(database)
    assert differences(Run(study, plan, storage=database)) == [(None, "the index knew none of 1 results")]
    assert [entry.state for entry in entries(study, database)] == [TrialState.COMPLETE, TrialState.FAIL]


@pytest.mark.slow
def test_a_study_that_is_deleted_meanwhile_stops_no_trial(study: StudyFolder, database: str) -> None:
    plan = make_plan([{"seconds": 0.02}] * 3)

    def watch(event: Event) -> None:
        if isinstance(event, TrialEnded) and event.trial == "t000":
            delete_study(database)

    assert Run(study, plan, parallel=1, storage=database, on_event=watch).outcome.counts.complete == 3
    Run(study, plan, storage=database)
    assert_exactly_once(study, plan, database)


def refusal(study: StudyFolder, storage: str) -> str:
    with pytest.raises(InputError) as refused:
        Run(study, make_plan([{}]), storage=storage)
    assert not list(study.trials())
    return str(refused.value)


CHECK = "  = help: see that the server runs, and that the name, the password and the database are right"


def test_what_the_server_refuses_is_one_message(study: StudyFolder, postgres: Postgres) -> None:
    for user, password, database, why in (
        ("ada", PASSWORD, "nowhere", 'database "nowhere" does not exist'),
        ("ada", "guessed", "postgres", 'password authentication failed for user "ada"'),
        ("eve", PASSWORD, "postgres", 'password authentication failed for user "eve"'),
    ):
        url = postgres.url(database, user=user, password=password)
        first, help = refusal(study, url).splitlines()
        assert first.startswith(f"error[S406]: postgresql+psycopg://{user}:***@/{database} cannot be used: ")
        assert first.endswith(f"FATAL:  {why}")
        assert help == CHECK


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql", "`storage` is no URL of a database\n"
         "  = help: write it as `postgresql+psycopg://USER@HOST:5432/DATABASE`"),
        ("access://ada:hush@host/x", "`access` is no kind of database\n  = help: write `postgresql+psycopg://...`"),
        ("mysql+pymysql://ada:hush@host/x", "mysql+pymysql://ada:***@host/x needs the package `pymysql`, which is not "
         "installed\n  = help: pip install 'pymysql'"),
        ("postgresql+pg8000://ada:hush@host/x", "postgresql+pg8000://ada:***@host/x needs the package `pg8000`, which "
         "is not installed\n  = help: pip install 'ablate-arch[postgresql]', and write `postgresql+psycopg://...`"),
        ("sqlite://", "`sqlite://` is a database in memory, which would be lost\n  = help: name a file"),
        ("postgresql://ada:${NOT_SET}@host/x", "`storage` names the variable `NOT_SET`, which is not set\n"
         "  = help: export NOT_SET=..."),
    ],
)  # fmt: skip
def test_a_url_that_cannot_be_used(study: StudyFolder, url: str, message: str) -> None:
    assert refusal(study, url) == f"error[S406]: {message}"


def test_nobody_listens(study: StudyFolder) -> None:
    first, help = refusal(study, "postgresql+psycopg://ada:hush@127.0.0.1:1/x").splitlines()
    assert first.startswith(
        "error[S406]: postgresql+psycopg://ada:***@127.0.0.1:1/x cannot be used: connection failed: "
    )
    assert help == CHECK


@pytest.mark.slow
def test_variables_of_the_environment_stand_for_parts(
    study: StudyFolder, postgres: Postgres, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan: Mapping[str, Any] = make_plan([{}])
    monkeypatch.setenv("SECRET_WORD", PASSWORD)
    Run(study, plan, storage=database.replace(quote(PASSWORD, safe=""), "${SECRET_WORD}"))
    assert_exactly_once(study, plan, database)
    monkeypatch.setenv("WHOLE_URL", database)
    assert differences(Run(study, plan, storage="${WHOLE_URL}")) == []


@pytest.mark.slow
def test_a_file_of_several_studies(study: StudyFolder, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'all {of} them.db'}"
    plan = make_plan([{}, {}])
    Run(study, plan, storage=url)
    Run(StudyFolder(tmp_path / "second"), plan | {"name": "second"}, storage=url)
    assert_exactly_once(study, plan, url.replace("{", "{{").replace("}", "}}"))
    with pytest.raises(AblateError, match="the study `second` in sqlite:///"):
        Run(study, plan | {"name": "second"}, storage=url)
