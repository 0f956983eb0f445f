"""Texts where they lie: files, patterns of files, files of installed packages, and texts in memory."""

from __future__ import annotations

import codecs
import glob
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from ablate.errors import InputError

CHUNK = 1 << 22
"""Bytes that are read at once."""
_MARK = codecs.BOM_UTF8


@dataclass(frozen=True)
class Piece:
    """A text of which others may follow: a file, or what is in memory.

    A byte order mark at the beginning of a file is no part of the text.
    """

    name: str
    """What the user calls it."""
    path: Path | None = None
    content: bytes = b""
    """The text, where there is no path."""

    @property
    def size(self) -> int:
        """Bytes.

        Raises:
            InputError: it is a file that cannot be read (S303).
        """
        if self.path is None:
            return len(self.content)
        try:
            return self.path.stat().st_size - self.begins
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error

    @property
    def begins(self) -> int:
        """Bytes of the file before the text: those of a byte order mark, if there is one.

        Raises:
            InputError: it is a file that cannot be read (S303).
        """
        if self.path is None:
            return 0
        try:
            with self.path.open("rb") as file:
                return len(_MARK) if file.read(len(_MARK)) == _MARK else 0
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error

    def read(self) -> Piece:
        """The same text, in memory.

        Raises:
            InputError: it is a file that cannot be read (S303).
        """
        return Piece(self.name, content=b"".join(self.blocks()))

    def blocks(self) -> Iterator[bytes]:
        """The bytes, some at a time.

        Raises:
            InputError: it is a file that cannot be read (S303).
        """
        if self.path is None:
            yield from (self.content[start : start + CHUNK] for start in range(0, len(self.content), CHUNK))
            return
        begins = self.begins
        try:
            with self.path.open("rb") as file:
                file.seek(begins)
                while block := file.read(CHUNK):
                    yield block
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: OSError | ValueError) -> InputError:
        words = f"cannot read `{self.name}`: {getattr(error, 'strerror', error)}"  # a name may be none that can be
        return InputError.one("S303", words, help="`path` is relative to the experiment's file")


class Part(NamedTuple):
    """Some of a text: bytes as they were read, and the characters that are whole by then."""

    raw: bytes
    text: str


def decoded(piece: Piece) -> Iterator[Part]:
    """A text some at a time, checked to be UTF-8.

    Raises:
        InputError: it cannot be read (S303), or is not UTF-8 (S304): says the line and the byte.
    """
    decoder, ends, line = codecs.getincrementaldecoder("utf-8")(), io.IncrementalNewlineDecoder(None, True), 1
    try:
        for raw in piece.blocks():
            text = decoder.decode(raw)
            line += ends.decode(text).count("\n")
            yield Part(raw, text)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        content = bytes(error.object)
        line += ends.decode(content[: error.start].decode(), final=True).count("\n")
        raise InputError.one(
            "S304",
            f"`{piece.name}` is not UTF-8 text: line {line} has the byte 0x{content[error.start]:02x}",
            help="convert the file to UTF-8",
        ) from error


def files(patterns: Sequence[str], folder: str) -> list[Piece]:
    """The files that paths and patterns such as ``chapters/*.txt`` name, in the order of their paths, each once.

    Raises:
        InputError: a pattern names none (S310).
    """
    found: dict[str, Piece] = {}
    for pattern in patterns:
        names = [pattern]
        if glob.has_magic(pattern) and not (Path(folder) / pattern).exists():
            matched = glob.glob(pattern, root_dir=folder, recursive=True)
            names = [name for name in matched if (Path(folder) / name).is_file()]
        if not names:
            words = f"no file matches `{pattern}`"
            raise InputError.one("S310", words, help="`path` is relative to the experiment's file")
        for name in map(os.path.normpath, names):
            found[name] = Piece(name, Path(folder) / name)
    return [found[name] for name in sorted(found)]


def resource(name: str) -> Piece:
    """A file that an installed package brings, written ``package:file``.

    Raises:
        InputError: there is no such package, or no such file in it (S311).
    """
    package, _, file = name.partition(":")
    try:
        place = resources.files(package).joinpath(file)
    except (ModuleNotFoundError, TypeError) as error:  # TypeError: it is one module
        words = f"cannot read `{name}`: no package `{package}` is installed"
        raise InputError.one("S311", words, help="`resource` is written PACKAGE:FILE; install the package") from error
    if not place.is_file():
        words = f"cannot read `{name}`: the package `{package}` has no file `{file}`"
        raise InputError.one("S311", words, help="`resource` is written PACKAGE:FILE, as the package has the file")
    return (
        Piece(name, place) if isinstance(place, Path) else Piece(name, content=place.read_bytes().removeprefix(_MARK))
    )
