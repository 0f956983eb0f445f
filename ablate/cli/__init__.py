"""The command line: one thin file a verb; results on stdout, progress on stderr."""

from __future__ import annotations

import atexit
import gc
import json
import sys
from typing import NoReturn

from ablate.errors import AblateError, InputError


def main() -> None:
    """Run the command line; an error that is the user's to mend is its text and an exit code, never a traceback."""
    atexit.register(gc.freeze)  # what is left goes with the process; to look through torch for cycles takes a second
    try:
        from ablate.cli.app import app

        app()
    except KeyboardInterrupt:  # while the command line itself is imported
        sys.exit(130)
    except AblateError as error:
        _fail(error)
    except OSError as error:
        # A path that cannot be written or read; what a trial's own code raises is caught where it runs.
        where = f" `{error.filename}`" if error.filename else ""
        _fail(InputError.one("S113", f"cannot use{where}: {error.strerror or error}"))


def _fail(error: AblateError) -> NoReturn:
    """Print the error and exit by its code."""
    if "--json" in sys.argv:
        print(json.dumps({"error": _plain(error)}, indent=2))  # noqa: T201
    else:
        print(_coloured(str(error)) + _pointer(error), file=sys.stderr)  # noqa: T201
    sys.exit(error.exit_code)


def _pointer(error: AblateError) -> str:
    """Where to read more about the first error, if there is a long form of it; a plugin may have codes of its own."""
    from ablate.experiment.explanations import EXPLANATIONS

    found = error.diagnostics if isinstance(error, InputError) else ()
    codes = [each.code for each in found if each.severity == "error" and each.code in EXPLANATIONS]
    return f"\n\nFor more about an error: ablate explain {codes[0]}" if codes else ""


def _plain(error: AblateError) -> object:
    """The error as JSON values."""
    if not isinstance(error, InputError):
        return {"message": str(error)}
    return [
        {
            "code": each.code,
            "message": each.message,
            "file": each.file,
            "line": each.span.line if each.span else None,
            "column": each.span.column if each.span else None,
            "help": each.help,
        }
        for each in error.diagnostics
    ]


def _coloured(text: str) -> str:
    """The first words of each diagnostic in colour, where a terminal shows it."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal or console.no_color:
        return text
    lines = []
    for line in text.split("\n"):
        for word, colour in (("error[", "1;31"), ("warning[", "1;33"), ("refused:", "1;31")):
            if line.startswith(word):
                head, colon, rest = line.partition(":")
                line = f"\x1b[{colour}m{head}{colon}\x1b[0m\x1b[1m{rest}\x1b[0m"  # noqa: PLW2901
                break
        lines.append(line)
    return "\n".join(lines)
