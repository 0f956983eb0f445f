"""Writes a study's report and the files beside it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup, escape

from ablate.analysis.results import Results
from ablate.records.sealing import replacing
from ablate.reporting.effects import effects_csv, effects_latex
from ablate.reporting.exports import effects_markdown, report_json
from ablate.reporting.header import header
from ablate.reporting.page import Page
from ablate.reporting.trials import trials_csv
from ablate.slots import Component, Section


@dataclass(frozen=True)
class Part:
    """One section as it stands in the page."""

    anchor: str
    title: str
    html: Markup


def write(results: Results, sections: Iterable[Component], out: Path | None = None, notes: Sequence[str] = ()) -> Path:
    """Write ``report.html``, and beside it ``trials.csv``, ``effects.csv``, ``.tex`` and ``.md``, and ``report.json``.

    The same records and sections give the same bytes. Each file takes the place of an older one at once, the report
    last.

    Args:
        results: what the study found.
        sections: the report's sections, in any order; each says itself where it stands.
        out: the folder to write to, made if need be; default the study's own.
        notes: what a reader should know of the report itself, as of sections that are left out.

    Returns:
        The path of ``report.html``.
    """
    folder = Path(out) if out is not None else results.folder
    page = Page(results)
    texts = {
        "trials.csv": trials_csv(page.study),
        "effects.csv": effects_csv(page.study),
        "effects.tex": effects_latex(page.study),
        "effects.md": effects_markdown(page.study),
        "report.json": report_json(page.study),
        "report.html": compose(page, sections, notes),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with replacing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="")
    return folder / "report.html"


def compose(page: Page, sections: Iterable[Component], notes: Sequence[str] = ()) -> str:
    """The whole page as HTML; a section that renders nothing is left out of it and of the navigation."""
    found = []
    for section in sections:
        if not isinstance(section, Section):
            raise TypeError(f"a section of the report is a Section, not a {type(section).__name__}")
        found.append(section)
    parts = []
    for section in sorted(found, key=lambda section: (section.order, _kind(section))):
        html = escape(section.render(page))
        if html.strip():
            parts.append(Part(_kind(section).replace("_", "-"), section.title, html))
    templates = files("ablate.reporting") / "templates"
    script = (templates / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return page.template(
        "report.html",
        header=header(page.study),
        parts=parts,
        notes=notes,
        css=Markup((templates / "report.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )


def _kind(section: Section) -> str:
    return str(getattr(section, "kind", type(section).__name__.lower()))
