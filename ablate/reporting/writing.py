"""Writes a study's report and the files beside it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

MOST_BYTES = 3_000_000
"""A page that is larger leaves things out, until it is not."""
REDUCTIONS: Mapping[str, str] = {
    "trial curves": "the curves of single trials (means and bands are of all trials)",
    "seed marks": "the marks and lines of single seeds in the forest plot and seed by seed",
    "tables as text": "the tables of effects as text to copy (effects.csv, effects.tex and effects.md have them)",
    "the resolved plan": "the resolved plan (plan.json has it)",
    "rows beyond the first": "the rows of tables beyond the first 200 (trials.csv and effects.csv have them)",
}
"""What a page leaves out to be smaller, in this order, each with the words that say so."""


@dataclass(frozen=True)
class Part:
    """One section as it stands in the page."""

    kind: str
    title: str
    html: Markup
    asked: frozenset[str]
    """What it would leave out of :data:`REDUCTIONS`."""


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
    html = compose(page, sections, notes)
    texts = {
        "trials.csv": trials_csv(page.study),
        "effects.csv": effects_csv(page.study),
        "effects.tex": effects_latex(page.study),
        "effects.md": effects_markdown(page.study),
        "report.json": report_json(page.study),
        "report.html": html,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with replacing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="")
    return folder / "report.html"


def compose(page: Page, sections: Iterable[Component], notes: Sequence[str] = ()) -> str:
    """The whole page as HTML; a section that renders nothing is left out of it and of the navigation.

    A page over :data:`MOST_BYTES` is made again without what :data:`REDUCTIONS` names, one after the other, until it is
    small enough, and says above its first section what it does without.
    """
    found = []
    for section in sections:
        if not isinstance(section, Section):
            raise TypeError(f"a section of the report is a Section, not a {type(section).__name__}")
        found.append(section)
    found.sort(key=lambda section: (section.order, _kind(section)))
    parts = [_part(page, section) for section in found]
    html, said = _filled(page, parts, notes), []
    for what, words in REDUCTIONS.items():
        if len(html.encode()) <= MOST_BYTES:
            break
        if not any(what in part.asked for part in parts):
            continue
        page.study.left_out.add(what)
        page = Page(page.results, page.study)
        parts = [
            _part(page, section) if what in part.asked else part for section, part in zip(found, parts, strict=True)
        ]
        said.append(words)
        html = _filled(page, parts, [*notes, f"To stay under {MOST_BYTES / 1e6:g} MB, this page leaves out "
                                             f"{'; '.join(said)}."])  # fmt: skip
    return html


def _part(page: Page, section: Section) -> Part:
    page.study.asked.clear()
    html = escape(section.render(page))
    return Part(_kind(section), section.title, html, frozenset(page.study.asked))


def _anchored(parts: Sequence[Part]) -> Iterator[tuple[str, Part]]:
    """Each part with an id that nothing else in the page has: a plugin's section may be called as a table is."""
    taken = {"content"}.union(*(re.findall(r' id="([^"]+)"', part.html) for part in parts))
    for part in parts:
        anchor = part.kind.replace("_", "-")
        while anchor in taken:
            anchor += "-section"
        taken.add(anchor)
        yield anchor, part


def _filled(page: Page, parts: Sequence[Part], notes: Sequence[str]) -> str:
    templates = files("ablate.reporting") / "templates"
    script = (templates / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return page.template(
        "report.html",
        header=header(page.study),
        parts=list(_anchored([part for part in parts if part.html.strip()])),
        notes=notes,
        css=Markup((templates / "report.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )


def _kind(section: Section) -> str:
    return str(getattr(section, "kind", type(section).__name__.lower()))
