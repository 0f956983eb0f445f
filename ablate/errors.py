"""What can go wrong, as values: a diagnostic says where, what, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        if self.file and self.span:
            lines.append(f" --> {self.file}:{self.span.line}:{self.span.column}")
        elif self.file:
            lines.append(f" --> {self.file}")
        gutter = ""
        if self.span and self.source is not None:
            number = str(self.span.line)
            gutter = " " * len(number)
            marks = "^" * max(1, self.span.end - self.span.column)
            lines.append(f"{number} | {self.source}")
            lines.append(f"{gutter} | {' ' * (self.span.column - 1)}{marks}")
        if self.help:
            lines.append(f"{gutter} = help: {self.help}" if gutter else f"  = help: {self.help}")
        return "\n".join(lines)


class AblateError(Exception):
    """An error that is the user's to mend; the command line shows its text and no traceback."""

    exit_code = 2


class InputError(AblateError):
    """Bad input: every problem that was found, at once."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n\n".join(map(str, self.diagnostics)))

    @classmethod
    def one(cls, code: str, message: str, *, file: str | None = None, help: str | None = None) -> InputError:
        """An input error of a single diagnostic that has no place inside a file."""
        return cls([Diagnostic(code, message, file=file, help=help)])


class RefusedError(AblateError):
    """A request that is well formed and would do harm: too large, or in another's way."""

    exit_code = 3
