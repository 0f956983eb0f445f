"""Reading YAML: values by the 1.2 core schema, the place of each, and every error at once with its exact text."""

from __future__ import annotations

import io
import json
import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from ablate.errors import Diagnostic, InputError, Span
from ablate.experiment.reading import MAX_BYTES, Document, Place, looks_like_number, parse, read, resolve


def data(text: str) -> dict[str, Any]:
    return parse(text, "x.yaml").data


def errors(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        parse(text, "x.yaml")
    return caught.value.diagnostics


def typed(value: object) -> str:
    """A value as text that tells 1 from 1.0 and true, and is the same for two NaN."""
    return f"{type(value).__name__} {value!r}"


def text_at(document: Document, span: Span) -> str:
    return re.split("\r\n|\r|\n", document.text)[span.line - 1][span.column - 1 : span.end - 1]


# Values


def test_an_experiment_reads_as_plain_values() -> None:
    text = """\
# yaml-language-server: $schema=./schema.json
schema: 1
name: norm-placement
model: {width: 128, mixer: {kind: attention, heads: 4, scale: inverse_sqrt}}
factors:
  placement:
    levels:
      pre:  {model.placement: pre}
      off:
  norm: {path: model.norm, levels: [layer, rms, null, on]}
seeds:
- 0
- 1
question: >-
  Where should
  the norm sit?
tune: {lr: [1e-4, 3e-2]}
"""
    assert data(text) == {
        "schema": 1,
        "name": "norm-placement",
        "model": {"width": 128, "mixer": {"kind": "attention", "heads": 4, "scale": "inverse_sqrt"}},
        "factors": {
            "placement": {"levels": {"pre": {"model.placement": "pre"}, "off": None}},
            "norm": {"path": "model.norm", "levels": ["layer", "rms", None, "on"]},
        },
        "seeds": [0, 1],
        "question": "Where should the norm sit?",
        "tune": {"lr": [1e-4, 3e-2]},
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"), ("off", "off"), ("yes", "yes"), ("no", "no"), ("y", "y"), ("n", "n"), ("Off", "Off"),
        ("true", True), ("False", False), ("tRUE", "tRUE"),
        ("1e-3", 0.001), ("1.0e-3", 0.001), (".5", 0.5), ("3", 3), ("-3", -3), ("3.", 3.0), ("1e3", 1000.0),
        ("0o7", 7), ("0x1F", 31), ("0o8", "0o8"), ("-0x1F", "-0x1F"), ("010", 10), ("-08", -8), ("0b11", "0b11"),
        ("1_000", "1_000"), ("12:30", "12:30"), ("2024-01-01", "2024-01-01"), ("1,000", "1,000"),
        ("null", None), ("~", None), ("", None), ("NULL", None), ("nULL", "nULL"), ("None", "None"),
        (".inf", math.inf), ("-.Inf", -math.inf), ("+.INF", math.inf), ("inf", "inf"), (".nan", math.nan),
        ("'1'", "1"), ('"null"', "null"), ("''", ""), ("'on'", "on"), ("|-\n  1", "1"), ('"\\ud83d\\ude42"', "🙂"),
        ("<<", "<<"), ("=", "="), ("１２", "１２"), ("99999999999999999999", 99999999999999999999),
    ],
)  # fmt: skip
def test_a_scalar_is_what_the_core_schema_says(text: str, value: object) -> None:
    assert typed(data(f"a: {text}\n")["a"]) == typed(value)
    if "\n" not in text and "," not in text:
        assert typed(data(f"a: [x, {text} ]")["a"][1:] or None) == typed([value] if text else None)


def test_a_levels_name_on_or_off_is_text() -> None:
    assert data("levels: {on: 1, off: 2, yes: 3, no: 4}") == {"levels": {"on": 1, "off": 2, "yes": 3, "no": 4}}


def test_two_spellings_of_one_number_are_one_number() -> None:
    first, second = data("levels: [1e-3, 1.0e-3]")["levels"]
    assert typed(first) == typed(second)


def test_an_alias_gives_a_copy() -> None:
    values = data("a: &x {b: [1]}\nc: *x\n? d\n: *x\ne: &x 2\nf: *x\n")
    assert values == {"a": {"b": [1]}, "c": {"b": [1]}, "d": {"b": [1]}, "e": 2, "f": 2}
    values["a"]["b"].append(2)
    assert values["c"] == values["d"] == {"b": [1]}


def test_an_alias_may_be_a_key_if_it_is_text() -> None:
    assert data("a: &x name\n*x : 1\n") == {"a": "name", "name": 1}
    assert errors("a: &x 1\n*x : 1\n")[0].code == "Y013"


def test_marks_that_touch_text_are_text_inside_of_brackets_too() -> None:
    assert data("{question: Where?, a?: b? c, ?d: :e, f: ::g, h: [?i, :j, k?l], 'm':n, \"o\" :p, q: r ? s ?}") == {
        "question": "Where?", "a?": "b? c", "?d": ":e", "f": "::g", "h": ["?i", ":j", "k?l"],
        "m": "n", "o": "p", "q": "r ? s ?",
    }  # fmt: skip
    assert data("a: [? b : 1, ? c]\nd: '?:'\n? e?\n: f:g?\n") == {
        "a": [{"b": 1}, {"c": None}],
        "d": "?:",
        "e?": "f:g?",
    }


def test_tabs_may_separate() -> None:
    assert data("lr:\t1e-3\t# usual\nname: a\tb \t c\t\n\t\n\t# note\nlevels: [\n\tpre,\n\tpost]\n") == {
        "lr": 0.001,
        "name": "a\tb \t c",
        "levels": ["pre", "post"],
    }


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029", "\ufeff"])
def test_only_line_feeds_and_carriage_returns_end_a_line(character: str) -> None:
    document = parse(f'a: "x {character} y"\nb: x{character}y # {character}\nc: 010\n', "x.yaml")
    assert document.data == {"a": f"x {character} y", "b": f"x{character}y", "c": 10}
    assert document.warnings[0].span == Span(3, 4, 7)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_a_byte_order_mark_make_no_difference(end: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + end.join(["a: 1", "b: |", "  x", "  y", "c: 010"]).encode())
    document = read(path)
    assert document.data == {"a": 1, "b": "x\ny\n", "c": 10}
    assert document.keys["a",] == Span(1, 1, 2) and document.keys["c",] == Span(5, 1, 2)
    assert document.warnings[0].source == "c: 010"


# Places


def test_each_key_and_value_has_its_place() -> None:
    text = """\
name: "a b"   # note
model: {width: 128, sizes: [1, .5]}
levels:
- pre
- kind: post
  x: 1 # note
- - deep
more: &more
  # note
  on:
  last: *more_
text: |- # note
  line
quoted: &q 'one
  two'
pairs: [a: 1, b]
""".replace("*more_", "~")
    document = parse(text, "x.yaml")
    places: dict[Place, str] = {path: text_at(document, span) for path, span in document.values.items()}
    assert places == {
        (): 'name: "a b"',
        ("name",): '"a b"',
        ("model",): "{width: 128, sizes: [1, .5]}",
        ("model", "width"): "128",
        ("model", "sizes"): "[1, .5]",
        ("model", "sizes", 0): "1",
        ("model", "sizes", 1): ".5",
        ("levels",): "- pre",
        ("levels", 0): "pre",
        ("levels", 1): "kind: post",
        ("levels", 1, "kind"): "post",
        ("levels", 1, "x"): "1",
        ("levels", 2): "- deep",
        ("levels", 2, 0): "deep",
        ("more",): "on:",
        ("more", "on"): "",
        ("more", "last"): "~",
        ("text",): "|-",
        ("quoted",): "'one",
        ("pairs",): "[a: 1, b]",
        ("pairs", 0): "a: 1",
        ("pairs", 0, "a"): "1",
        ("pairs", 1): "b",
    }
    assert document.values["more", "on"] == Span(10, 6, 6)
    assert {path: text_at(document, span) for path, span in document.keys.items()} == {
        path: path[-1] for path in places if path and isinstance(path[-1], str)
    }


@pytest.mark.parametrize(
    ("text", "path", "place"),
    [
        ("a: {b: 1,\n  c: 2}", ("a",), "{b: 1"),
        ("a: [\n  1]", ("a",), "["),
        ("a: &x [1, 2]", ("a",), "[1, 2]"),
        ("a: &x {b: 1}", ("a",), "{b: 1}"),
        ("a: &x\n- 1\n- 2", ("a",), "- 1"),
        ("a: &x\n  - 1\n  - 2", ("a",), "- 1"),
        ("a: &x # note\n  1", ("a",), "1"),
        ("a: &x", ("a",), "&x"),
        ("a: >2+ # note\n   x\n", ("a",), ">2+"),
        ("a: one\n  two", ("a",), "one"),
        ("a: [ ? b : 1 ]", ("a", 0), "? b : 1"),
        ("a: &x {b: 1}\nc:   *x", ("c",), "*x"),
        ("a: &x {b: 1}\nc:   *x", ("c", "b"), "1"),
    ],
)
def test_the_place_of_what_goes_on_is_in_its_first_line(text: str, path: Place, place: str) -> None:
    document = parse(text, "x.yaml")
    assert text_at(document, document.values[path]) == place


def test_a_path_that_is_absent_has_the_place_of_what_is_around_it() -> None:
    document = parse("name: x\nobjective: {metric: val/loss}\nlevels: [a, b]\n", "x.yaml")
    assert document.at(("objective", "metric")) == Span(2, 21, 29)
    assert document.at(("objective", "metric"), key=True) == Span(2, 13, 19)
    assert document.at(("objective", "goal")) == Span(2, 12, 30)
    assert document.at(("objective", "goal", 0, "x"), key=True) == Span(2, 1, 10)
    assert document.at(("levels", 1), key=True) == document.at(("levels", 1)) == Span(3, 13, 14)
    assert document.at(("levels", 7)) == Span(3, 9, 15)
    assert document.at(()) == document.at(("nothing",)) == document.at((), key=True) == Span(1, 1, 8)


def test_a_diagnostic_about_a_path_shows_its_line() -> None:
    document = parse("name: x\nobjective: {metric: val/loss, gaol: min}\n", "norm.yaml")
    path = ("objective", "gaol")
    shown = document.diagnose("S101", "unknown key `gaol` in `objective`", path, key=True, help="did you mean `goal`?")
    assert str(shown) == (
        "error[S101]: unknown key `gaol` in `objective`\n"
        " --> norm.yaml:2:31\n"
        "2 | objective: {metric: val/loss, gaol: min}\n"
        "  |                               ^^^^\n"
        "  = help: did you mean `goal`?"
    )
    assert document.diagnose("S102", "m", path).span == Span(2, 37, 40)


# Warnings


@pytest.mark.parametrize(
    ("text", "message", "help"),
    [
        ("010", "`010` is read as 10", "write `10`, or `0o10` for the octal number"),
        ("-007", "`-007` is read as -7", "write `-7`, or `0o7` for the octal number"),
        ("+08", "`+08` is read as 8", "write `8`"),
        ("00", "`00` is read as 0", "write `0`, or `0o0` for the octal number"),
    ],
)
def test_a_leading_zero_is_a_warning(text: str, message: str, help: str) -> None:
    document = parse(f"a: {text} # note", "x.yaml")
    span = Span(1, 4, 4 + len(text))
    assert document.warnings == (Diagnostic("W010", message, "x.yaml", span, f"a: {text} # note", help),)


def test_what_is_usual_gives_no_warning() -> None:
    assert parse("a: [0, -0, 0.5, 00.5, 0x0, 0o7, '010', 10, on, 1_000, 12:30]", "x.yaml").warnings == ()


# Errors: the exact text of each code


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "name: \x1b[31m",
            "error[Y003]: the character U+001B cannot stand in a YAML file\n"
            " --> x.yaml:1:7\n"
            "1 | name: \ufffd[31m\n"
            "  |       ^\n"
            '  = help: remove it, or write it as "\\x1b" inside double quotes',
        ),
        (
            "a: &a [1, 2]\nb: [" + "*a, " * 3333 + "]",
            "error[Y005]: the file has more than 10,000 keys and values, once every alias is expanded\n"
            " --> x.yaml:2:13329\n"
            "2 | …" + "*a, " * 12 + "]\n"
            "  |  " + " " * 40 + "^^\n"
            "  = help: use fewer aliases, or fewer values",
        ),
        (
            "a:\n" + "- " * 100,
            "error[Y006]: values are nested deeper than 100 levels\n"
            " --> x.yaml:2:199\n"
            "2 | …" + "- " * 20 + "-\n"
            "  |  " + " " * 40 + "^\n"
            "  = help: is a bracket left open?",
        ),
        ("", "error[Y007]: the file is empty\n --> x.yaml\n  = help: `ablate init` writes a first experiment"),
        (
            "# a: 1\n",
            "error[Y007]: the file holds nothing but comments\n"
            " --> x.yaml\n"
            "  = help: `ablate init` writes a first experiment",
        ),
        (
            "a: 1\n---\nb: 2\n",
            "error[Y008]: a second document begins here\n"
            " --> x.yaml:2:1\n"
            "2 | ---\n"
            "  | ^^^\n"
            "  = help: one file is one experiment: split the file",
        ),
        (
            "- a\n- b\n",
            "error[Y009]: a file is a mapping of keys to values, and this is a list\n"
            " --> x.yaml:1:1\n"
            "1 | - a\n"
            "  | ^^^\n"
            "  = help: begin with `name: ...`",
        ),
        (
            "name:quickstart",
            "error[Y009]: a file is a mapping of keys to values, and this is text\n"
            " --> x.yaml:1:1\n"
            "1 | name:quickstart\n"
            "  | ^^^^^^^^^^^^^^^\n"
            "  = help: put a space after the `:`",
        ),
        (
            "question: Norm: pre or post?\n",
            "error[Y010]: a value cannot begin at this `:`\n"
            " --> x.yaml:1:15\n"
            "1 | question: Norm: pre or post?\n"
            "  |               ^\n"
            "  = help: put a text that has `: ` in it in quotes",
        ),
        (
            "task:\n\tkind: text\n",
            "error[Y011]: a tab cannot indent\n"
            " --> x.yaml:2:1\n"
            "2 |     kind: text\n"
            "  | ^^^^\n"
            "  = help: indent with spaces",
        ),
        (
            "seeds: 3\nname: x\n'seeds': 6\n",
            "error[Y012]: the key `seeds` is given twice, on lines 1 and 3\n"
            " --> x.yaml:3:1\n"
            "3 | 'seeds': 6\n"
            "  | ^^^^^^^\n"
            "  = help: keep one of the two",
        ),
        (
            "a: {b: 1, b: 2}",
            "error[Y012]: the key `b` is given twice, on line 1, at columns 5 and 11\n"
            " --> x.yaml:1:11\n"
            "1 | a: {b: 1, b: 2}\n"
            "  |           ^\n"
            "  = help: keep one of the two",
        ),
        (
            "levels: {2: x}",
            "error[Y013]: the key `2` is a number, not text\n"
            " --> x.yaml:1:10\n"
            "1 | levels: {2: x}\n"
            "  |          ^\n"
            '  = help: write `"2"`',
        ),
        (
            "a: {[1]: 2}",
            "error[Y013]: a list cannot be a key\n"
            " --> x.yaml:1:5\n"
            "1 | a: {[1]: 2}\n"
            "  |     ^^^\n"
            "  = help: a key is text",
        ),
        (
            "a: {: 2}",
            "error[Y013]: a key is missing before this `:`\n"
            " --> x.yaml:1:5\n"
            "1 | a: {: 2}\n"
            "  |     ^\n"
            "  = help: write `key: value`",
        ),
        (
            "a: &x {b: 1}\nc: {<<: *x}\n",
            "error[Y014]: YAML 1.2 has no merge key `<<`\n"
            " --> x.yaml:2:5\n"
            "2 | c: {<<: *x}\n"
            "  |     ^^\n"
            "  = help: repeat the keys, or put what is shared in the file that `extends:` names",
        ),
        (
            "a: &x !!python/object:os.system 1\n",
            "error[Y015]: `!!python/object:os.system` is a tag\n"
            " --> x.yaml:1:7\n"
            "1 | a: &x !!python/object:os.system 1\n"
            "  |       ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
            "  = help: remove it: a plain value is a number, true, false or null by itself, and text in quotes",
        ),
        (
            "a: &shared 1\nb: *shard\n",
            "error[Y016]: no anchor `&shard` stands before this alias\n"
            " --> x.yaml:2:4\n"
            "2 | b: *shard\n"
            "  |    ^^^^^^\n"
            "  = help: did you mean `*shared`?",
        ),
        (
            "a: &x [1, *x]",
            "error[Y017]: the alias `*x` stands inside what it repeats, which would never end\n"
            " --> x.yaml:1:11\n"
            "1 | a: &x [1, *x]\n"
            "  |           ^^\n"
            "  = help: write out the values that are meant",
        ),
        (
            "lr: 1e-999",
            "error[Y018]: the number `1e-999` is out of range\n"
            " --> x.yaml:1:5\n"
            "1 | lr: 1e-999\n"
            "  |     ^^^^^^\n"
            "  = help: numbers go from 5e-324 to about 1.8e308; infinity is `.inf`",
        ),
        (
            'a: "\\ud83d"',
            "error[Y019]: an escape in this text is half of a character\n"
            " --> x.yaml:1:4\n"
            '1 | a: "\\ud83d"\n'
            "  |    ^^^^^^^^\n"
            '  = help: write the whole character, or its code: "\\U0001f642"',
        ),
    ],
)
def test_an_error_shows_the_place_and_the_remedy(text: str, shown: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, "x.yaml")
    assert str(caught.value) == shown


# What the reader makes of PyYAML's complaints: the place, the message, the remedy.
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


def test_all_errors_are_told_at_once_in_the_order_of_the_file() -> None:
    text = "a: !!int 1\nb: {c: 1, c: 2, 1: 3, <<: 4}\na: 5\nd: *none\ne: [1e999, '\\ud83d', \"\\ud83d\"]\nf: [1, !x y\n"
    assert [(d.code, d.span and d.span.line) for d in errors(text)] == [
        ("Y015", 1), ("Y012", 2), ("Y013", 2), ("Y014", 2), ("Y012", 3), ("Y016", 4), ("Y018", 5), ("Y019", 5),
        ("Y010", 6), ("Y015", 6),
    ]  # fmt: skip


def test_an_alias_that_is_a_key_and_unknown_is_one_error() -> None:
    assert [d.code for d in errors("*x : 1\n*y : 2\n")] == ["Y016", "Y016"]


def test_a_key_given_three_times_is_two_errors() -> None:
    assert [d.message for d in errors("a: 1\na: 2\na: 3\n")] == [
        "the key `a` is given twice, on lines 1 and 2",
        "the key `a` is given twice, on lines 1 and 3",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("true: 1", "the key `true` is true or false, not text"),
        ("null: 1", "the key `null` is null, not text"),
        ("1e-3: 1", "the key `1e-3` is a number, not text"),
        ("? {a: 1}\n: 1", "a mapping cannot be a key"),
        ("0" * 41 + ": 1", f"the key `{'0' * 39}…` is a number, not text"),
        ("?\n: 1", "a key is missing before this `:`"),
        ("a: {? , b: 1}", "a key is missing before this `:`"),
    ],
)
def test_a_key_that_is_not_text_says_what_it_is(text: str, message: str) -> None:
    assert [(d.code, d.message) for d in errors(text)] == [("Y013", message)]


@pytest.mark.parametrize("text", ["<<", "- a", "12", "true", "null", "~", "'text'", "''", "---\n", "--- # x\n...\n"])
def test_a_file_that_is_no_mapping_is_an_error(text: str) -> None:
    (diagnostic,) = errors(text)
    assert diagnostic.code == ("Y007" if text.startswith("---") else "Y009")


def test_a_message_shows_nothing_that_cannot_be_seen_and_nothing_endless() -> None:
    (first, second) = errors(f'a: {{"x\\ny": 1, "x\\ny": 2}}\nb: !{"t" * 100} 1\n')
    assert first.message == "the key `x\\ny` is given twice, on line 1, at columns 5 and 16"
    assert second.message == f"`!{'t' * 38}…` is a tag"


@pytest.mark.parametrize("text", ["1" * 310, "-" + "9" * 5000, "1e309", "-1e999", "0x" + "f" * 300, "1e-324", "1e-999"])
def test_a_number_that_no_float_can_hold_is_an_error(text: str) -> None:
    assert [d.code for d in errors(f"a: {text}")] == ["Y018"]
    with pytest.raises(OverflowError):
        resolve(text)


def test_zeros_are_no_underflow_and_may_be_many() -> None:
    assert data(f"a: [0e-999, 0.000, -0.0e5, {'0' * 5000}7]") == {"a": [0.0, 0.0, -0.0, 7]}


# Limits


def test_there_may_be_10_000_values_and_no_more() -> None:
    assert len(data("a: [" + "1, " * 9_997 + "]")["a"]) == 9_997
    assert [d.code for d in errors("a: [" + "1, " * 9_998 + "]")] == ["Y005"]


def test_aliases_are_counted_before_they_are_expanded() -> None:
    laughs = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 40))
    started = time.monotonic()
    (diagnostic,) = errors("a0: &a0 [x, x]\n" + laughs)
    assert diagnostic.code == "Y005" and time.monotonic() - started < 2


def test_there_may_be_100_levels_and_no_more() -> None:
    assert data("a: " + "[" * 99 + "]" * 99)["a"]
    assert [d.code for d in errors("a: " + "[" * 100 + "]" * 100)] == ["Y006"]
    chain = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 120))
    (diagnostic,) = errors(chain)
    assert diagnostic.code == "Y006" and diagnostic.span == Span(100, 12, 16)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "&a [", "!t [", "[? "])
def test_deep_nesting_is_no_crash(opening: str) -> None:
    assert errors(opening * 100_000)[-1].code == "Y006"


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "x" * 500_000, "#" * 500_000, "a:" + " " * 500_000, "\n" * 500_000, "\t\n" * 200_000,
        "a: " + ":" * 500_000, "a: x" + "\t" * 500_000, "a: '" + "\n" * 500_000, "a: [" + "!x y, " * 4_000 + "]",
        "a: 1\n" * 4_000, "a: [" + "".join(f"&a{i} x, *b{i}, " for i in range(4_000)) + "]",
        "&" + "a" * 500_000, "a: &x" + " #\n" * 100_000, "a: " + " ?" * 250_000, "a: " + " :a" * 150_000, "}" * 500_000,
        "a: " + ("'" + " " * 500) * 1_000,
    ],
    ids=lambda text: text[:6],
)  # fmt: skip
def test_a_large_file_is_read_or_refused_in_a_short_time(text: str) -> None:
    started = time.monotonic()
    try:
        parse(text, "x.yaml")
    except InputError as error:
        assert str(error)
    assert time.monotonic() - started < 20


# Files


def test_a_file_is_shown_by_the_name_that_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text("name: é\n", encoding="utf-8")
    document = read(Path("a.yaml"))
    assert (document.file, document.text, document.data) == ("a.yaml", "name: é\n", {"name": "é"})


def test_a_missing_file_names_the_one_that_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as alone:
        read(Path("quickstart.yaml"))
    assert str(alone.value) == "error[Y001]: there is no such file\n --> quickstart.yaml"
    for name in ("placement.yaml", "quickstart.yml", "b.yaml", "a.yaml", "notes.txt"):
        Path(name).touch()
    with pytest.raises(InputError) as close:
        read(Path("quickstart.yaml"))
    assert str(close.value) == (
        "error[Y001]: there is no such file\n --> quickstart.yaml\n  = help: did you mean `quickstart.yml`?"
    )
    with pytest.raises(InputError) as far:
        read(tmp_path / "zzz")
    assert far.value.diagnostics[0].help == "in that folder: a.yaml, b.yaml, placement.yaml and 1 more"


def test_a_folder_is_not_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grids").mkdir()
    Path("grids/a.yaml").touch()
    with pytest.raises(InputError) as caught:
        read(Path("grids"))
    assert str(caught.value) == (
        "error[Y001]: this is a folder, not a file\n --> grids\n  = help: in that folder: a.yaml"
    )


def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop.yaml").symlink_to("loop.yaml")
    for path, message in {
        "loop.yaml": "the file cannot be read: too many levels of symbolic links",
        "x" * 300 + ".yaml": "the file cannot be read: file name too long",
        "a\0b": "the file cannot be read: embedded null byte",
    }.items():
        with pytest.raises(InputError) as caught:
            read(Path(path))
        assert [(d.code, d.message) for d in caught.value.diagnostics] == [("Y001", message)]

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError) as refused:
        read(Path("a.yaml"))
    assert str(refused.value) == "error[Y001]: the file cannot be read: permission denied\n --> a.yaml"


def test_a_file_that_is_not_utf_8_names_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("latin.yaml").write_bytes("name: ok\r\nquestion: é\r\n".encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read(Path("latin.yaml"))
    assert str(caught.value) == (
        "error[Y002]: line 2 is not UTF-8 text: the byte 0xE9\n"
        " --> latin.yaml:2:11\n"
        "2 | question: \ufffd\n"
        "  |           ^\n"
        "  = help: save the file as UTF-8"
    )
    Path("wide.yaml").write_text("name: ok\n", encoding="utf-16")
    with pytest.raises(InputError) as wide:
        read(Path("wide.yaml"))
    assert wide.value.diagnostics[0].help == "the file is UTF-16: save it as UTF-8"


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("big.yaml").write_bytes(b"\xff" * (MAX_BYTES + 1))
    with pytest.raises(InputError) as caught:
        read(Path("big.yaml"))
    assert str(caught.value) == (
        "error[Y004]: the file is larger than 1 MiB, so it is no experiment\n"
        " --> big.yaml\n"
        "  = help: an experiment takes a few kB: was another file meant?"
    )
    assert [d.code for d in errors("#" * (MAX_BYTES + 1))] == ["Y004"]


# Numbers that were meant


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1_000", "1000"), ("1_000.5", "1000.5"), ("0x_FF", "0xFF"), ("1,000", "1000"), ("1,000,000.5", "1000000.5"),
        ("0,5", "0.5"), ("-1,25", "-1.25"), ("12:30", "750"), ("1:00:00", "3600"), ("-1:30", "-90"), ("0b101", "5"),
        ("-0x1F", "-31"), ("+0o17", "15"), ("0XFF", "255"), ("0b_1", "1"), ("inf", ".inf"), ("-Infinity", "-.inf"),
        ("NaN", ".nan"), ("-.nan", ".nan"), ("10^-3", "1e-3"), ("10**6", "1e6"), ("\u22121e-3", "-1e-3"),
        ("10k", "10000"), ("2M", "2000000"), (" 3 ", "3"), ("1e-3", "1e-3"), ("010", "010"), (".5e3", ".5e3"),
    ],
)  # fmt: skip
def test_a_text_that_was_meant_as_a_number_gives_its_spelling(text: str, number: str) -> None:
    assert looks_like_number(text) == number
    assert isinstance(resolve(number), int | float)


@pytest.mark.parametrize(
    "text",
    ["", " ", "on", "true", "null", "2024-01-01", "1.2.3", "pre", "e", "-", "_", ".", "0b12", "0x", "12:99", "1,00,000",
     "20m", "20GiB", "1%", "1" + ":1" * 5000, "nano", "info", "10^x", "1e999", "1" * 400, "1_" * 400, "k", "²", "１２"],
)  # fmt: skip
def test_a_text_that_was_not_meant_as_a_number_gives_none(text: str) -> None:
    assert looks_like_number(text) is None


@given(st.text("0123456789+-_.,:eExXoObBkM^*infa \u2212", max_size=12))
def test_the_spelling_of_a_number_is_always_a_number(text: str) -> None:
    number = looks_like_number(text)
    assert number is None or (isinstance(resolve(number), int | float) and looks_like_number(number) == number)


# Against another implementation of YAML 1.2

WORDS = r"""
    null Null NULL nULL ~ ~~ none None NONE nil N/A na nan NaN inf Inf infinity Infinity true True TRUE tRUE false
    False FALSE fALSE yes Yes YES no No NO on On ON off Off OFF y Y n N t f 0 1 -1 +1 7 42 -0 +0 00 007 010 -010
    +010 08 09 0123 0128 123456789012345678901234567890 9223372036854775808 0o7 0o17 0o0 0o8 0O7 -0o7 +0o7 0o 0x1F
    0xff 0xFF 0X1F 0xg 0x -0x1F +0x1F 0b1 0b101 -0b1 0b2 1_000 1__0 _1 1_ 1_000.5 1_0e3 0x_FF 0x1_F 0o1_7 0_0 0o_7
    0b_1 1,000 0xFFFFFFFFFFFFFFFFFF 1.0 1. .5 0.5 -.5 +.5 -1.5 +1.5 . .. 1.2.3 01.5 00.5 1.e3 1.e-3 .5e3 .5e-3 .5e+3
    1.5e 1e 1e+ e5 1e3 1E3 1e-3 1E-3 1e+3 1.0e-3 1.0e3 1.5E+3 -1e-3 +1e-3 1e05 1e-05 0e0 1e308 1e309 -1e309 1e-400
    1e-323 4.9e-324 .inf .Inf .INF .iNF -.inf -.Inf +.inf +.INF .nan .NaN .NAN .Nan -.nan +.nan .infinity 12:30 1:00
    190:20:30 12:30:45 1:2 12:61 -1:30 1:30.5 20:30 2024-01-01 2024-1-1 2024-01-01T00:00:00Z 2024-13-01 24-01-01
    2001-12-14t21:59:43.10-05:00 2024 2024-01 << = <<< == - -- a-b -a ?a :a a:b a#b a'b it's a"b http://x.org/y C:\x
    a\nb 'on' "on" '1' "1" '' "" 'it''s' "a\tb" "\u263a" "\x41" "\/" "\ud83d\ude42" "\e" "\N" '~' "null" '1e-3' []
    {} [1] {a:1} {"a":1} [a,b] !!str !!int * *a & > | @a `a` %a a% 1% 20m 20GiB 30s 1k 1K 5M 3h 1/2 1e3.5 1e-3x x1 ä
    ü☺ 中文 １２ ١٢ −1 ½ ∞ /pre/ pre/post a.b model.placement $x ${x} (a) a|b a>b a,b a&b a*b a!b _ __ ~a a~ !a 1a 1.a
    a1 1.1.1 1..2 +.e3 e E 1e1e1 +-1 --1 -+1 ++1 + 0. -0. 0.0 -0.0 .0 -.0 +.0 0.0e0 00.0
"""
SCALARS = [
    *WORDS.split(),
    "", "1\u00a0", "\u00a01", "a\u200bb", "a b", "1 2", "on off", "a: b", "a :b", "true x", "? a",
    "2001-12-14 21:59:43", "1 000", "a  b", "a\tb", "1\t", "1\t# note",
]  # fmt: skip
CONTEXTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "value": ("a: {}\n", lambda root: root["a"]),
    "item": ("a:\n- {}\n", lambda root: root["a"][0]),
    "key": ("{}: 1\n", lambda root: next(iter(root))),
}
# Where the two differ on purpose: the name, the reason, the scalars and what becomes of them here. A key is one more.
DIFFERENCES: dict[str, tuple[str, set[str], str]] = {
    "underscores": (
        "the core schema has no digits in groups; 1_000 as a number is YAML 1.1",
        {"1_000", "1__0", "1_", "1_000.5", "1_0e3", "0x_FF", "0x1_F", "0o1_7", "0_0", "0o_7", "0b_1"},
        "text",
    ),
    "binary": ("the core schema has no binary numbers", {"0b1", "0b101", "-0b1"}, "text"),
    "signs": ("the core schema has no sign before 0o and 0x", {"-0o7", "+0o7", "-0x1F", "+0x1F"}, "text"),
    "exponents": ("the sign of an exponent may be left out after .5 as after 0.5", {".5e3"}, "number"),
    "dates": (
        "the core schema has no dates, and one that is in no calendar is no error",
        {"2024-01-01", "2024-01-01T00:00:00Z", "2024-13-01", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43"},
        "text",
    ),
    "range": ("an overflow or underflow is an error and no silent .inf or 0", {"1e309", "-1e309", "1e-400"}, "Y018"),
    "special": ("<< and = are text where they are values; YAML 1.1 gave them a meaning", {"<<", "="}, "text"),
    "surrogates": ("a pair of JSON's escapes is one character", {'"\\ud83d\\ude42"'}, "text"),
    "tags": ("a tag is an error, a standard one too", {"!!str"}, "Y015"),
    "tabs": ("YAML 1.2 lets a tab separate, and stand inside of text", {"a\tb"}, "text"),
    "tabs around numbers": ("YAML 1.2 lets a tab separate", {"1\t", "1\t# note"}, "number"),
}
# A key that is not text, or is missing, is an error that says how to write it, and so is one that is out of range.
KEYS = ("Y013", "Y018")


def ours(scalar: str, context: str) -> str:
    """What Ablate makes of the scalar: its type and value, or the code of the error."""
    template, pick = CONTEXTS[context]
    try:
        return typed(pick(data(template.replace("{}", scalar, 1))))
    except InputError as error:
        return error.diagnostics[0].code


def theirs(scalar: str, context: str) -> str:
    """What ruamel.yaml makes of it; it lets Python's own errors through for some."""
    template, pick = CONTEXTS[context]
    try:
        return typed(pick(YAML(typ="safe", pure=True).load(template.replace("{}", scalar, 1))))
    except (YAMLError, ValueError, IndexError, TypeError):
        return "error"


def kind(outcome: str) -> str:
    """``text``, ``number``, or the code of an error."""
    return {"str": "text", "int": "number", "float": "number"}.get(outcome.partition(" ")[0], outcome)


def test_the_differential_test_covers_enough() -> None:
    assert len(SCALARS) >= 200
    assert {scalar for _, scalars, _ in DIFFERENCES.values() for scalar in scalars} <= set(SCALARS)


@pytest.mark.parametrize("context", CONTEXTS)
def test_scalars_read_as_in_another_reader_of_yaml_1_2_but_for_what_is_listed(context: str) -> None:
    found: dict[str, set[str]] = {name: set() for name in DIFFERENCES}
    unexplained = {}
    for scalar in SCALARS:
        here, there = ours(scalar, context), theirs(scalar, context)
        if here == there or (re.fullmatch(r"Y\d+", here) and there == "error"):
            continue
        name = next((name for name, (_, scalars, _) in DIFFERENCES.items() if scalar in scalars), None)
        if context == "key" and here in KEYS and kind(there) not in ("text", "error"):
            continue
        if name and kind(here) in (DIFFERENCES[name][2], *(KEYS if context == "key" else ())):
            found[name].add(scalar)
        else:
            unexplained[scalar] = (here, there)
    assert unexplained == {}
    if context != "key":
        # A difference that is listed and no longer there would hide the next one.
        assert found == {name: scalars for name, (_, scalars, _) in DIFFERENCES.items()}


# Anything that JSON can say

BREAKS = "\x85\u2028\u2029"
KEPT = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn")) | st.sampled_from("\t\n\r\ufeff" + BREAKS)
TEXTS = st.text(KEPT, max_size=20) | st.sampled_from([scalar for scalar in SCALARS if scalar.isascii()])


def is_plain(text: str) -> bool:
    """Whether a text means the same, without quotes, to the writers below, which write YAML 1.1 in part."""
    try:
        # ruamel.yaml writes the key "? x" without quotes, and so as the key "x".
        return isinstance(resolve(text), str) and set(BREAKS).isdisjoint(text) and not text.startswith("? ")
    except OverflowError:
        return False


PLAIN = st.text(KEPT, max_size=20).filter(is_plain) | st.sampled_from([
    scalar for scalar in SCALARS if scalar.isascii() and is_plain(scalar)
])  # fmt: skip


def documents(texts: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Anything that JSON can say, with these texts."""
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.integers(-(10**300), 10**300)
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts
    )
    values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5))
    return st.dictionaries(texts, values, min_size=1, max_size=5)


@settings(deadline=None)
@given(documents(TEXTS), st.booleans(), st.sampled_from([None, 0, 2]))
def test_json_is_read_as_it_was_written_and_every_place_holds_its_value(
    value: dict[str, Any], ascii: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    document = parse(text, "x.json")
    assert json.dumps(document.data) == json.dumps(value)

    def check(value: object, path: Place) -> None:
        if indent is None or not isinstance(value, dict | list):
            assert json.dumps(json.loads(text_at(document, document.values[path]))) == json.dumps(value)
        if path and isinstance(path[-1], str):
            assert json.loads(text_at(document, document.keys[path])) == path[-1]
        children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, child in children:
            check(child, (*path, name))

    check(value, ())


@settings(deadline=None, max_examples=40)
@given(documents(PLAIN), st.sampled_from([None, False, True]), st.booleans())
def test_yaml_is_read_as_it_was_written(value: dict[str, Any], flow: bool | None, unicode: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=unicode, sort_keys=False)
    assert json.dumps(data(text)) == json.dumps(value)


@settings(deadline=None, max_examples=40)
@given(documents(PLAIN))
def test_yaml_is_read_as_another_writer_wrote_it(value: dict[str, Any]) -> None:
    writer, stream = YAML(typ="safe", pure=True), io.StringIO()
    writer.width = 10**6  # it would break a key into two lines, which PyYAML does not read
    writer.dump(value, stream)
    assert json.dumps(data(stream.getvalue()), sort_keys=True) == json.dumps(value, sort_keys=True)


PIECES = st.sampled_from([
    "- ", "a: ", "b:", "\n", "\n  ", "\r\n", "\t", "---\n", "...\n", "&a ", "*a", "<<: ", "!!str ", "!", '"', "'", "\\",
    "\\u", "\\UFFFFFFFF", "%YAML 1.2\n", "%TAG ! x\n", "|", ">-\n", " #", "? ", ": ", ",", "[", "]", "{", "}", "@", "`",
    "1e999", "010", "\ufeff", "\x85", "\u2028", "\0", "\x1b", "\ud800", "x", " ",
])  # fmt: skip


@settings(deadline=5000, max_examples=500)
@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=50) | st.text("a:- \n[]{}&*!'\"#|\t", max_size=40))
def test_any_text_is_read_or_refused_with_places_that_exist(text: str) -> None:
    spans: list[Span | None] = []
    try:
        document = parse(text, "x.yaml")
        spans = [*document.keys.values(), *document.values.values()]
        for path, span in document.keys.items():
            assert text_at(document, span).strip() and path in document.values
    except InputError as error:
        spans = [diagnostic.span for diagnostic in error.diagnostics]
        assert all(re.fullmatch(r"Y\d{3}", diagnostic.code) for diagnostic in error.diagnostics)
        str(error).encode()
    lines = re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))
    for place in spans:
        if place is not None:
            assert 1 <= place.line <= len(lines)
            assert 1 <= place.column <= place.end <= len(lines[place.line - 1]) + 2


@settings(deadline=5000)
@given(content=st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    try:
        assert read(path).text.encode() == content.removeprefix(b"\xef\xbb\xbf")
    except InputError as error:
        str(error).encode()
