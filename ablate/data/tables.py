"""Tables of text: columns of a TSV, CSV, JSONL, parquet or Arrow file, read and checked as a whole."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NoReturn

import pyarrow as pa
from pyarrow import compute, ipc, parquet

from ablate.errors import InputError

Row = tuple[int, Sequence[str]]
"""The number of a row and its cells."""
_BESIDE = "a path is relative to the experiment's file"


@dataclass(frozen=True)
class Table:
    """Some columns of a file, as text."""

    columns: Mapping[str, Sequence[str]]
    """The text of every row, by column; no cell is empty."""
    numbers: Sequence[int]
    """Where each row stands: the line that it begins at, from 1, or in a parquet or Arrow file the row, from 1."""
    shown: str
    """The file, as the user named it."""
    counted: Literal["line", "row"] = "line"
    """What the numbers count."""

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, row: int) -> str:
        """Where a row stands, as in ``line 7 of `pairs.tsv```."""
        return f"{self.counted} {self.numbers[row]} of `{self.shown}`"

    @property
    def digest(self) -> str:
        """Hash of the columns' text; the file's kind, its other columns and the lines' numbers have no part in it."""
        found = hashlib.sha256()
        for name, cells in self.columns.items():
            found.update(json.dumps([name, *cells]).encode())
        return found.hexdigest()


def read_table(path: Path, columns: Sequence[str], shown: str) -> Table:
    """Read columns of text from a file, whose kind is told by how its name ends.

    ``.tsv``: cells are parted by tabs, and a quotation mark is a character like any other. ``.csv``: commas, with
    quoted cells as in RFC 4180. In both the first line names the columns. ``.jsonl``: an object a line. ``.parquet``,
    and ``.arrow`` or ``.feather``: a row a row. Text is UTF-8, with or without a byte order mark. Numbers, and true and
    false, are taken as they are written; empty lines at the end are no rows.

    Lines end in a line feed, with or without a carriage return before it, or all of them in a carriage return alone.

    Raises:
        InputError: the file cannot be read as such a table, or a cell of these columns is empty; names its line.
    """
    ending = path.suffix.lower()
    if ending in _BINARY:
        return _binary(path, _BINARY[ending], columns, shown)
    if ending not in _TEXT:
        ends = f"its name ends in `{ending}`" if ending else "its name has no ending"
        _refuse("S320", f"`{shown}` is no table that can be read: {ends}", f"give a file that ends in {_ENDINGS}")
    lines = _text(path, shown)
    numbers: list[int] = []
    found: list[list[str]] = [[] for _ in columns]
    for number, cells in _TEXT[ending](lines, columns, shown):
        numbers.append(number)
        for column, name, cell in zip(found, columns, cells, strict=True):
            if not cell or cell.isspace():
                _empty_cell(f"line {number}", name, shown)
            column.append(cell)
    return Table(dict(zip(columns, found, strict=True)), numbers, shown)


def _text(path: Path, shown: str) -> str:
    """The text of a file, without the empty lines at its end."""
    content = _reading(path, shown, path.read_bytes)
    try:
        text: str = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n" if b"\n" in content else b"\r", 0, error.start) + 1
        _refuse(
            "S323",
            f"`{shown}` is not UTF-8 text: line {line} has the byte 0x{content[error.start]:02x}",
            "convert the file to UTF-8",
        )
    if "\n" not in text:
        text = text.replace("\r", "\n")
    if not text.strip("\r\n"):
        _refuse("S322", f"`{shown}` is empty", "give a file with some rows in it")
    return text.rstrip("\r\n")


def _reading(path: Path, shown: str, read: Callable[[], Any]) -> Any:
    if "\0" in str(path):
        _refuse("S321", f"cannot read `{shown}`: no file has a NUL in its name", _BESIDE)
    try:
        return read()
    except pa.ArrowException as error:
        kind = "parquet" if path.suffix.lower() == ".parquet" else "Arrow"
        said = str(error).splitlines()[0]
        _refuse("S327", f"`{shown}` is no {kind} file: {said}", "write the file again")
    except OSError as error:
        said = error.strerror or str(error).splitlines()[0]
        _refuse("S321", f"cannot read `{shown}`: {said}", _BESIDE)


# --- text ---


def _tsv(text: str, columns: Sequence[str], shown: str) -> Iterator[Row]:
    lines = ((number, line.removesuffix("\r").split("\t")) for number, line in enumerate(text.split("\n"), 1))
    return _with_header(lines, columns, shown)


def _csv(text: str, columns: Sequence[str], shown: str) -> Iterator[Row]:
    return _with_header(_csv_rows(text, shown), columns, shown)


def _csv_rows(text: str, shown: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    before = csv.field_size_limit(max(len(text), csv.field_size_limit()))
    first = 1
    try:
        for cells in reader:
            yield first, cells or [""]
            first = reader.line_num + 1
    except csv.Error as error:
        words = {"unexpected end of data": "a quotation mark is not closed"}.get(str(error), str(error))
        _refuse("S327", f"line {first} of `{shown}` is no CSV: {words}", 'a `"` within quotes is written twice')
    finally:
        csv.field_size_limit(before)


def _with_header(lines: Iterator[Row], columns: Sequence[str], shown: str) -> Iterator[Row]:
    """The wanted cells of each row below the first, which names the columns."""
    _, header = next(lines)
    header = [name.strip() for name in header]
    for name in header:
        _once(name, header, shown)
    where = [_place_of(name, header, shown) for name in columns]
    number = 1
    for number, cells in lines:  # what it is at the end says whether there was a row
        if len(cells) != len(header):
            if cells == [""]:
                _refuse("S325", f"line {number} of `{shown}` is empty", "take the line out")
            _refuse(
                "S325",
                f"line {number} of `{shown}` has {_count(len(cells), 'cell')}, and the first line names "
                f"{_count(len(header), 'column')}",
                "give every line one cell for each column",
            )
        yield number, [cells[place] for place in where]
    if number == 1:
        _refuse("S322", f"`{shown}` has no rows: its one line names the columns", "give it some rows")


def _once(name: str, names: Sequence[str], shown: str) -> None:
    if names.count(name) > 1:
        _refuse("S328", f"`{shown}` names the column `{name}` twice", "give each column a name of its own")


def _place_of(name: str, names: Sequence[str], shown: str) -> int:
    if name not in names:
        near = get_close_matches(name, names, n=1)
        meant = f"did you mean `{near[0]}`? " if near else ""
        parted = next((sign for sign in ";|\t," if len(names) == 1 and sign in names[0]), None)
        if parted:
            meant = f"its cells seem to be parted by {parted!r}, where a .csv has commas and a .tsv tabs; "
        has = f"it has {', '.join(f'`{each}`' for each in names)}"
        _refuse("S324", f"`{shown}` has no column `{name}`", meant + has)
    return list(names).index(name)


def _jsonl(text: str, columns: Sequence[str], shown: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            _refuse("S325", f"line {number} of `{shown}` is empty", "take the line out")
        yield number, _members(line, number, columns, shown)


def _members(line: str, number: int, columns: Sequence[str], shown: str) -> list[str]:
    where = f"line {number} of `{shown}`"

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            _refuse("S328", f"{where} has `{twice}` twice", "give each value a name of its own")
        return row

    try:
        row = json.loads(line, object_pairs_hook=once, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        said = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        _refuse("S327", f"{where} is no JSON: {said}", "give one JSON object a line")
    if not isinstance(row, dict):
        _refuse("S327", f"{where} is {_sort(row)}, and an object is wanted", "give one JSON object a line")
    return cells_of(row, columns, f"line {number}", shown)


def cells_of(row: Mapping[str, Any], columns: Sequence[str], place: str, shown: str) -> list[str]:
    """The wanted cells of a row of JSON's values, as text.

    Raises:
        InputError: it lacks one, or one is empty, null, or no text, number, true or false; says where.
    """
    where = f"{place} of `{shown}`"
    cells = []
    for name in columns:
        if name not in row:
            names = [str(each) for each in row]
            near = get_close_matches(name, names, n=1)
            meant = f"did you mean `{near[0]}`? " if near else ""
            has = f"it has {', '.join(f'`{each}`' for each in names)}" if names else "it has nothing"
            _refuse("S324", f"{where} has no `{name}`", meant + has)
        value = row[name]
        if value is not None and not isinstance(value, str | int | float):
            _refuse("S327", f"{where} has {_sort(value)} in `{name}`, and text is wanted", "give a text or a number")
        cell = value if isinstance(value, str) else "" if value is None else json.dumps(value)
        if not cell or cell.isspace():
            _empty_cell(place, name, shown)
        cells.append(cell)
    return cells


def _constant(written: str) -> float | None:
    """What JSON has no word for, and many programs write: ``NaN`` is what they say of a cell without a value."""
    return None if written == "NaN" else float(written)


def _sort(value: Any) -> str:
    """What a JSON value is, in words."""
    words = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return words.get(type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}")


_TEXT: Mapping[str, Callable[[str, Sequence[str], str], Iterable[Row]]] = {
    ".tsv": _tsv,
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
}


# --- parquet and Arrow ---


def _binary(path: Path, read: Callable[[Path], pa.Table], columns: Sequence[str], shown: str) -> Table:
    return of_arrow(_reading(path, shown, lambda: read(path)), columns, shown)


def of_arrow(table: pa.Table, columns: Sequence[str], shown: str) -> Table:
    """Columns of an Arrow table, read as those of a file are.

    Raises:
        InputError: it lacks one, one is no text or number, or a cell of them is empty; names its row.
    """
    for name in columns:
        _place_of(name, table.column_names, shown)
        _once(name, table.column_names, shown)
    if not table.num_rows:
        _refuse("S322", f"`{shown}` has no rows", "give it some rows")
    found = {name: _cells(table.column(name), name, shown) for name in columns}
    return Table(found, range(1, table.num_rows + 1), shown, "row")


def _cells(column: pa.ChunkedArray, name: str, shown: str) -> list[str]:
    if pa.types.is_floating(column.type):
        column = compute.if_else(compute.is_nan(column), None, column)
    try:
        cells: list[str | None] = column.cast(pa.string()).to_pylist()
    except pa.ArrowException:
        _refuse(
            "S327", f"`{name}` of `{shown}` is of the type {column.type}, and text is wanted", "name another column"
        )
    for row, cell in enumerate(cells, 1):
        if cell is None or not cell or cell.isspace():
            _empty_cell(f"row {row}", name, shown)
    return [cell for cell in cells if cell is not None]


def _parquet(path: Path) -> pa.Table:
    with parquet.ParquetFile(path) as file:  # `read_table` takes a folder too, and no column whose name comes twice
        return file.read()


def _arrow(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        try:
            return ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return ipc.open_stream(source).read_all()


_BINARY: Mapping[str, Callable[[Path], pa.Table]] = {
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
}
_ENDINGS = ", ".join(f"`{ending}`" for ending in (*_TEXT, *_BINARY))


def _empty_cell(where: str, name: str, shown: str) -> NoReturn:
    _refuse("S326", f"{where} of `{shown}` has nothing in `{name}`", "fill the cell, or take the row out")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _refuse(code: str, message: str, remedy: str) -> NoReturn:
    raise InputError.one(code, message, help=remedy) from None
