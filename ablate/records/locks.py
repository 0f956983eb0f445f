"""Whether a study is being run, for those that only read."""

from __future__ import annotations

from pathlib import Path


def lock_held(path: Path) -> bool:
    """Whether a driver holds this lock file, that is, whether the study is being run at this moment.

    The probe takes a shared lock and lets it go at once, so any number of readers can look at the same time.
    """
    try:
        import fcntl  # noqa: PLC0415  # a report is made on systems without it too; there, no driver can run
    except ImportError:
        return False
    try:
        with Path(path).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
