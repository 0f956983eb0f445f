"""The rows of a large table as columns of data, for the page's script: each column has its distinct cells once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from ablate.reporting.tables import Column, Record, Table

# In a script's text only these could end it or begin markup; within JSON they can stand in texts alone.
_ESCAPED = str.maketrans({letter: f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"})


def columnar(table: Table) -> Markup:
    """All rows but the pinned ones as JSON that can stand in a ``script`` of the page.

    Keys: ``count``, the number of rows; ``columns``, the shown ones in order, each with ``numeric``, ``empty`` (what a
    dash says) and

    - ``cells``: one for each row; or, with ``codes``, the distinct ones, and each row's place among them; or one alone,
      where all rows agree.
    - ``texts``: what the cells read, where they are markup.
    - ``keys``: what they sort by, where that is not what they read.
    - ``anchor``: what the ids of the rows begin with, before the cell; ``short``: so many letters of it are shown.
    """
    rows = table.records[table.pinned :]
    found = {"count": len(rows), "columns": [_column(table, column, rows) for column in table.shown()]}
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPED))


def _column(table: Table, column: Column, rows: Sequence[Record]) -> dict[str, Any]:
    made: dict[str, Any] = {"numeric": column.numeric, "empty": column.empty}
    made |= {"anchor": column.anchor} if column.anchor else {}
    made |= {"short": column.short} if column.short else {}
    cells = [_cell(table, column, record) for record in rows]
    distinct = {cell: place for place, cell in enumerate(dict.fromkeys(cells))}
    if len(distinct) < len(cells) / 2:
        made |= {"codes": [distinct[cell] for cell in cells]} if len(distinct) > 1 else {}
        cells = list(distinct)
    contents, texts, keys = zip(*cells, strict=True)
    made["cells"] = contents
    made |= {"texts": texts} if column.adorn else {}
    made |= {"keys": keys} if keys != (texts if column.adorn else contents) else {}
    return made


def _cell(table: Table, column: Column, record: Record) -> tuple[str, str, str]:
    """A cell's content, its text, and what it sorts by."""
    text = table.value(column, record) if column.short else table.text(column, record)
    markup = str(table.cell(column, record)) if column.adorn and text else text
    return markup, text, table.key(column, record)
