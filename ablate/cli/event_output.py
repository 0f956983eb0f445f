"""A sweep's events for tools: one JSON object a line, on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import IO, Any, Self

from ablate.cli.output import let_go_of_stderr
from ablate.errors import Diagnostic
from ablate.sweep.event_json import as_json
from ablate.sweep.events import Event, SweepEnded


class EventOutput:
    """Takes a sweep's events and writes each as ``{"event": "trial_ended", "time": ..., ...}``.

    ``time`` is UTC, to the millisecond; what else an event has is what :mod:`ablate.sweep.events` says of it.
    """

    def __init__(self, file: IO[str] | None = None) -> None:
        """Write to this file; by default to standard error."""
        self._file = file or sys.stderr
        self.ended = False
        """Whether it has told how the sweep ended."""

    def __enter__(self) -> Self:
        """Begin; as :class:`~ablate.cli.progress.Progress` does."""
        return self

    def __exit__(self, *error: object) -> None:
        """There is nothing to be given back."""

    def __call__(self, event: Event) -> None:
        """Write one event of a sweep."""
        self.ended = self.ended or isinstance(event, SweepEnded)
        self._write(as_json(event))

    def warn(self, warnings: Iterable[Diagnostic]) -> None:
        """Write a plan's warnings, as events of the kind ``warning``."""
        for each in warnings:
            self._write({"event": "warning", "code": each.code, "message": each.message, "help": each.help})

    def note(self, message: str) -> None:
        """Write what is to be known beside the events, as one of the kind ``note``."""
        self._write({"event": "note", "message": message})

    def _write(self, event: dict[str, Any]) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"event": event["event"], "time": time, **event}
        try:
            self._file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
            self._file.flush()
        except BrokenPipeError:  # the sweep goes on without a reader
            let_go_of_stderr()
