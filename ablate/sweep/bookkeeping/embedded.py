"""The index in a SQLite file of the study's own folder, which is set aside when it is damaged."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from optuna.storages import RDBStorage

from ablate.errors import RefusedError
from ablate.sweep.bookkeeping.storage import BUSY, Storage, let_go, quiet
from ablate.sweep.disk import trouble

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Embedded(Storage):
    """One file for one study; the folder's lock keeps others out."""

    def __init__(self, path: Path) -> None:
        """The file; it need not be there."""
        super().__init__()
        self._path = path.absolute()

    def open(self) -> RDBStorage:
        """Open the file, or make it; one that is damaged is set aside.

        Raises:
            RefusedError: it is no file that can be used.
        """
        if reason := self._damage():
            self._replaced(reason)
        try:
            # A creator, and not a URL, which would read `?` or `{` in a folder's name as its own.
            with quiet():
                return RDBStorage("sqlite://", engine_kwargs={"creator": self._connect})
        except RuntimeError:  # the file's tables are those of another version of Optuna
            self._replaced("another version of Optuna wrote the index")
            return self.open()

    def claim(self, tables: RDBStorage, study: int) -> None:
        """Nothing to do: whoever has the folder's lock has the file."""

    def set_aside(self, tables: RDBStorage, study: int) -> str:
        """Close the file and give it another name."""
        let_go(tables)
        return self._move()

    def _replaced(self, reason: str) -> None:
        difference = f"{reason}; the index was made anew, and the old one is {self._move()}"
        self.differences.append((None, difference))

    def _move(self) -> str:
        aside = self._path.with_suffix(".old.db")
        for suffix in ("", "-wal", "-shm"):  # a journal left behind would be played into the new file
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self._path}{suffix}", f"{aside}{suffix}")
        return aside.name

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=BUSY)
        connection.execute("PRAGMA journal_mode=WAL")
        # Synced at checkpoints alone: a power cut may cost the last entries, which the next start puts right.
        connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    def _damage(self) -> str | None:
        """What is wrong with the file, or None; damage is told from a lock that another program holds."""
        if not self._path.exists():
            return None
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=BUSY)) as connection:
                found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            return None if found == "ok" else f"the index was damaged ({found})"
        except sqlite3.DatabaseError as error:
            code = error.sqlite_errorcode & 0xFF
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                return f"the index was damaged ({error})"
            if trouble(error) or code in _BUSY:
                raise
            raise RefusedError(f"{self._path} cannot be used: {error}") from error
