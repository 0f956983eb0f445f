"""A study's answer in a notebook: the verdicts, worst first, as HTML that needs no style sheet of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ablate.analysis.verdict import Verdict

MOST_SHOWN = 8
"""With more verdicts than these, the rest waits behind a line to open."""
_BETTER, _WORSE, _UNSURE, _BROKEN, _NONE = "#009e73", "#d55e00", "#a67c00", "#b0568c", "#7a7f87"
COLOURS: Mapping[str, str] = {
    "diverged": _BROKEN,
    "worse": _WORSE,
    "worse, size uncertain": _WORSE,
    "not comparable": _BROKEN,
    "undecided": _UNSURE,
    "one seed, no interval": _UNSURE,
    "no practical difference": _NONE,
    "identical": _NONE,
    "better, size uncertain": _BETTER,
    "better": _BETTER,
}
"""The colour of each verdict's frame, with a contrast of 3:1 on light and dark grounds; letters stay in the page's."""


def answer(
    plan: Mapping[str, Any], counts: Mapping[str, int], verdicts: Sequence[Verdict], caveats: Sequence[str]
) -> str:
    """The name, the question, how many trials ended how, the verdicts and the caveats; every text is escaped."""
    left = counts["running"] + counts["waiting"]
    ends = " · ".join(f"{number} {end.replace('_', ' ')}" for end, number in counts.items() if number)
    interim = f' <small style="color:inherit">interim: {left} not ended</small>' if left else ""
    rest = verdicts[MOST_SHOWN:]
    more = f"<details><summary>The other {len(rest)} verdicts</summary>{_list(rest)}</details>" if rest else ""
    notes = "".join(f"<li>{escape(text)}</li>" for text in caveats)
    title = '<p style="margin:8px 0 2px"><strong>Caveats</strong></p>' if caveats else ""
    return (
        '<div style="max-width:75em;line-height:1.45">'
        f'<h3 style="margin:0;overflow-wrap:anywhere">{escape(plan["name"])}{interim}</h3>'
        f'<p style="margin:0 0 4px;overflow-wrap:anywhere">{escape(plan["question"] or "")}</p>'
        f'<p style="margin:0 0 8px;opacity:.8"><small>{escape(ends)}</small></p>'
        f"{_list(verdicts[:MOST_SHOWN])}{more}"
        f'{title}<ul style="margin:0">{notes}</ul></div>'
    )


def _list(verdicts: Sequence[Verdict]) -> str:
    items = "".join(
        f'<li style="margin:0 0 4px;overflow-wrap:anywhere">{_badge(verdict.word)} {escape(verdict.sentence)}</li>'
        for verdict in verdicts
    )
    return f'<ul style="margin:0;padding:0;list-style:none">{items}</ul>'


def _badge(word: str) -> str:
    colour = COLOURS.get(word, _NONE)
    return (
        f'<span style="border:1px solid {colour};border-left-width:5px;border-radius:3px;padding:0 6px;'
        f'white-space:nowrap;font-weight:600">{escape(word)}</span>'
    )
