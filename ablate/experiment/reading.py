"""Reading YAML by version 1.2's core schema, with the place of every key and value."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ablate.errors import Diagnostic, InputError, Span, visible
from ablate.experiment.yaml.composing import compose
from ablate.experiment.yaml.nodes import Place, expand
from ablate.experiment.yaml.scalars import looks_like_number
from ablate.experiment.yaml.source import BREAK, Source

__all__ = ["MAX_BYTES", "Document", "Place", "looks_like_number", "parse", "read"]

MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Document:
    """One YAML file as plain Python values, with the place in the file of every key and value.

    ``keys`` and ``values`` are filed under the path to a value: ``("factors", "norm", "levels", 0)``. What an alias
    brings in has the place where it is written. ``elsewhere`` names the values that another text gave: the file that
    this one extends, or the command line.
    """

    file: str
    text: str
    data: dict[str, Any]
    keys: Mapping[Place, Span]
    values: Mapping[Place, Span]
    warnings: tuple[Diagnostic, ...] = ()
    elsewhere: Mapping[Place, Document] = field(default_factory=dict, repr=False)
    extended: str | None = field(default=None, repr=False)
    """The text of the file that this one extends; None where it extends none."""

    def nearest(self, path: Place) -> Place:
        """The path itself where the document has a value there, else that of the nearest value around it."""
        return next(near for length in range(len(path), -1, -1) if (near := tuple(path[:length])) in self.values)

    def at(self, path: Place, *, key: bool = False) -> Span:
        """Where the value at ``path`` is (or its key); where nothing is there, the nearest thing around it."""
        near = self.nearest(path)
        return self.keys.get(near, self.values[near]) if key else self.values[near]

    def home(self, path: Place) -> Document:
        """The text that gave the value at ``path``."""
        return self.elsewhere.get(self.nearest(path), self)

    def located(self, path: Place) -> str:
        """Where the value at ``path`` was written, as ``norm.yaml:7``."""
        home = self.home(path)
        return home.file if home.file.startswith("--") else f"{home.file}:{self.at(path).line}"

    def diagnose(
        self, code: str, message: str, path: Place, *, key: bool = False, help: str | None = None
    ) -> Diagnostic:
        """A diagnostic about the value at ``path`` (or its key), with its place and its line of source."""
        span, home = self.at(path, key=key), self.home(path)
        line = BREAK.split(home.text)[span.line - 1]
        return Diagnostic(code, visible(message), home.file, span, line, help and visible(help))


def read(path: Path) -> Document:
    """Read a YAML file of one mapping.

    Raises:
        InputError: everything that is wrong with the file, at once; never anything else.
    """
    file = str(path)
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError.one("Y001", "there is no such file", file=file, help=_neighbours(path)) from None
    except IsADirectoryError:
        raise InputError.one("Y001", "this is a folder, not a file", file=file, help=_neighbours(path / "*")) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise InputError.one("Y001", f"the file cannot be read: {reason}", file=file) from None
    if len(raw) > MAX_BYTES:
        raise _too_large(file)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = BREAK.split(raw[: error.start].decode("utf-8"))
        line = BREAK.split(raw.decode("utf-8", errors="replace"))[len(before) - 1]
        span = Span(len(before), len(before[-1]) + 1, len(before[-1]) + 2)
        message = f"line {span.line} is not UTF-8 text: the byte 0x{raw[error.start]:02X}"
        utf16 = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        help = "the file is UTF-16: save it as UTF-8" if utf16 else "save the file as UTF-8"
        raise InputError([Diagnostic("Y002", message, file, span, line, help)]) from None
    return parse(text, file)


def parse(text: str, file: str) -> Document:
    """Read the text of a YAML file of one mapping; ``file`` is the name to show.

    Raises:
        InputError: everything that is wrong with the text, at once; never anything else.
    """
    if len(text) > MAX_BYTES:
        raise _too_large(file)
    source = Source(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"), file)
    keys: dict[Place, Span] = {}
    values: dict[Place, Span] = {}
    data = expand(compose(source), (), keys, values)
    assert isinstance(data, dict)
    return Document(file, source.text, data, keys, values, tuple(source.warnings))


def _too_large(file: str) -> InputError:
    return InputError.one(
        "Y004", f"the file is larger than {MAX_BYTES >> 20} MiB, so it is no experiment", file=file,
        help="an experiment takes a few kB: was another file meant?",
    )  # fmt: skip


def yaml_files(folder: Path, name: str) -> tuple[str | None, list[str]]:
    """The YAML file of a folder that a name is most like, if one is like it, and all that are there.

    Raises:
        OSError, ValueError: the folder cannot be read.
    """
    names = sorted(path.name for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))
    stems = {Path(each).stem: each for each in names if each != name}
    near = difflib.get_close_matches(Path(name).stem, stems, n=1, cutoff=0.7)
    return (stems[near[0]] if near else None), names


def _neighbours(path: Path) -> str | None:
    """Which YAML files the user may have meant instead of ``path``."""
    try:
        near, names = yaml_files(path.parent, path.name)
    except (OSError, ValueError):
        return None
    if near:
        return f"did you mean `{path.with_name(near)}`?"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"in that folder: {', '.join(names[:3])}{more}" if names else None
