"""Aliases, places that a collection brings about, and the limits."""

from __future__ import annotations

import time

import pytest

from ablate.errors import InputError, Span
from ablate.experiment.reading import Place, parse
from tests.ablate.experiment.yaml.outcomes import data, errors, text_at


def test_an_alias_gives_a_copy() -> None:
    values = data("a: &x {b: [1]}\nc: *x\n? d\n: *x\ne: &x 2\nf: *x\n")
    assert values == {"a": {"b": [1]}, "c": {"b": [1]}, "d": {"b": [1]}, "e": 2, "f": 2}
    values["a"]["b"].append(2)
    assert values["c"] == values["d"] == {"b": [1]}


def test_an_alias_may_be_a_key_if_it_is_text() -> None:
    assert data("a: &x name\n*x : 1\n") == {"a": "name", "name": 1}
    assert errors("a: &x 1\n*x : 1\n")[0].code == "Y013"


def test_an_alias_that_is_a_key_and_unknown_is_one_error() -> None:
    assert [d.code for d in errors("*x : 1\n*y : 2\n")] == ["Y016", "Y016"]


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


@pytest.mark.parametrize("text", ["<<", "- a", "12", "true", "null", "~", "'text'", "''", "---\n", "--- # x\n...\n"])
def test_a_file_that_is_no_mapping_is_an_error(text: str) -> None:
    (diagnostic,) = errors(text)
    assert diagnostic.code == ("Y007" if text.startswith("---") else "Y009")


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
