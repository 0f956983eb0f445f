"""The page while it is being put together: what a section draws and writes with."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from ablate.analysis.results import Results
from ablate.reporting.columnar import columnar
from ablate.reporting.numbers import plain
from ablate.reporting.study import Study
from ablate.reporting.svg import inline
from ablate.reporting.tables import Table


def environment() -> Environment:
    """Templates in which every value is escaped, an unknown name is an error, and nothing private gets through."""
    return Environment(
        loader=PackageLoader("ablate.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_public,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _public(value: Any) -> Any:
    """What a template prints: text without what is private, and nothing for None."""
    if value is None:
        return ""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


class Page:
    """A report that is being made; fulfils :class:`ablate.slots.Page`."""

    def __init__(self, results: Results, study: Study | None = None) -> None:
        self.results = results
        self._names: set[str] = set()
        if study is not None:
            self.study = study

    @cached_property
    def study(self) -> Study:
        """The study as the report's own figures and tables take it."""
        return Study(self.results)

    @cached_property
    def _environment(self) -> Environment:
        return environment()

    def template(self, name: str, /, **values: Any) -> Markup:
        """One of the report's templates, filled in; every value is escaped and cut to what is public."""
        return Markup(self._environment.get_template(name).render(**values))

    def figure(self, figure: Figure, name: str, alt: str, caption: str = "") -> Markup:
        """A matplotlib figure as inline SVG with its caption; ``name`` is unique in the page."""
        self._take(name)
        return self.template("figure.html", svg=inline(figure, name, plain(alt)), caption=caption)

    def table(self, table: Table, name: str, caption: str, tall: bool = False) -> Markup:
        """A table that sorts; ``name`` is its id, unique in the page, and a ``tall`` one scrolls in itself."""
        self._take(name)
        self.study.tables[name] = table
        rows = columnar(table) if table.cut and not self.study.leaves_out("rows beyond the first") else ""
        return self.template("table.html", table=table, name=name, caption=caption, tall=tall, rows=rows)

    def _take(self, name: str) -> None:
        if name in self._names or not re.fullmatch(r"[a-z][a-z0-9-]*", name):
            raise ValueError(f"a figure's or table's name is unique and of small letters, digits and hyphens: {name!r}")
        self._names.add(name)
