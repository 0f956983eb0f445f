"""Where a table comes from: a file, a Hugging Face dataset, or an object of the user's Python code."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ablate.data.hub import read_dataset
from ablate.data.objects import named, read_alike, running
from ablate.data.tables import Table, cells_of, read_table
from ablate.errors import InputError

_PYTHON = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")


def read_source(source: str, folder: str, columns: Sequence[str]) -> Table:
    """Read columns of text from where ``source`` says.

    ``hub:OWNER/NAME``, with ``/CONFIG`` and ``:SPLIT`` behind it where they are wanted (the split is ``train``
    otherwise): a dataset that the package ``datasets`` gets from the Hugging Face hub, or for a path that begins with
    ``./``, ``../`` or ``/`` one of a local folder or file. ``python:MODULE:NAME``: an object of an importable module,
    or of a file beside the experiment, that has ``__len__`` and whose ``__getitem__`` gives mappings, or what gives one
    when it is called without arguments; this runs the code. Anything else is a file for :func:`read_table`.

    Args:
        source: as the user wrote it.
        folder: the experiment's folder, which paths are relative to.
        columns: what is read of each row.

    Raises:
        InputError: it cannot be read as such a table, or a cell of these columns is empty; names its line or row.
    """
    prefix, _, rest = source.partition(":")
    if prefix in _SOURCES:
        return _SOURCES[prefix](rest, folder, columns, source)
    return read_table(Path(folder) / source, columns, source)


def one_spelling(source: str) -> str:
    """A source as identities have it: a file's path in one spelling."""
    return source if source.partition(":")[0] in _SOURCES else os.path.normpath(source)


def _python(name: str, folder: str, columns: Sequence[str], shown: str) -> Table:
    if not _PYTHON.fullmatch(name):
        _refuse("S350", f"`{shown}` names no object", "write `python:MODULE:NAME`, as in `python:my_data:rows`")
    return read_alike(lambda: _rows(name, folder, columns, shown), shown)


def _rows(name: str, folder: str, columns: Sequence[str], shown: str) -> Table:
    rows = _called(named(name, folder), folder, shown)
    with running(f"`len` of `{shown}`", folder):
        number = len(rows)
    found: list[list[str]] = []
    for index in range(number):
        # Not only getting a row is code of the user: so is all that a row of a class of theirs is asked for.
        with running(f"`[{index}]` of `{shown}`, its row {index + 1},", folder):
            row = rows[index]
            if not isinstance(row, Mapping):
                _refuse(
                    "S355",
                    f"row {index + 1} of `{shown}` is a {type(row).__name__}, and a dict is wanted",
                    'give dicts, as {"text": "it rains", "label": "weather"}',
                )
            cells = {key: _plain(value) for key, value in row.items()}
            found.append(cells_of(cells, columns, f"row {index + 1}", shown))
    if not found:
        _refuse("S322", f"`{shown}` has no rows", "give it some rows")
    texts = {name: [row[place] for row in found] for place, name in enumerate(columns)}
    return Table(texts, range(1, number + 1), shown, "row")


def _called(found: Any, folder: str, shown: str) -> Any:
    """The object itself, or what a class or function gives."""
    with running(f"looking at `{shown}`", folder):
        gives = isinstance(found, type) or (callable(found) and not _is_table(found))
    if gives:
        with running(f"`{shown}()`", folder):
            found = found()
    with running(f"looking at `{shown}`", folder):
        if not _is_table(found) or isinstance(found, dict | str | bytes):
            _refuse(
                "S353",
                f"`{shown}` is a {type(found).__name__}, which is no table",
                "give an object with `__len__` whose `__getitem__` gives the row of a number as a dict; of a "
                'DataFrame, give `frame.to_dict("records")`',
            )
    return found


def _is_table(found: Any) -> bool:
    # A DataFrame has both methods, and `frame[0]` is a column.
    return hasattr(found, "__len__") and hasattr(found, "__getitem__") and not hasattr(found, "iloc")


def _plain(value: Any) -> Any:
    """A value as Python has it: arrays and tensors of one number are that number, and what is not a number is None."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)  # a class derived from it may have methods of its own
    return None if isinstance(value, float) and math.isnan(value) else value


_SOURCES: Mapping[str, Callable[[str, str, Sequence[str], str], Table]] = {"hub": read_dataset, "python": _python}


def _refuse(code: str, message: str, remedy: str) -> NoReturn:
    raise InputError.one(code, message, help=remedy) from None
