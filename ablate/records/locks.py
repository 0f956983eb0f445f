"""Whether a study is being run, and by whom, for those that only read."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ablate.records.layout import read_json


@dataclass(frozen=True)
class Driver:
    """The process that runs a study, and since when (UTC)."""

    pid: int
    started: str
    host: str = ""
    """The machine that it runs on: the folders of studies may be shared."""

    def __str__(self) -> str:
        """Who that is, for a reader on this machine."""
        there = f" on {self.host}" if self.host not in ("", socket.gethostname()) else ""
        return f"process {self.pid}{there} since {self.started}"


def now() -> str:
    """The time as records have it: UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def written_driver(path: Path) -> Driver | None:
    """Who has this lock file, by what is written there; None where the holder has not written yet, or there is none."""
    try:
        return Driver(**read_json(path))
    except (OSError, ValueError, TypeError):
        return None


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
