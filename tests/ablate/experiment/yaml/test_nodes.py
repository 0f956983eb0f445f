"""The place of every key and value, and what is said about one."""

from __future__ import annotations

import pytest

from ablate.errors import Diagnostic, Span
from ablate.experiment.reading import Place, parse
from tests.ablate.experiment.yaml.outcomes import errors, text_at


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
