"""Where the index is kept: what a file of our own and a database of somebody's have in common."""

from __future__ import annotations

import sqlite3
import threading
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Literal

import optuna
import sqlalchemy
from optuna.distributions import CategoricalDistribution, distribution_to_json
from optuna.exceptions import OptunaError
from optuna.storages import RDBStorage
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

Direction = Literal["minimize", "maximize"]
BUSY = 2.0
"""Seconds that SQLite waits for another writer before it says so; the entry is made again then."""
METRIC_NAMES = "study:metric_names"
"""Where Optuna keeps what an objective is called; its own method for it is an experimental one, and warns."""


class LostError(Exception):
    """The connection was lost, and nobody knows whether what was written has arrived."""


class Storage(ABC):
    """A place for Optuna's tables."""

    def __init__(self) -> None:
        """Nothing is opened yet."""
        self.differences: list[tuple[str | None, str]] = []
        """What had to be put right, in it or to open it: the trial, or None for the study, and what it was."""

    @abstractmethod
    def open(self) -> RDBStorage:
        """Open it; the tables are made if need be.

        Raises:
            AblateError: it cannot be used, and waiting would not help.
        """

    @abstractmethod
    def claim(self, tables: RDBStorage, study: int) -> None:
        """Make sure that this study is ours alone.

        Raises:
            RefusedError: it is another folder's.
        """

    @abstractmethod
    def set_aside(self, tables: RDBStorage, study: int) -> str:
        """Free the study's name for a new one, and let go of the tables; gives what the old one is called now."""

    def redacted(self, text: str) -> str:
        """A text without what must not be shown."""
        return text


def enter_study(tables: RDBStorage, name: str, direction: Direction) -> int:
    """The number of the study with this name; it is made if need be."""
    try:  # asked first: to make one that is there is an error to the database, after which all is read again
        return tables.get_study_id_from_name(name)
    except KeyError:
        with quiet():
            optuna.create_study(study_name=name, storage=tables, direction=direction, load_if_exists=True)
        return tables.get_study_id_from_name(name)


def name_metric(tables: RDBStorage, study: int, metric: str) -> None:
    """Call the objective by its name wherever the study is shown."""
    if tables.get_study_system_attrs(study).get(METRIC_NAMES) != [metric]:
        tables.set_study_system_attr(study, METRIC_NAMES, [metric])


def rename(tables: RDBStorage, study: int) -> str:
    """Free a study's name for a new one; gives what the old one is called now."""
    name, taken = tables.get_study_name_from_id(study), set(optuna.get_all_study_names(tables))
    free = next(each for number in range(1, len(taken) + 2) if (each := f"{name} (old {number})") not in taken)
    with tables.engine.begin() as connection:  # Optuna has no way to rename one
        words = sqlalchemy.text("UPDATE studies SET study_name = :free WHERE study_id = :study")
        connection.execute(words, {"free": free, "study": study})
    return free


def widen(tables: RDBStorage, study: int, parameter: str, choices: CategoricalDistribution) -> None:
    """Give a parameter further choices, in all trials of a study; those that it had are the first of them.

    Optuna takes no trial whose parameter has other choices than before, and has no way to change them. What it keeps
    of a trial's own is its number among them, which stays what it was.
    """
    with tables.engine.begin() as connection:
        words = sqlalchemy.text(
            "UPDATE trial_params SET distribution_json = :choices WHERE param_name = :parameter "
            "AND trial_id IN (SELECT trial_id FROM trials WHERE study_id = :study)"
        )
        told = distribution_to_json(choices)
        connection.execute(words, {"choices": told, "parameter": parameter, "study": study})


def let_go(tables: RDBStorage) -> None:
    """Close every connection."""
    tables.remove_session()
    tables.engine.dispose()


def outside(error: BaseException) -> bool:
    """Whether an error is the storage's, which trials need not wait for, and no mistake of ours."""
    if isinstance(error, SQLAlchemyError | OptunaError | sqlite3.Error | LostError):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = str(trace.tb_frame.f_globals.get("__name__", "")) if trace else ""
    return module.partition(".")[0] in ("optuna", "sqlalchemy")  # as its KeyError for a study that was deleted


def said(error: BaseException) -> str:
    """What the database said, in one line: Optuna and SQLAlchemy put words of their own around it."""
    inner: BaseException = error
    while (cause := (inner.orig if isinstance(inner, DBAPIError) else None) or inner.__cause__) is not None:
        inner = cause
    lines = [line.strip() for line in str(inner).strip().splitlines()]
    return (lines[0] if lines else type(inner).__name__)[:300]


class _Quiet(AbstractContextManager[None]):
    """One for all threads, as Optuna's logging is: the first that wants it quiet makes it so, the last undoes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = optuna.logging.get_verbosity()
                optuna.logging.set_verbosity(optuna.logging.WARNING)
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                optuna.logging.set_verbosity(self._before)


_QUIET = _Quiet()


def quiet() -> AbstractContextManager[None]:
    """Let Optuna say warnings alone while the block lasts: the user has not asked for its word on what it makes."""
    return _QUIET
