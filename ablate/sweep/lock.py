"""One driver a study: a lock that ends with its process, however that ends."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict

from ablate.errors import RefusedError
from ablate.records.layout import StudyFolder
from ablate.records.locks import Driver, lock_held, now, written_driver


@contextlib.contextmanager
def driving(study: StudyFolder) -> Iterator[Driver]:
    """Be the one driver of this study while the block lasts; gives how the lock names it.

    Raises:
        RefusedError: another process is; says which.
    """
    study.path.mkdir(parents=True, exist_ok=True)
    # Opened without truncation: what a running driver wrote must survive our attempt.
    with study.lock.open("a+", encoding="utf-8") as file:
        if not _locked(file.fileno()):
            raise RefusedError(_refusal(study))
        driver = Driver(os.getpid(), now(), socket.gethostname())
        file.truncate(0)
        file.write(json.dumps(asdict(driver)))
        file.flush()
        try:
            yield driver
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


def refusal(study: StudyFolder) -> str | None:
    """Why no other process may run this study at this moment; None if one may. Nothing is written."""
    return _refusal(study) if lock_held(study.lock) else None


def _refusal(study: StudyFolder) -> str:
    who = written_driver(study.lock) or "another process"
    watch = shlex.join(["ablate", "status", str(study.path), "--watch"])
    return f"{study.path} is being run by {who}\n  = help: watch it with `{watch}`"
