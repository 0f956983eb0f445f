"""Shows a sweep while it runs: a live view in a terminal, plain lines with times in a pipe."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ablate.cli.drawing import drawing
from ablate.cli.lines import clean, event_lines, standing_line, summary_lines, totals_line
from ablate.cli.output import Aside
from ablate.errors import Diagnostic
from ablate.sweep.event_json import of_json
from ablate.sweep.events import Beat, Event, SweepEnded
from ablate.sweep.standing import Course, Standing
from ablate.sweep.watching import News

HEARTBEAT = 60.0
"""Seconds without a line in a pipe after which one says that all is well."""
REFRESH = 0.1
"""Seconds between two drawings of the live view."""


class Progress:
    """Shows a sweep on standard error; results never go there, nor progress to standard output.

    Use it as a context. It takes the events of a sweep of this process, ``sweep(..., on_event=progress)``, or is shown
    where the sweep of another stands.
    """

    def __init__(self, console: Console | None = None, *, live: bool | None = None) -> None:
        """Show on ``console``; ``live`` if that is a terminal that can move its cursor, unless it is said."""
        self._console = console or Aside()
        if live is None:
            # Not is_terminal, which FORCE_COLOR sets too: colours are welcome in a pipe, a moving cursor is not.
            live = self._console.file.isatty() and not self._console.is_dumb_terminal
        self._course = Course()
        self._live = (
            Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False) if live else None
        )
        self._drawn = self._spoken = time.monotonic()
        self.ended = False
        """Whether it has shown how the sweep ended."""

    def __enter__(self) -> Self:
        """Start the live view, if there is one."""
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the terminal back, whatever happened."""
        if self._live:
            self._live.update("", refresh=True)
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        self._course.take(event)
        if isinstance(event, SweepEnded):
            self.ended = True
            if self._live:
                self._live.update("", refresh=True)
            for line in summary_lines(event):
                self._print(line)
            return
        standing = self._course.standing
        self._tell(event, self._course.ended, standing)
        if isinstance(event, Beat):
            self._heartbeat(standing)
        self._draw(standing)

    def warn(self, warnings: Iterable[Diagnostic]) -> None:
        """Show a plan's warnings, in full."""
        for warning in warnings:
            self._print(str(warning))

    def note(self, message: str) -> None:
        """Show what is to be known beside what happens."""
        self._print(f"note: {message}")

    def begin(self, standing: Standing, who: str) -> None:
        """Say where a sweep stands that another process runs."""
        self._say([f"{standing_line(standing.counts)}; run by {who}"])
        self._draw(standing)

    def show(self, standing: Standing, news: Iterable[News] = ()) -> None:
        """Show where that sweep stands now, and what has happened since."""
        for each in news:
            self._tell(of_json(each.event), each.ended, standing)
        self._heartbeat(standing)
        self._draw(standing)

    def _tell(self, event: Event, ended: int, standing: Standing) -> None:
        if lines := event_lines(event, ended, standing.counts.planned, standing.metric, every=not self._live):
            self._say(lines)

    def _heartbeat(self, standing: Standing) -> None:
        if not self._live and time.monotonic() - self._spoken >= HEARTBEAT:
            self._say([totals_line(standing)])

    def _draw(self, standing: Standing) -> None:
        if self._live and time.monotonic() - self._drawn >= REFRESH:
            self._drawn = time.monotonic()
            self._live.update(drawing(standing, self._console), refresh=True)

    def _say(self, lines: list[str]) -> None:
        self._spoken = time.monotonic()
        clock = time.strftime("%H:%M:%S")
        for number, line in enumerate(lines):
            self._print(f"{clock if number == 0 else ' ' * len(clock)}  {line}")

    def _print(self, line: str) -> None:
        # As text, so that brackets in a level or a log are no markup; whole, since a pipe has no width.
        for part in line.split("\n"):
            self._console.print(Text(clean(part)), soft_wrap=True)
