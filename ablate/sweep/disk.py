"""A disk that takes nothing more: told in words, with the command that goes on."""

from __future__ import annotations

import contextlib
import errno
import shlex
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ablate.errors import AblateError
from ablate.records.layout import StudyFolder, TrialFolder

Trouble = tuple[tuple[str, str], str, str | None]
"""What is wrong with the disk and the remedy, what was said, and of which file."""

_OF_SYSTEM = {
    errno.ENOSPC: ("the disk is full", "free some space"),
    errno.EDQUOT: ("the disk quota is used up", "free some space"),
    errno.EFBIG: ("a file has reached the largest size that is allowed here", "raise that limit (`ulimit -f`)"),
    errno.EROFS: ("the disk is read-only", "make it writable"),
    errno.EACCES: ("the study may not be written", "give yourself the right to write there"),
    errno.EPERM: ("the study may not be written", "give yourself the right to write there"),
    errno.EIO: ("the disk has an error", "see that the disk is sound"),
}
_FOR_ALL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What is so for every file, wherever a trial wrote."""
_OF_SQLITE = {
    sqlite3.SQLITE_FULL: ("the disk is full", "free some space"),
    sqlite3.SQLITE_READONLY: ("the study's index may not be written", "give yourself the right to write there"),
    sqlite3.SQLITE_IOERR: ("the disk does not take what is written to the study's index", "see that it has space left"),
    sqlite3.SQLITE_CANTOPEN: ("the study's index cannot be opened", "give yourself the right to write there"),
}


@contextlib.contextmanager
def telling(study: StudyFolder, plan: Mapping[str, Any]) -> Iterator[None]:
    """Say what happened where the disk takes nothing more, and that the study goes on from where it is.

    Raises:
        AblateError: in place of what the system or SQLite raised, if it is about the disk.
    """
    try:
        yield
    except Exception as error:
        found = trouble(error)
        if found is None:
            raise
        name = getattr(plan.get("command"), "strip", lambda: "")() or "ablate run"
        runs = "" if study.path.parent == Path("runs") else f" --runs {shlex.quote(str(study.path.parent))}"
        raise AblateError(_told(found, study.path, f"`{name}{runs}`")) from error


def told_of_trial(error: BaseException, folder: TrialFolder) -> str | None:
    """What there is to say where a trial failed by a disk that takes nothing more, as every other trial would.

    None if it is something else: what a component does with files elsewhere is its own affair, unless there is no
    space for anything.
    """
    found = trouble(error)
    if not isinstance(error, OSError) or found is None:
        return None
    inside = isinstance(error.filename, str) and Path(error.filename).is_relative_to(folder.path)
    return _told(found, folder.path, "the same command") if inside or error.errno in _FOR_ALL else None


def _told(found: Trouble, place: Path, go_on: str) -> str:
    (what, remedy), said, file = found
    return (
        f"{what}: cannot write `{file or place}` ({said})\n"
        f"  = help: nothing is lost: results and checkpoints stay as they are; {remedy},\n"
        f"          then go on with {go_on}"
    )


def trouble(error: BaseException) -> Trouble | None:
    """What is wrong with the disk and the remedy, what was said, and of which file; None if it is something else.

    Optuna and SQLAlchemy wrap what SQLite says, so the causes are looked through.
    """
    if isinstance(error, AblateError):
        return None
    if isinstance(error, OSError):
        words = _OF_SYSTEM.get(error.errno or 0)
        return (words, error.strerror or str(error), error.filename) if words else None
    seen: BaseException | None = error
    if not isinstance(error, sqlite3.Error) and type(error).__module__.partition(".")[0] not in (
        "optuna",
        "sqlalchemy",
    ):
        return None
    while seen is not None:
        if isinstance(seen, sqlite3.Error):
            words = _OF_SQLITE.get(getattr(seen, "sqlite_errorcode", 0) & 0xFF)
            return (words, str(seen), None) if words else None
        seen = seen.__cause__ or seen.__context__
    return None
