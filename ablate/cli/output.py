"""How results are printed: tables for people, JSON for tools, both on stdout."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ablate.errors import Diagnostic


def console() -> Console:
    """Standard output; in a pipe it is plain and as wide as its text needs."""
    plain = not sys.stdout.isatty()
    return Console(soft_wrap=plain, highlight=False, markup=False, width=10_000 if plain else None)


class Aside(Console):
    """Standard error, for what is said beside the results; where nobody reads it any more, nothing ends by that."""

    def __init__(self) -> None:
        """As wide as the terminal."""
        super().__init__(file=sys.stderr)

    def on_broken_pipe(self) -> None:
        """Say no more, where rich would exit."""
        self.quiet = True
        let_go_of_stderr()


def let_go_of_stderr() -> None:
    """Write to nowhere from now on, since the reader is gone; what is still to be written must not fail either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stderr.fileno())
    os.close(nowhere)


def print_json(value: Any) -> None:
    """One JSON value; what is not finite is null, since JSON has no such number."""
    sys.stdout.write(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(columns: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> None:
    """A table without rules; each column is a title and whether it holds numbers.

    Where a terminal is too narrow, text is folded, to 20 columns at the least; numbers are never cut.
    """
    rows = list(rows)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for index, (title, number) in enumerate(columns):
        widest = max(cell_len(text) for text in (title, *(row[index] for row in rows)))
        least = widest if number else min(widest, 20)
        table.add_column(title, justify="right" if number else "left", no_wrap=number, overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*map(Text, row))  # as text: a level may have brackets, which are no markup
    out = console()
    if sys.stdout.isatty():
        width = max(out.width, Measurement.get(out, out.options, table).minimum)
        out.print(table, width=width, crop=False)
    else:
        with out.capture() as captured:
            out.print(table)
        sys.stdout.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


def print_warnings(warnings: Iterable[Diagnostic]) -> None:
    """Each warning in full, on stderr."""
    for warning in warnings:
        sys.stderr.write(f"{warning}\n")


class Planning:
    """Says on standard error how far a plan is, if it takes long; tools that read standard output see none of it.

    Use it as a context, and as ``on_arm``: ``with Planning() as planning: ablate.plan(file, on_arm=planning)``.
    """

    def __init__(self, first: float = 3.0, every: float = 5.0) -> None:
        """Say something after the ``first`` seconds, and then ``every`` so many."""
        self._first, self._every = first, every
        self._done = self._arms = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Nothing is said before the first arm."""
        return self

    def __exit__(self, *error: object) -> None:
        """Say no more."""
        self._over.set()
        if self._thread:
            self._thread.join()

    def __call__(self, done: int, arms: int) -> None:
        """So many of the arms are done."""
        self._done, self._arms = done, arms
        if done == arms:
            self._over.set()
        elif self._thread is None:
            # A thread, since a single arm of a thousand layers takes longer than one may be silent.
            self._thread = threading.Thread(target=self._say, daemon=True)
            self._thread.start()

    def _say(self) -> None:
        wait = self._first
        while not self._over.wait(wait):
            with suppress(OSError, ValueError):  # nobody reads it, which is no reason to stop
                sys.stderr.write(f"planning: {self._done:,} of {self._arms:,} arms\n")
                sys.stderr.flush()
            wait = self._every


def duration(seconds: float) -> str:
    """Seconds in two units at most: ``4 min 05 s``, ``1 h 12 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def size(count: float) -> str:
    """Bytes in three digits: ``12.3 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
