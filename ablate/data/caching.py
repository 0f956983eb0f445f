"""The cache: what is dear to compute from data, kept between runs and shared by workers.

All of it can be deleted at any time. Entries are written whole or not at all, and one that is damaged is made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ablate.errors import InputError

FORMAT = 1
"""Raised when an entry's meaning changes; entries of another format are not found."""
_BLOCK = 1 << 22


def cache_folder() -> Path:
    """Where the cache is: ``$ABLATE_CACHE``, or the platform's folder for caches of this user."""
    if named := os.environ.get("ABLATE_CACHE"):
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "ablate"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ablate"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ablate"


def cached_value(key: Any, make: Callable[[], Any]) -> Any:
    """A JSON value, computed once for a key; where the cache cannot be written, it is computed each time."""
    path = _entry(key, ".json")
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["check"] == _hash(kept["value"]):
            return kept["value"]
    value = make()
    with contextlib.suppress(OSError), _replacing(path) as temporary:
        temporary.write_text(json.dumps({"check": _hash(value), "value": value}), encoding="utf-8")
    return value


def cached_array(key: Any, dtype: npt.DTypeLike, parts: Callable[[], Iterable[npt.NDArray[Any]]]) -> npt.NDArray[Any]:
    """One axis of numbers, memory-mapped; what ``parts`` gives is written one after the other, once for a key.

    The content is held against its hash when the file is not the one that was last seen whole, by its size, times and
    number; so damage is noticed, and a start costs no reading.

    Raises:
        InputError: the cache cannot be written (S316).
    """
    path, kind = _entry(key, ".tokens"), np.dtype(dtype)
    if not _whole(path):
        try:
            _write(path, kind, parts())
        except OSError as error:
            raise InputError.one(
                "S316",
                f"tokens cannot be written to the cache `{path.parent}`: {error.strerror or error}",
                help="set ABLATE_CACHE to a folder with room that can be written to",
            ) from error
    if not path.stat().st_size:
        return np.empty(0, kind)
    return np.asarray(np.memmap(path, kind, mode="r"))


def in_parts(values: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Some values at a time; where they are mapped, what was read of them does not stay in memory."""
    mapped = values.base if isinstance(values.base, np.memmap) else None
    for start in range(0, len(values), _BLOCK):
        number = min(_BLOCK, len(values) - start)
        if mapped is None or mapped.filename is None:
            yield values[start : start + number]
        else:
            offset = mapped.offset + start * values.itemsize
            yield np.asarray(np.memmap(mapped.filename, values.dtype, mode="r", offset=offset, shape=(number,)))


def _write(path: Path, kind: np.dtype[Any], parts: Iterable[npt.NDArray[Any]]) -> None:
    content = hashlib.sha256()
    with _replacing(path) as temporary, temporary.open("wb") as file:
        for part in parts:
            data = np.ascontiguousarray(part, kind).data
            content.update(data)
            file.write(data)
    _note(path, content.hexdigest())


def _whole(path: Path) -> bool:
    """Whether the file is there and is what was written."""
    try:
        seen = json.loads(path.with_suffix(".seen").read_text(encoding="utf-8"))
        if seen["stamp"] == stamp(path):
            return True
        content = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                content.update(block)
        whole = bool(content.hexdigest() == seen["content"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if whole:  # copied, or written by two workers at once
        with contextlib.suppress(OSError):
            _note(path, seen["content"])
    return whole


def _note(path: Path, content: str) -> None:
    with _replacing(path.with_suffix(".seen")) as temporary:
        temporary.write_text(json.dumps({"content": content, "stamp": stamp(path)}), encoding="utf-8")


def stamp(path: Path) -> list[int]:
    """What changes when a file does, at no cost: its size, when it was changed, and its number.

    Raises:
        OSError: there is no such file.
    """
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _entry(key: Any, suffix: str) -> Path:
    return cache_folder() / f"{_hash([FORMAT, key])[:32]}{suffix}"


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to that no other process has; at the end it takes the place of ``path`` at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield temporary
        if path.is_dir() and not path.is_symlink():  # no entry is one, and nothing takes the place of a folder
            shutil.rmtree(path)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
