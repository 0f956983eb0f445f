"""A text as tokens: short ones resident, long ones memory-mapped from the file itself or from the cache."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ablate.data.caching import cached_array, cached_value, in_parts, stamp
from ablate.data.cutting import Runs, blocks, documents, sections
from ablate.data.reading import Piece, decoded
from ablate.data.tokenizers import BytePairs, Characters, points, sizes_of_bytes, smallest
from ablate.data.trained_tokenizer import TrainedTokenizer
from ablate.errors import InputError, StaleError

LARGE = 1 << 24
"""Bytes from which on a text is never held in memory, and what was found of a file is kept."""
ROOM = 8
"""Characters of a block for each token of a window, where it is known only later how long tokens are."""
RACY_NS = 2_000_000_000
"""Nanoseconds within which a file may be written twice and look the same: the clock of some file systems is coarse."""


@dataclass(frozen=True)
class Cut:
    """What decides where the runs of a text end."""

    context: int
    """The longest window."""
    separator: str | None
    """What ends a document; None where blocks are cut."""


@dataclass(frozen=True)
class Tokens:
    """A text as tokens."""

    values: npt.NDArray[Any]
    runs: Runs
    sizes: npt.NDArray[np.int64]
    """(V, 2): the bytes and the characters of each token."""
    digest: str
    """Of the content, and of how it is made tokens where that is more than an option."""
    bytes: int
    characters: int
    counts: npt.NDArray[np.int64]
    """How often each token stands in the runs for training."""
    tokenizer: TrainedTokenizer
    mapped: Mapped | None = None
    """The file that ``values`` are, where they are one."""


class Mapped:
    """A user's file while it is in use, held against what it was."""

    def __init__(self, piece: Piece, path: Path, digest: str) -> None:
        self._piece, self._path, self._digest = piece, path, digest
        self._stamp = stamp(path)

    def check(self) -> None:
        """Look whether the file has been touched, and if so, whether it is another.

        Raises:
            InputError: it is another (S315).
        """
        try:
            now = stamp(self._path)
            if now == self._stamp:
                return
            content = hashlib.sha256()
            for block in self._piece.blocks():
                content.update(block)
        except OSError as error:
            raise changed([self._piece]) from error
        if content.hexdigest() != self._digest:
            raise changed([self._piece])
        self._stamp = now


def changed(pieces: Sequence[Piece]) -> StaleError:
    """The error of a file that is written to while it is in use."""
    return StaleError.one(
        "S315",
        f"{name_of(pieces)} changed while it was in use",
        help="run again when no program writes to it: trials of one study need one text",
    )


def name_of(pieces: Sequence[Piece]) -> str:
    """How a sentence names a text."""
    more = f" and {len(pieces) - 1:,} more" if len(pieces) > 1 else ""
    return f"`{pieces[0].name}`{more}"


def tokenized(pieces: Sequence[Piece], tokenizer: str, vocabulary: int, cut: Cut) -> Tokens:
    """Read, check and cut a text, and make tokens of it.

    Args:
        pieces: the text's files, in order.
        tokenizer: ``char``, ``byte`` or ``bpe``.
        vocabulary: number of tokens, for ``bpe``.
        cut: where runs end.

    Raises:
        InputError: the text cannot be read (S303), is not UTF-8 (S304), is empty (S301) or too short (S302), has too
            few documents (S313), changes meanwhile (S315), or needs what is not there (S316, S335).
    """
    small = sum(piece.size for piece in pieces) < LARGE
    if small:  # read once, so that all that is said of it is of one content
        pieces = [piece.read() for piece in pieces]
    return _Making(pieces, tokenizer, vocabulary, cut, small=small).made()


class _Making:
    def __init__(self, pieces: Sequence[Piece], tokenizer: str, vocabulary: int, cut: Cut, *, small: bool) -> None:
        self.pieces, self.name = pieces, name_of(pieces)
        self.tokenizer, self.vocabulary, self.cut, self.small = tokenizer, vocabulary, cut, small
        self.stamps = self._stamps()
        found = self._kept(["scan without a mark", tokenizer == "char"], self._scan)
        self.content, self.characters, self.codes = found["digest"], found["characters"], found["codes"]
        self.bytes: int = found["bytes"]
        if not self.bytes:
            raise InputError.one("S301", f"{self.name} is empty", help="give a text file with some text in it")

    def made(self) -> Tokens:
        """All of it."""
        runs = self._runs()
        mark: list[Any] = []
        if self.cut.separator is not None:  # a file ends a document too
            mark = [self.cut.separator, *(piece.size for piece in self.pieces)]
        mapped = None
        if self.tokenizer == "byte":
            sizes, tokenizer = sizes_of_bytes(), TrainedTokenizer("byte")
            (piece, *others) = self.pieces
            if self.small or others or piece.path is None:
                values = self._stored(["byte"], np.uint8, lambda: (np.frombuffer(raw, np.uint8) for raw in self._raw()))
            else:
                mapped = Mapped(piece, piece.path, self.content)
                values = np.asarray(np.memmap(piece.path, np.uint8, mode="r", offset=piece.begins))
        elif self.tokenizer == "char":
            characters = Characters(np.array(self.codes))
            sizes, tokenizer = characters.sizes, TrainedTokenizer("char", "".join(map(chr, self.codes)))
            values = self._stored(["char"], smallest(len(sizes)), lambda: characters.encode(self._texts()))
        else:
            mark = ["bpe", self.cut.context if self.cut.separator is None else None, *mark]
            pairs, values, runs = self._pairs(runs, [*mark, self.vocabulary])
            sizes, tokenizer = pairs.sizes, TrainedTokenizer("bpe", pairs.written)
            mark += [hashlib.sha256(pairs.written.encode()).hexdigest()]
        digest = hashlib.sha256(json.dumps([self.content, *mark]).encode()).hexdigest() if mark else self.content
        spread = [digest, self.tokenizer, self.cut.context if self.cut.separator is None else None]

        def counted() -> list[int]:
            return [int(count) for count in runs.counted(in_parts(values), len(sizes))]

        counts = np.array(counted() if self.small else cached_value(["counts", *spread], counted), np.int64)
        if self.stamps != self._stamps():
            raise changed(self.pieces)
        return Tokens(values, runs, sizes, digest, self.bytes, self.characters, counts, tokenizer, mapped)

    # --- what is found of the content ---

    def _scan(self) -> dict[str, Any]:
        content, size, characters = hashlib.sha256(), 0, 0
        seen = np.zeros(0x110000, np.bool_)
        for piece in self.pieces:
            for raw, text in decoded(piece):
                content.update(raw)
                size += len(raw)
                characters += len(text)
                if self.tokenizer == "char":
                    seen[points(text)] = True
        codes = np.flatnonzero(seen).tolist()
        if self.stamps != self._stamps():
            raise changed(self.pieces)
        return {"digest": content.hexdigest(), "bytes": size, "characters": characters, "codes": codes}

    def _kept(self, what: list[Any], make: Any) -> dict[str, Any]:
        """What was found of these files when they were last read, if they have not been touched since."""
        settled = all(max(stamp[1:3]) < time.time_ns() - RACY_NS for stamp in self.stamps)
        if self.small or len(self.stamps) < len(self.pieces) or not settled:
            return dict(make())
        places = [str(piece.path.resolve()) for piece in self.pieces if piece.path]
        return dict(cached_value([*what, places, self.stamps], make))

    def _stamps(self) -> list[list[int]]:
        try:
            return [stamp(piece.path) for piece in self.pieces if piece.path is not None]
        except OSError as error:
            raise changed(self.pieces) from error

    # --- where runs end ---

    def _runs(self) -> Runs:
        unit = "bytes" if self.tokenizer == "byte" else "characters"
        length = self.bytes if self.tokenizer == "byte" else self.characters
        if self.cut.separator is not None:
            make = partial(self._document_ends, self.cut.separator)
            key = ["documents", self.content, self.cut.separator, [piece.size for piece in self.pieces], unit]
            runs = documents(np.concatenate(list(make())) if self.small else cached_array(key, np.int64, make))
            if not runs.held_out.any():
                raise InputError.one(
                    "S313",
                    f"{self.name} has {len(runs.ends)} document{'s' * (len(runs.ends) > 1)}, and every tenth is for "
                    "validation",
                    help="look whether `documents` is what ends each document, or leave it out",
                )
            return runs
        context = self.cut.context
        reach = ROOM * (context + 1) if self.tokenizer == "bpe" else context + 1
        if length < 10 * reach:
            raise InputError.one(
                "S302",
                f"{self.name} has {length:,} {unit}, and a context of {context} needs at least {10 * reach:,}",
                help="give a longer text or a shorter `context`",
            )
        return blocks(length, reach - 1)

    def _document_ends(self, separator: str) -> Iterator[npt.NDArray[np.int64]]:
        before = 0
        for piece in self.pieces:
            parts: Iterable[Any] = (part.text for part in decoded(piece))
            wanted: Any = separator
            if self.tokenizer == "byte":
                parts, wanted = piece.blocks(), separator.encode()
            rest, base, last = wanted[:0], before, before
            for part in parts:
                rest, at, found = rest + part, 0, []
                while (place := rest.find(wanted, at)) >= 0:
                    at = place + len(wanted)
                    found.append(base + at)
                yield np.array(found, np.int64)
                last = found[-1] if found else last
                done = max(at, len(rest) - len(wanted) + 1)
                base, rest = base + done, rest[done:]
            before = base + len(rest)
            yield np.array([before] if before > last else [], np.int64)

    # --- tokens ---

    def _stored(self, what: list[Any], dtype: Any, parts: Any) -> npt.NDArray[Any]:
        """Tokens in memory, or in the cache."""
        return np.concatenate(list(parts())) if self.small else cached_array([*what, self.content], dtype, parts)

    def _pairs(self, runs: Runs, what: list[Any]) -> tuple[BytePairs, npt.NDArray[Any], Runs]:
        """Byte pairs of the training runs, the tokens, and where runs end in them."""

        def trained() -> str:
            parts = zip(sections(self._texts(), runs.ends), runs.held_out.tolist(), strict=True)
            return BytePairs.trained((text for text, held_out in parts if not held_out), self.vocabulary).written

        pairs = BytePairs(cached_value([*what, self.content], trained))
        lengths: list[int] = []

        def encoded() -> Iterator[npt.NDArray[Any]]:
            lengths.clear()
            for ids in pairs.encode(sections(self._texts(), runs.ends)):
                lengths.append(len(ids))
                yield ids

        def ends() -> Iterator[npt.NDArray[np.int64]]:
            yield np.cumsum(lengths or [len(ids) for ids in encoded()])

        key = [pairs.written, self.content, *what]
        values = cached_array(["tokens", *key], smallest(len(pairs.tokens)), encoded)
        return pairs, values, runs.with_ends(cached_array(["ends", *key], np.int64, ends))

    def _raw(self) -> Iterator[bytes]:
        for piece in self.pieces:
            yield from piece.blocks()

    def _texts(self) -> Iterator[str]:
        for piece in self.pieces:
            yield from (part.text for part in decoded(piece))
