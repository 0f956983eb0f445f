"""What the engine needs of a file system, tried before anything relies on it: locks that hold, links that refuse."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from ablate.errors import RefusedError
from ablate.records.layout import StudyFolder

_MISSING = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOLCK, errno.EMLINK}
"""What systems say where there is no such thing."""


def check_file_system(study: StudyFolder) -> None:
    """Try a lock and a link in the study's folder, which is made if need be.

    Raises:
        RefusedError: one of them does not hold there, so that two drivers could run the study at once, or a second
            result take the place of the first.
    """
    study.path.mkdir(parents=True, exist_ok=True)
    probe, link = (study.path / f".probe.{os.getpid()}{suffix}" for suffix in ("", ".link"))
    try:
        if not _locks(probe):
            raise _refusal(study, "locks", "two runs could work on it at once")
        if not _links(probe, link):
            raise _refusal(study, "hard links", "a result could not be sealed once and for all")
    finally:
        for path in (probe, link):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()


def _locks(probe: Path) -> bool:
    """Whether a lock shuts out who opens the file anew."""
    with probe.open("w") as ours, probe.open("r") as theirs:
        try:
            fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _MISSING:
                return False
            raise
        try:
            fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _links(probe: Path, link: Path) -> bool:
    """Whether a file can have a second name, and a name that is taken stays with what has it."""
    try:
        os.link(probe, link)
    except OSError as error:
        if error.errno in _MISSING:
            return False
        raise
    try:
        os.link(probe, link)
    except FileExistsError:
        return os.path.samefile(probe, link)
    return False


def _refusal(study: StudyFolder, what: str, why: str) -> RefusedError:
    return RefusedError(
        f"the file system of {study.path} has no {what} that hold, so that {why}\n"
        "  = help: put the studies on another disk: `--runs DIR`"
    )
