"""What becomes of PyYAML's complaints: the place, the message, the remedy."""

from __future__ import annotations

import pytest

from tests.ablate.experiment.yaml.outcomes import errors

INDENT = "indent this line as the keys beside it"
ROOT = "top-level keys start in the first column, without brackets around some of them"
NO_TAGS = "remove it: a plain value is a number, true, false or null by itself, and text in quotes"
SYNTAX = [
    ("a: 1\n  b: 2\n", "2:4", "a value cannot begin at this `:`", INDENT),
    ("name:foo\n\nseed: 1\n", "3:5", "a value cannot begin at this `:`", "line 1 needs a space after its `:`"),
    ("x" * 2000 + ": 1", "1:2001", "a value cannot begin at this `:`", INDENT),
    ("a: 1\n: 2\n", "2:1", "a key is missing before this `:`", "write `key: value`"),
    ("a: 1\nfoo\nb: 2\n", "2:1-4", "this is neither `key: value` nor a part of what stands above",
     "write a space after the `:`, and indent text that goes on"),
    ("a:\n  b: 1\n c: 2\n", "3:2-6", "this line is indented unlike its neighbours",
     "keys of one mapping, and items of one list, start in the same column"),
    ("a: [1, 2\n", "1:4", "this `[` is never closed", "add the closing `]`"),
    ("a: {b: 1", "1:4", "this `{` is never closed", "add the closing `}`"),
    ("a: [1, 2\nb: 3\n", "1:4", "this `[` is still open on line 2, where `:` does not fit",
     "add the closing `]`, or a `,`"),
    ("a: [1, 2}\n", "1:9", "`}` does not close `[`", "close it with `]`"),
    ("a: {b: '1' 'c'}", "1:12", "a `,` or `}` is missing before this `'`", "put a text that has `'` in it in quotes"),
    ("a: [1]]", "1:7", "this `]` closes nothing", "remove it, or put the text in quotes"),
    ("a: }", "1:4", "this `}` closes nothing", "remove it, or put the text in quotes"),
    ("a: [1,,2]", "1:7", "a value is missing before this `,`", "write the value, or put the text in quotes"),
    ("a: 'don't'\nb: 'x'\n", "1:9", "the value has ended before this", "put the whole value in quotes"),
    ("a: 'x\nb: 1\n", "1:4", "this quote is never closed",
     "add the closing `'`; between single quotes an apostrophe is written twice"),
    ('a: "x\n---\n"', "1:4", "this quote is never closed",
     'add the closing `"`; between single quotes an apostrophe is written twice'),
    ('a: "C:\\data"', "1:8", "a backslash before `d` means nothing between double quotes",
     "use single quotes, or write each backslash twice"),
    ('a: "\\UFFFFFFFF"', "1:7", "this escape stands for no character", "write the character itself"),
    ("a: @x", "1:4", "a value cannot begin with `@`", "put the text in quotes"),
    ("a: %x", "1:4", "a value cannot begin with `%`", "put the text in quotes"),
    ("a: *", "1:4", "`*` begins an alias, and its name is letters and digits",
     "put a text that begins with `*` in quotes"),
    ("a: &%", "1:4", "`&` begins an anchor, and its name is letters and digits",
     "put a text that begins with `&` in quotes"),
    ("a: |x|", "1:4", "`|` begins a block of text, which starts on the next line",
     "put a text that begins with `|` in quotes"),
    ("a: - b", "1:4", "a list item cannot begin here", "begin each `- item` on its own line, or write `[a, b]`"),
    ("- a\nb: 1\n", "2:1-5", "a key stands where a list item is expected",
     "begin the item with `- `, or indent the line"),
    ("a: 1\n- b\n", "2:1-4", "a list item stands where a key is expected", "indent the list under its key"),
    ("  a: 1\nb: 2\n", "2:1-5", "the document has ended before this line", ROOT),
    ("{a: 1}\nb: 2\n", "2:1-5", "the document has ended before this line", ROOT),
    ("%YAML 2.0\n---\na: 1", "1:1",
     "this is not valid YAML: found incompatible YAML document (version 1.* is required)", "see yaml.org/spec/1.2.2"),
    ("a: !<x 1", "1:4", "`!` begins a tag", NO_TAGS),
    ("a: !e!x 1", "1:4", "`!` begins a tag", NO_TAGS),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "message", "help"), SYNTAX, ids=[case[0][:20] for case in SYNTAX])
def test_a_syntax_error_is_said_in_the_users_words(text: str, place: str, message: str, help: str) -> None:
    (diagnostic,) = errors(text)
    span = diagnostic.span
    assert span is not None
    shown = f"{span.line}:{span.column}" + (f"-{span.end}" if span.end > span.column + 1 else "")
    assert (shown, diagnostic.message, diagnostic.help) == (place, message, help)
    assert diagnostic.code == ("Y015" if "tag" in message else "Y013" if "key is missing" in message else "Y010")
