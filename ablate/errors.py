"""What can go wrong, as values: a diagnostic says where, what, and what to do about it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

# An excerpt wider than this is cut around its carets: a plan or a JSON file may hold its all in one line.
_WIDEST = 120
_TAB = 4


@dataclass(frozen=True)
class Span:
    """A stretch of one line in a file; lines and columns count from 1, ``end`` is exclusive."""

    line: int
    column: int
    end: int


@dataclass(frozen=True)
class Diagnostic:
    """One problem: a stable code, one sentence, where it is, and the remedy.

    ``file`` is shown as the user wrote it; ``source`` is the text of the line that ``span`` is in.
    """

    code: str
    message: str
    file: str | None = None
    span: Span | None = None
    source: str | None = None
    help: str | None = None

    @property
    def severity(self) -> str:
        """``warning`` for codes that begin with W, ``error`` for all others."""
        return "warning" if self.code.startswith("W") else "error"

    def __str__(self) -> str:
        """The problem as the command line shows it, with carets under its place."""
        number = str(self.span.line) if self.span else " "
        gutter = " " * len(number)
        lines = [f"{self.severity}[{self.code}]: {visible(self.message)}"]
        if self.file:
            place = f":{self.span.line}:{self.span.column}" if self.span else ""
            lines.append(f"{gutter}--> {visible(self.file)}{place}")
        if self.span and self.source is not None:
            shown, marks = _excerpt(self.source, self.span)
            lines.append(f"{number} | {shown}".rstrip())
            lines.append(f"{gutter} | {marks}")
        if self.help:
            first = f"{gutter} = help: "
            lines.append(first + ("\n" + " " * len(first)).join(map(visible, self.help.split("\n"))))
        return "\n".join(lines)


def visible(text: str) -> str:
    """A text in which what cannot be seen is written by its code, so that it cannot steer a terminal."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _cell(character: str) -> tuple[str, int]:
    """A character as an excerpt shows it, and the columns that it takes in a terminal."""
    kind = unicodedata.category(character)
    if character == "\t":
        return " " * _TAB, _TAB
    if kind[0] == "C" or kind in ("Zl", "Zp"):
        # Escape sequences, reversed writing and lone surrogates would spoil the terminal, or not print at all.
        return "\N{REPLACEMENT CHARACTER}", 1
    if kind in ("Mn", "Me"):
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _excerpt(source: str, span: Span) -> tuple[str, str]:
    """A line of source as a terminal shows it, and the line of carets that goes under it."""
    start, end = min(span.column - 1, len(source)), min(span.end - 1, len(source))
    cut = len(source) > _WIDEST or sum(_cell(character)[1] for character in source) > _WIDEST
    first = last = max(0, start - _WIDEST // 3) if cut else 0
    cells = [_cell(character) for character in source[first : first + _WIDEST]]
    shown, indent, marked, room = "…" if first else "", 1 if first else 0, 0, _WIDEST
    for character, width in cells:
        if width > room:
            break
        shown, room = shown + character, room - width
        indent += width if last < start else 0
        marked += width if start <= last < end else 0
        last += 1
    # A value that is missing has a place and no character: one caret, past the end of the line if need be.
    return shown + ("…" if last < len(source) else ""), " " * indent + "^" * max(1, marked)


class AblateError(Exception):
    """An error that is the user's to mend; the command line shows its text and no traceback."""

    exit_code = 2


class InputError(AblateError):
    """Bad input: every problem that was found, at once."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Gather what was found; the text of the error is theirs, one below the other."""
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n\n".join(map(str, self.diagnostics)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the diagnostics themselves, so that a worker process can send them: by default only the text goes."""
        return type(self), (self.diagnostics,)

    @classmethod
    def one(cls, code: str, message: str, *, file: str | None = None, help: str | None = None) -> Self:
        """An input error of a single diagnostic that has no place inside a file."""
        return cls([Diagnostic(code, message, file=file, help=help)])


class StaleError(InputError):
    """What a plan was made from is no longer there as it was, so none of its trials can run."""


class RefusedError(AblateError):
    """A request that is well formed and would do harm: too large, or in another's way."""

    exit_code = 3
