"""Where a sweep stands, on disk, so that other processes can follow it: a file that is written anew each second."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

from pydantic import TypeAdapter

from ablate.records.layout import StudyFolder
from ablate.records.locks import Driver, lock_held, now, written_driver
from ablate.sweep.event_json import as_json
from ablate.sweep.events import (
    BatchSplit,
    Crowded,
    Event,
    Growing,
    IndexBehind,
    Interrupted,
    Paused,
    Pruned,
    Reconciled,
    Stopping,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    Tuned,
    WorkerLost,
)
from ablate.sweep.standing import Course, Standing

EVERY = 1.0
"""Seconds between two writings."""
KEPT = 100
"""How many of the latest news the file holds."""

NEWS = (BatchSplit, Crowded, Growing, IndexBehind, Paused, Pruned, Tuned, Reconciled, TrialEnded, WorkerLost, Stopping)
"""What is worth a line."""

End = Literal["through", "exhausted", "interrupted", "stopped"]
"""How a sweep ended: all was run; a limit of the budget was reached; a signal came; or it was broken off by a second
signal or an error."""


@dataclass(frozen=True)
class News:
    """Something that happened and is worth a line."""

    number: int
    """From 1, in the order in which it happened."""
    ended: int
    """How many trials had ended by then."""
    event: dict[str, Any]
    """As :func:`ablate.sweep.event_json.as_json` gives it."""


@dataclass(frozen=True)
class Bulletin:
    """What ``progress.json`` holds."""

    driver: Driver
    """Who wrote it."""
    written: str
    """When (UTC)."""
    standing: Standing
    news: tuple[News, ...] = ()
    """The latest, oldest first."""
    end: End | None = None
    """None while the sweep runs."""
    schema: int = 1


_ADAPTER = TypeAdapter(Bulletin)


class Publisher:
    """Takes a sweep's events, passes each on, and writes ``progress.json``; use it as a context.

    A file that cannot be written is no reason to end a sweep: who watches then sees nothing new, and what has to be
    written says by itself what is wrong with the disk.
    """

    def __init__(self, study: StudyFolder, driver: Driver, on_event: Callable[[Event], None]) -> None:
        """Nothing is written before the first event."""
        self._path = study.progress
        self._driver = driver
        self._on_event = on_event
        self._course = Course()
        self._news: deque[News] = deque(maxlen=KEPT)
        self._heard = 0
        self._end: End = "stopped"
        self._written = -EVERY

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say how it ended."""
        self._write(self._end if error is None or isinstance(error, Interrupted) else "stopped")

    def __call__(self, event: Event) -> None:
        """Take one event."""
        self._course.take(event)
        if isinstance(event, NEWS):
            self._heard += 1
            self._news.append(News(self._heard, self._course.ended, as_json(event)))
        elif isinstance(event, SweepEnded):
            self._end = "interrupted" if event.interrupted else "exhausted" if event.outcome.exhausted else "through"
        if isinstance(event, SweepStarted | Stopping) or time.monotonic() - self._written >= EVERY:
            self._write()
        self._on_event(event)

    def _write(self, end: End | None = None) -> None:
        self._written = time.monotonic()
        bulletin = Bulletin(self._driver, now(), self._course.standing, tuple(self._news), end)
        temporary = self._path.with_name(f".{self._path.name}.tmp")
        try:
            # Replaced, so that a reader sees a whole one; not synced to the disk, since a second later it is old.
            temporary.write_bytes(_ADAPTER.dump_json(bulletin, indent=2) + b"\n")
            os.replace(temporary, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()


def running(study: StudyFolder) -> Driver | None:
    """Who runs a study at this moment; None if no one does, or who does has not said yet who it is."""
    return written_driver(study.lock) if lock_held(study.lock) else None


def bulletin_of(study: StudyFolder, driver: Driver) -> Bulletin | None:
    """What this driver wrote last; None if it has written nothing yet, or nothing that can be read here."""
    try:
        bulletin = _ADAPTER.validate_json(study.progress.read_bytes())
    except (OSError, ValueError):  # written by another version of Ablate, for one
        return None
    return bulletin if bulletin.driver == driver else None
