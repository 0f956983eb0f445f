"""The index in a database that its user names, beside studies of others."""

from __future__ import annotations

import platform
import time
import uuid
from pathlib import Path
from typing import Any

from optuna.storages import RDBStorage
from sqlalchemy.engine import URL
from sqlalchemy.exc import NoSuchModuleError, OperationalError

from ablate.errors import AblateError, InputError, RefusedError
from ablate.records.layout import StudyFolder, read_json
from ablate.records.sealing import seal
from ablate.sweep.bookkeeping.storage import BUSY, Direction, Storage, enter_study, let_go, outside, quiet, rename, said
from ablate.sweep.bookkeeping.url import cannot, read_url, redacted, shown

OWNER = "owner"
"""The attribute of a study that says whose it is."""
PATIENCE = 10
"""Seconds to wait for a server that does not answer."""
_TIMES, _PAUSE = 10, 0.2
"""How often to try to open it, and the seconds between: two that make the same tables get in each other's way."""


class Shared(Storage):
    """A database that others may use too; this folder's study in it belongs to this folder."""

    def __init__(self, folder: StudyFolder, url: str) -> None:
        """Read the URL; nothing is connected yet.

        Raises:
            InputError: it cannot be one, or names a variable that is not set (S406).
        """
        super().__init__()
        self._folder = folder
        self._url = read_url(url)
        if self._url.get_backend_name() == "sqlite" and self._url.database in (None, "", ":memory:"):
            raise cannot(f"`{shown(self._url)}` is a database in memory, which would be lost", "name a file")

    def check(self, name: str, direction: Direction) -> None:
        """Make sure that the database can be used for this study, before anything is started.

        Raises:
            InputError: it cannot be reached or used (S406).
            RefusedError: its study of this name is another folder's.
        """
        try:
            tables = self.open()
            try:
                self.claim(tables, enter_study(tables, name, direction))
            finally:
                let_go(tables)
        except Exception as error:
            if not outside(error):
                raise
            if not (isinstance(error.__cause__ or error, OperationalError) and _is_file(self._url)):
                raise self._unusable(error) from None
            # A file that another program holds for a while is waited for beside the trials.

    def open(self) -> RDBStorage:
        """Connect; the tables are made if need be.

        Raises:
            InputError: there is no driver for it, or it is another Optuna's (S406).
        """
        last: Exception | None = None
        for _ in range(_TIMES):
            try:
                with quiet():
                    # Optuna takes a URL as a template.
                    url = self._url.render_as_string(hide_password=False).replace("{", "{{").replace("}", "}}")
                    return RDBStorage(url, engine_kwargs=_arguments(self._url))
            except (ImportError, NoSuchModuleError) as error:
                raise self._driverless(error) from None
            except Exception as error:
                if isinstance(error, OperationalError) and not _is_file(self._url):
                    raise  # it does not answer
                last = error
                time.sleep(_PAUSE)
        if isinstance(last, RuntimeError):
            help = "upgrade it (`optuna storage upgrade`), or name another database"
            raise cannot(f"another version of Optuna wrote the tables of {shown(self._url)}", help)
        assert last is not None
        raise last

    def claim(self, tables: RDBStorage, study: int) -> None:
        """Enter this folder as the study's owner, unless it has another.

        Raises:
            RefusedError: another folder is.
        """
        ours = self._identity()
        for _ in range(2):  # what was read back is what counts, where two folders claim it at once
            known = tables.get_study_user_attrs(study).get(OWNER)
            if known == ours:
                return
            if isinstance(known, dict) and self._is_anothers(known, ours):
                name = tables.get_study_name_from_id(study)
                owner = f"the folder {known['folder']} on {known['host']}"
                raise RefusedError(
                    f"the study `{name}` in {shown(self._url)} belongs to {owner}\n"
                    "  = help: give this experiment another `name`, or run it from there (`--runs`)"
                )
            tables.set_study_user_attr(study, OWNER, ours)

    def set_aside(self, tables: RDBStorage, study: int) -> str:
        """Rename the study, since a database cannot be put aside, and let go of it."""
        free = rename(tables, study)
        let_go(tables)
        return f"the study `{free}`"

    def redacted(self, text: str) -> str:
        """A text without the database's password."""
        return redacted(text, self._url)

    def _identity(self) -> dict[str, str]:
        seal(self._folder.owner, {"study": uuid.uuid4().hex})
        study = str(read_json(self._folder.owner)["study"])
        return {"study": study, "folder": str(self._folder.path.resolve()), "host": platform.node()}

    def _is_anothers(self, known: dict[str, Any], ours: dict[str, str]) -> bool:
        """Whether the owner is a folder beside ours: not ours before it was moved, nor one that is gone."""
        if known.get("host") != ours["host"]:
            return known.get("study") != ours["study"]
        there = StudyFolder(Path(str(known.get("folder"))))
        try:
            return bool(read_json(there.owner)["study"] == known.get("study"))
        except (OSError, ValueError, KeyError):
            return False

    def _unusable(self, error: Exception) -> AblateError:
        help = "see that the server runs, and that the name, the password and the database are right"
        return cannot(f"{shown(self._url)} cannot be used: {self.redacted(said(error))}", help)

    def _driverless(self, error: Exception) -> InputError:
        if isinstance(error, NoSuchModuleError):
            return cannot(f"`{self._url.drivername}` is no kind of database", "write `postgresql+psycopg://...`")
        inner = error.__cause__ if isinstance(error.__cause__, ImportError) else error
        module = getattr(inner, "name", None) or "a package"
        words = f"{shown(self._url)} needs the package `{module}`, which is not installed"
        if self._url.get_backend_name() != "postgresql":
            return cannot(words, f"pip install '{module}'")
        also = "" if module == "psycopg" else ", and write `postgresql+psycopg://...`"
        return cannot(words, f"pip install 'ablate-arch[postgresql]'{also}")


def _is_file(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _arguments(url: URL) -> dict[str, Any]:
    """What SQLAlchemy is told beside the URL: nothing waits for ever, and a connection that died is replaced."""
    if _is_file(url):
        return {"connect_args": {"timeout": BUSY, "isolation_level": "IMMEDIATE"}}
    limits = {"connect_timeout": PATIENCE, "tcp_user_timeout": 1000 * PATIENCE}
    libpq = url.get_backend_name() == "postgresql" and url.get_driver_name() in ("psycopg", "psycopg2")
    given = {key: value for key, value in limits.items() if libpq and key not in url.query}
    return {"pool_pre_ping": True, "connect_args": given}
