"""A table as a value: its cells are written once and come out as HTML, CSV, LaTeX and Markdown alike."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from ablate.reporting.numbers import DASH, MINUS, TIMES, missing


def as_text(value: Any) -> str:
    """The value as it is, and nothing where it is missing."""
    return "" if missing(value) else str(value)


@dataclass(frozen=True)
class Column:
    """One column: where its value is found in a record, and how it is written."""

    key: str
    """The name in CSV, and of the record's value."""
    title: str
    """The head in print."""
    write: Callable[[Any], str] = as_text
    unit: str = ""
    numeric: bool = True
    optional: bool = False
    """Whether it is left out of print where all rows agree; CSV always has it."""
    compose: Callable[[Mapping[str, Any]], str] | None = None
    """Its text in print where one cell tells of several values, as an interval; CSV keeps them apart."""
    adorn: Callable[[Mapping[str, Any], str], Markup] | None = None
    """What HTML makes of the record and the text, as a coloured mark before a name."""
    empty: str = "none"
    """What a dash says to those who cannot see it."""
    sort: Callable[[Mapping[str, Any]], Any] | None = None
    """What it sorts by where that is not what it shows."""


@dataclass(frozen=True)
class Table:
    """Records and the columns that show them."""

    columns: Sequence[Column]
    records: Sequence[Mapping[str, Any]]
    pinned: int = 0
    """So many rows stay on top, however the rest is sorted."""

    def shown(self) -> list[Column]:
        """The columns worth print: those that are always shown, and those in which the rows differ."""
        return [
            column
            for column in self.columns
            if not (column.optional and len({self.text(column, record) for record in self.records}) < 2)
        ]

    def value(self, column: Column, record: Mapping[str, Any]) -> str:
        """One cell of CSV."""
        return column.write(record.get(column.key))

    def text(self, column: Column, record: Mapping[str, Any]) -> str:
        """One cell in print."""
        return column.compose(record) if column.compose else self.value(column, record)

    def cell(self, column: Column, record: Mapping[str, Any]) -> Markup:
        """One cell as HTML; a dash where there is nothing."""
        text = self.text(column, record)
        if column.adorn and text:
            return column.adorn(record, text)
        if not text:
            return Markup('<span aria-label="{}">{}</span>').format(column.empty, DASH)
        return escape(text) if column.numeric else Markup('<span class="text">{}</span>').format(text)

    def order(self, column: Column, record: Mapping[str, Any]) -> Markup:
        """The attribute that a cell sorts by, where its text will not do."""
        text = self.text(column, record)
        if column.sort is None and not column.compose and not column.adorn and text:
            return Markup("")
        key = column.sort(record) if column.sort else self.value(column, record)
        return Markup(' data-sort="{}"').format("" if missing(key) else key)

    def csv(self) -> str:
        """All columns as CSV, with the names of the keys; nothing stands for a missing value."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([column.key for column in self.columns])
        for record in self.records:
            writer.writerow([self.value(column, record) for column in self.columns])
        return out.getvalue()

    def markdown(self) -> str:
        """The shown columns as a Markdown table."""
        columns = self.shown()
        rows = [[_head(column) for column in columns], ["---:" if c.numeric else "---" for c in columns]]
        rows += [[self.text(column, record) or DASH for column in columns] for record in self.records]
        escaped = [[cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
        return "".join(f"| {' | '.join(row)} |\n" for row in escaped)

    def latex(self) -> str:
        """The shown columns as a LaTeX table, for the package booktabs."""
        columns = self.shown()
        lines = [
            r"\begin{tabular}{" + "".join("r" if column.numeric else "l" for column in columns) + "}",
            r"\toprule",
            " & ".join(latex(_head(column)) for column in columns) + r" \\",
            r"\midrule",
        ]
        for index, record in enumerate(self.records):
            lines.append(" & ".join(latex(self.text(column, record)) or "--" for column in columns) + r" \\")
            if index + 1 == self.pinned < len(self.records):
                lines.append(r"\midrule")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _head(column: Column) -> str:
    return f"{column.title} ({column.unit})" if column.unit else column.title


_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "Δ": r"$\Delta$", TIMES: r"$\times$", DASH: "--", "…": r"\dots{}", "\n": " ", '"': r"\textquotedbl{}",
    "|": r"\textbar{}", MINUS: r"$-$", "±": r"$\pm$",
}  # fmt: skip


def latex(text: str) -> str:
    """The text as LaTeX shows it: nothing in it acts as a command."""
    return "".join(_LATEX.get(letter, letter) for letter in text)
