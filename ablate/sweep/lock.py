"""One driver a study: a lock that ends with its process, however that ends."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from ablate.errors import RefusedError
from ablate.records.layout import StudyFolder
from ablate.records.locks import lock_held


@dataclass(frozen=True)
class Driver:
    """The process that runs a study, and since when (UTC)."""

    pid: int
    started: str


def now() -> str:
    """The time as records have it: UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextlib.contextmanager
def driving(study: StudyFolder) -> Iterator[None]:
    """Be the one driver of this study while the block lasts.

    Raises:
        RefusedError: another process is; says which.
    """
    study.path.mkdir(parents=True, exist_ok=True)
    # Opened without truncation: what a running driver wrote must survive our attempt.
    with study.lock.open("a+", encoding="utf-8") as file:
        if not _locked(file.fileno()):
            raise RefusedError(_refusal(study))
        file.truncate(0)
        file.write(json.dumps(asdict(Driver(os.getpid(), now()))))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _locked(descriptor: int) -> bool:
    """Take the lock; tries for a moment, since whoever asks whether it is held takes it for an instant."""
    for _ in range(5):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        else:
            return True
    return False


def _written(study: StudyFolder) -> Driver | None:
    try:
        return Driver(**json.loads(study.lock.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # it has the lock and has not written yet


def refusal(study: StudyFolder) -> str | None:
    """Why no other process may run this study at this moment; None if one may. Nothing is written."""
    return _refusal(study) if lock_held(study.lock) else None


def _refusal(study: StudyFolder) -> str:
    driver = _written(study)
    who = f"process {driver.pid} since {driver.started}" if driver else "another process"
    return f"{study.path} is being run by {who}\n  = help: watch it with `ablate status {study.path}`"
