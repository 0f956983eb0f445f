"""A table as a value: its cells are written once and come out as HTML, CSV, LaTeX and Markdown alike."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from ablate.reporting.numbers import DASH, MINUS, TIMES, missing

MOST_ROWS = 200
"""So many rows of a table stand in the page; with more, all of them come as data too, which the page's script shows."""
Record = Mapping[str, Any]


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
    compose: Callable[[Record], str] | None = None
    """Its text in print where one cell tells of several values, as an interval; CSV keeps them apart."""
    adorn: Callable[[Record, str], Markup] | None = None
    """What HTML makes of the record and the text, as a coloured mark before a name."""
    empty: str = "none"
    """What a dash says to those who cannot see it."""
    sort: Callable[[Record], Any] | None = None
    """What it sorts by where that is not what it shows."""
    short: int = 0
    """So many letters of an identity are shown; 0 shows all."""
    anchor: str = ""
    """What the id of its row in the page begins with, before the identity; the cell then leads to its own row."""


@dataclass(frozen=True)
class Table:
    """Records and the columns that show them."""

    columns: Sequence[Column]
    records: Sequence[Record]
    pinned: int = 0
    """So many rows stay on top, however the rest is sorted."""
    most: int = MOST_ROWS
    """So many rows stand in the page as they are, below the pinned ones."""
    file: str = ""
    """The file beside the page that has all rows, where one has."""

    @property
    def cut(self) -> bool:
        """Whether there are more rows than stand in the page."""
        return len(self.records) - self.pinned > self.most

    def shown(self) -> list[Column]:
        """The columns worth print: those that are always shown, and those in which the rows differ."""
        return [
            column
            for column in self.columns
            if not (column.optional and len({self.text(column, record) for record in self.records}) < 2)
        ]

    def value(self, column: Column, record: Record) -> str:
        """One cell of CSV."""
        return column.write(record.get(column.key))

    def text(self, column: Column, record: Record) -> str:
        """One cell in print."""
        return column.compose(record) if column.compose else self.value(column, record)[: column.short or None]

    def cell(self, column: Column, record: Record) -> Markup:
        """One cell as HTML; a dash where there is nothing."""
        text = self.text(column, record)
        if column.adorn and text:
            return column.adorn(record, text)
        if column.anchor and text:
            link = Markup('<a href="#{}{}"><code>{}</code></a>')
            return link.format(column.anchor, self.value(column, record), text)
        if not text:
            return Markup('<span role="img" aria-label="{}">{}</span>').format(column.empty, DASH)
        return escape(text) if column.numeric else Markup('<span class="text">{}</span>').format(text)

    def order(self, column: Column, record: Record) -> Markup:
        """The attribute that a cell sorts by, where its text will not do."""
        if column.sort is None and not column.compose and not column.adorn and self.text(column, record):
            return Markup("")
        return Markup(' data-sort="{}"').format(self.key(column, record))

    def key(self, column: Column, record: Record) -> str:
        """What a cell sorts by."""
        return as_text(column.sort(record)) if column.sort else self.value(column, record)

    def place(self, record: Record) -> Markup:
        """The attribute that a link to a row leads to; nothing in a table that nothing leads to."""
        anchors = (
            f"{column.anchor}{id}" for column in self.columns if column.anchor and (id := self.value(column, record))
        )
        return Markup(' id="{}"').format(anchor) if (anchor := next(anchors, "")) else Markup("")

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
        return "".join(f"| {' | '.join(map(as_markdown, row))} |\n" for row in rows)

    def latex(self) -> str:
        """The shown columns as a LaTeX table, for the package booktabs."""
        columns = self.shown()
        lines = [
            r"\begin{tabular}{" + "".join("r" if column.numeric else "l" for column in columns) + "}",
            r"\toprule",
            _latex_row(latex(_head(column)) for column in columns),
            r"\midrule",
        ]
        for index, record in enumerate(self.records):
            lines.append(_latex_row(latex(self._in_print(column, record)) or "--" for column in columns))
            if index + 1 == self.pinned < len(self.records):
                lines.append(r"\midrule")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])

    def _in_print(self, column: Column, record: Record) -> str:
        """One cell with the minus of a paper before a negative number, where the column is of numbers."""
        text = self.text(column, record)
        return _NEGATIVE.sub(MINUS, text) if column.numeric else text


_NEGATIVE = re.compile(r"(?<![\w.])-(?=[\d.])")
# What makes a link, and what is no part of a word, would be markup; an interval and val/bits_per_char stay as they are.
_MARKDOWN = re.compile(r"[\\|`*<>&$~]|\](?=[(\[:{])|(?<![^\W_])[_#]|[_#](?![^\W_])")


def as_markdown(text: str) -> str:
    """The text as Markdown shows it, in a table too: nothing in it is markup."""
    return _MARKDOWN.sub(r"\\\g<0>", text).replace("\n", " ")


def _head(column: Column) -> str:
    return f"{column.title} ({column.unit})" if column.unit else column.title


_GREEK = {
    "\u03b1": "alpha", "β": "beta", "\u03b3": "gamma", "δ": "delta", "ε": "varepsilon", "ζ": "zeta", "η": "eta",
    "θ": "theta", "κ": "kappa", "λ": "lambda", "μ": "mu", "µ": "mu", "\u03bd": "nu", "ξ": "xi", "π": "pi",
    "\u03c1": "rho", "\u03c3": "sigma", "τ": "tau", "φ": "varphi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma",
    "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi",
    "Ω": "Omega",
}  # fmt: skip
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"{\char34}", "\n": " ", "\t": " ", DASH: "--", "…": r"\dots{}",
    TIMES: r"$\times$", MINUS: r"$-$", "±": r"$\pm$", "→": r"$\to$", "≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$",
    "∞": r"$\infty$", "²": "$^2$", "³": "$^3$", **{letter: rf"$\{name}$" for letter, name in _GREEK.items()},
}  # fmt: skip
# What pdfLaTeX stops at, whatever fonts and encodings the paper has: all but ASCII and the common Latin letters.
_FOREIGN = re.compile(r"[^\x20-\x7eÀ-ÅÇ-ÏÑ-ÖØ-Ýßà-åç-ïñ-öø-ýÿ]+")


def _latex_row(cells: Iterable[str]) -> str:
    """A row of a table: after the end of another, LaTeX would take a bracket or a star for an option of that end."""
    row = " & ".join(cells)
    return ("{}" if row.startswith(("[", "*")) else "") + row + r" \\"


def latex(text: str) -> str:
    """The text as LaTeX shows it: nothing in it acts as a command.

    XeLaTeX and LuaLaTeX get the letters of every script; pdfLaTeX, which would stop at them, gets their numbers.
    """
    return _FOREIGN.sub(_by_engine, "".join(_LATEX.get(letter, letter) for letter in text))


def _by_engine(foreign: re.Match[str]) -> str:
    numbers = " ".join(f"U+{ord(letter):04X}" for letter in foreign[0])
    return rf"\ifdefined\pdftexversion[{numbers}]\else {foreign[0]}\fi{{}}"
