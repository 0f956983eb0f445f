"""Why PyYAML's scanner or parser gave up, in the user's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from yaml.error import MarkedYAMLError

from ablate.errors import Span
from ablate.experiment.yaml.source import Source, shown

NO_TAGS = "remove it: a plain value is a number, true, false or null by itself, and text in quotes"


class _Complaint(NamedTuple):
    """A pattern of what PyYAML says, and what a user is told instead.

    The caret goes under what PyYAML stumbled over, or ``at_start`` of what it was in, or under the ``whole_line``.
    """

    pattern: str
    message: str
    help: str | None
    at_start: bool = False
    whole_line: bool = False
    code: str = "Y010"


_COMPLAINTS = (
    _Complaint(r"found character '\\t'", "a tab cannot indent", "indent with spaces", code="Y011"),
    _Complaint(r"found character '(.)' that", "a value cannot begin with {here}", "put the text in quotes"),
    _Complaint(r"mapping values are not", "a value cannot begin at this `:`", None),
    _Complaint(r"expected ':'", "this is neither `key: value` nor a part of what stands above",
               "write a space after the `:`, and indent text that goes on", at_start=True, whole_line=True),
    _Complaint(r"a (?:double-)?quoted scalar: found unexpected", "this quote is never closed",
               "add the closing {began}; between single quotes an apostrophe is written twice", at_start=True),
    _Complaint(r"expected ',' or '(.)'.* at the end", "this {began} is never closed", "add the closing `{0}`",
               at_start=True),
    _Complaint(r"expected ',' or '(.)'.* later", "this {began} is still open on line {line}, where {here} does not fit",
               "add the closing `{0}`, or a `,`", at_start=True),
    _Complaint(r"expected ',' or '(.)', but got '[\]}]'", "{here} does not close {began}", "close it with `{0}`"),
    _Complaint(r"expected ',' or '(.)'", "a `,` or `{0}` is missing before this {here}",
               "put a text that has {here} in it in quotes"),
    _Complaint(r"but found '([\]}])'", "this {here} closes nothing", "remove it, or put the text in quotes"),
    _Complaint(r"(?:node content|<block end>), but found ':'", "a key is missing before this `:`", "write `key: value`",
               code="Y013"),
    _Complaint(r"expected the node content", "a value is missing before this {here}",
               "write the value, or put the text in quotes"),
    _Complaint(r"block end>, but found '<block", "this line is indented unlike its neighbours",
               "keys of one mapping, and items of one list, start in the same column", whole_line=True),
    _Complaint(r"block collection: .* '\?'", "a key stands where a list item is expected",
               "begin the item with `- `, or indent the line", whole_line=True),
    _Complaint(r"block mapping: .* '-'", "a list item stands where a key is expected", "indent the list under its key",
               whole_line=True),
    _Complaint(r"<block end>", "the value has ended before this", "put the whole value in quotes"),
    _Complaint(r"expected '<document start>'", "the document has ended before this line",
               "top-level keys start in the first column, without brackets around some of them", whole_line=True),
    _Complaint(r"unknown escape character", "a backslash before {here} means nothing between double quotes",
               "use single quotes, or write each backslash twice"),
    _Complaint(r"a block scalar: ", "{began} begins a block of text, which starts on the next line",
               "put a text that begins with {began} in quotes", at_start=True),
    _Complaint(r"sequence entries", "a list item cannot begin here",
               "begin each `- item` on its own line, or write `[a, b]`"),
    _Complaint(r"an (alias|anchor): expected", "{began} begins an {0}, and its name is letters and digits",
               "put a text that begins with {began} in quotes", at_start=True),
    _Complaint(r"(?:parsing|scanning) a tag|tag handle", "{began} begins a tag", NO_TAGS, at_start=True, code="Y015"),
    _Complaint(r"^(?:None: )?(.*?)(?: later| at the end)?$", "this is not valid YAML: {0}", "see yaml.org/spec/1.2.2"),
)  # fmt: skip


def complain(source: Source, error: MarkedYAMLError, stand_ins: Mapping[str, str]) -> None:
    """Report an error of PyYAML, in whose words a character may go by its stand-in."""
    last = max(0, len(source.text.rstrip()) - 1)
    here, began = (min(m.index, last) if m else last for m in (error.problem_mark, error.context_mark))
    line = source.line(here)
    saying = f"{error.context}: {error.problem}"
    for original, stand_in in stand_ins.items():
        saying = saying.replace(ascii(stand_in)[1:-1], original)
    if error.problem_mark and error.problem_mark.index > last:
        saying += " at the end"
    elif line != source.line(began):
        saying += " later"
    complaint, match = next((each, match) for each in _COMPLAINTS if (match := re.search(each.pattern, saying)))
    point = began if complaint.at_start else here
    span = source.span(point, len(source.text) if complaint.whole_line else point + 1)
    words = {"here": shown(source.text[here]), "began": shown(source.text[began]), "line": line}
    message = complaint.message.format(*match.groups(), **words)
    help = complaint.help.format(*match.groups(), **words) if complaint.help else _colon_help(source, span)
    source.report(complaint.code, message, span, help)


def _colon_help(source: Source, span: Span) -> str:
    """What is most likely wrong where a colon was not expected."""
    above = span.line - 1
    while above and not source.lines[above - 1].strip():
        above -= 1
    before = source.lines[span.line - 1][: span.column - 1]
    if not before.strip():
        return "write a key before it"
    if re.search(r":\s", before):
        return "put a text that has `: ` in it in quotes"
    if above and re.fullmatch(r"\s*[\w.-]+:[^\s:]+", source.lines[above - 1]):
        return f"line {above} needs a space after its `:`"
    return "indent this line as the keys beside it"
