"""The text of a file: the places in it, and what is found wrong with it."""

from __future__ import annotations

import re
from bisect import bisect_right

from ablate.errors import Diagnostic, InputError, Span, visible

BREAK = re.compile(r"\r\n|\r|\n")


class Source:
    """A text, the name of its file as the user gave it, and the errors and warnings so far."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.lines = BREAK.split(text)
        self.errors: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []
        self._starts = [0, *(match.end() for match in BREAK.finditer(text))]

    def line(self, offset: int) -> int:
        """The number of the line that an offset lies in."""
        return bisect_right(self._starts, offset)

    def span(self, start: int, end: int) -> Span:
        """The stretch from one offset to another, as far as it lies in the line where it starts."""
        line = self.line(start)
        first = self._starts[line - 1]
        column = start - first
        return Span(line, column + 1, min(end - first, max(column, len(self.lines[line - 1]))) + 1)

    def report(self, code: str, message: str, span: Span | None, help: str | None = None) -> None:
        """Keep an error or a warning until all of them are told."""
        line = self.lines[span.line - 1] if span else None
        diagnostic = Diagnostic(code, message, self.file, span, line, help)
        (self.warnings if diagnostic.severity == "warning" else self.errors).append(diagnostic)

    def refusal(self) -> InputError:
        """All errors so far as one, in the order of the file."""
        return InputError(sorted(self.errors, key=lambda d: (d.span.line, d.span.column) if d.span else (0, 0)))


def shown(text: str) -> str:
    """A piece of the file inside a message: in backticks, short, and with nothing in it that cannot be seen."""
    text = text if len(text) <= 40 else text[:39] + "…"
    return f"`{visible(text)}`"
