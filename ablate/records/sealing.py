"""Writing files so that a reader sees all of one or none of it, whatever dies in between."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def _synced(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A temporary file beside ``path`` that is on the disk when the block ends, and gone afterwards."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        if durable:
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(path: Path) -> None:
    """Make the folder's entries durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Give a temporary path to write to; at the end it takes the place of ``path`` at once.

    What need not be ``durable`` is there at once too, but a power cut soon afterwards may leave it empty.
    """
    with _synced(path, durable=durable) as temporary:
        yield temporary
    os.replace(temporary, path)
    if durable:
        sync_folder(path.parent)


def dumps(value: Any) -> str:
    """JSON as Ablate writes it: sorted keys, two spaces, no NaN (use None), a newline at the end."""
    return json.dumps(value, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    """Replace ``path`` by this value, durably."""
    with replacing(path) as temporary:
        temporary.write_text(dumps(value), encoding="utf-8")


def seal(path: Path, value: Any) -> bool:
    """Publish ``value`` at ``path`` once and for all; the first writer wins.

    Returns:
        True if this call published it, False if a sealed value was there already.
    """
    with _synced(path) as temporary:
        temporary.write_text(dumps(value), encoding="utf-8")
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True
