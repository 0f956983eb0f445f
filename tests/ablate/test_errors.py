"""Diagnostics as the command line shows them."""

from __future__ import annotations

import pickle
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.errors import AblateError, Diagnostic, InputError, RefusedError, Span


def diagnostic(source: str, column: int, end: int, line: int = 6) -> Diagnostic:
    return Diagnostic("S101", "a message", "norm.yaml", Span(line, column, end), source)


def excerpt(source: str, column: int, end: int) -> list[str]:
    """The two lines under the place: the source and its carets."""
    return str(diagnostic(source, column, end)).split("\n")[2:]


def test_a_diagnostic_shows_its_place_and_its_remedy() -> None:
    shown = Diagnostic(
        "S101",
        "unknown key `gaol` in `objective`",
        "norm.yaml",
        Span(6, 31, 35),
        "objective: {metric: val/loss, gaol: min}",
        "did you mean `goal`?",
    )
    assert str(shown) == (
        "error[S101]: unknown key `gaol` in `objective`\n"
        " --> norm.yaml:6:31\n"
        "6 | objective: {metric: val/loss, gaol: min}\n"
        "  |                               ^^^^\n"
        "  = help: did you mean `goal`?"
    )


def test_the_gutter_is_as_wide_as_the_line_number() -> None:
    shown = Diagnostic("W104", "a message", "norm.yaml", Span(120, 3, 4), "  x: 1", "first line\nsecond line")
    assert str(shown) == (
        "warning[W104]: a message\n"
        "   --> norm.yaml:120:3\n"
        "120 |   x: 1\n"
        "    |   ^\n"
        "    = help: first line\n"
        "            second line"
    )


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (Diagnostic("G003", "too many arms"), "error[G003]: too many arms"),
        (Diagnostic("G003", "too many", help="fewer"), "error[G003]: too many\n  = help: fewer"),
        (Diagnostic("Y001", "no such file", "a.yaml"), "error[Y001]: no such file\n --> a.yaml"),
        (Diagnostic("Y001", "m", "a.yaml", help="h"), "error[Y001]: m\n --> a.yaml\n  = help: h"),
        (Diagnostic("Y001", "m", "a.yaml", Span(3, 7, 9)), "error[Y001]: m\n --> a.yaml:3:7"),
        (Diagnostic("Y001", "m", "a.yaml", Span(3, 1, 1), ""), "error[Y001]: m\n --> a.yaml:3:1\n3 |\n  | ^"),
    ],
)
def test_what_is_not_known_is_left_out(shown: Diagnostic, text: str) -> None:
    assert str(shown) == text


def test_a_place_without_a_character_has_one_caret() -> None:
    assert excerpt("metric:", 8, 8) == ["6 | metric:", "  |        ^"]


def test_a_tab_is_four_columns_in_the_source_and_under_it() -> None:
    assert excerpt("\tlr:\t1", 6, 7) == ["6 |     lr:    1", "  |            ^"]
    assert excerpt("\tlr: 1", 1, 2) == ["6 |     lr: 1", "  | ^^^^"]


def test_wide_characters_have_two_carets_and_combining_ones_none() -> None:
    assert excerpt("名前: 規範 x", 5, 7) == ["6 | 名前: 規範 x", "  |       ^^^^"]
    assert excerpt("e\u0301: x", 5, 6) == ["6 | e\u0301: x", "  |    ^"]


def test_nothing_from_the_file_can_steer_the_terminal() -> None:
    shown = excerpt("a: \x1b[31m\u202e\x00\ud800 x", 13, 14)
    assert shown == ["6 | a: \ufffd[31m\ufffd\ufffd\ufffd x", "  |             ^"]
    shown[0].encode()


def test_nothing_in_a_message_can_steer_the_terminal_or_begin_a_line() -> None:
    shown = Diagnostic("S102", "no norm is called `la\nyer\x1b[31m\ud800`", "a\n.yaml", help="one\ntwo\x00")
    assert str(shown) == (
        "error[S102]: no norm is called `la\\nyer\\x1b[31m\\ud800`\n --> a\\n.yaml\n  = help: one\n          two\\x00"
    )


def test_a_long_line_is_cut_around_the_place() -> None:
    source, carets = excerpt("a" * 5000 + "HERE" + "b" * 5000, 5001, 5005)
    assert source == "6 | …" + "a" * 40 + "HERE" + "b" * 76 + "…"
    assert carets == "  | " + " " * 41 + "^^^^"


def test_a_cut_line_has_no_mark_of_a_cut_at_its_own_ends() -> None:
    assert excerpt("HERE" + "b" * 500, 1, 5)[0] == "6 | HERE" + "b" * 116 + "…"
    assert excerpt("b" * 500 + "HERE", 501, 505) == ["6 | …" + "b" * 40 + "HERE", "  | " + " " * 41 + "^^^^"]
    assert excerpt("b" * 120, 120, 121)[0] == "6 | " + "b" * 120


def test_a_place_in_wide_text_stays_in_sight_when_the_line_is_cut() -> None:
    source, carets = excerpt("規" * 100 + "x", 101, 102)
    assert source == "6 | …" + "規" * 40 + "x"
    assert carets == "  | " + " " * 81 + "^"


@given(st.text(st.characters(codec="utf-8")), st.integers(1, 300), st.integers(0, 300))
def test_carets_are_under_the_text_that_they_mean(source: str, column: int, length: int) -> None:
    text = str(diagnostic(source.replace("\n", " "), column, column + length))
    lines = text.split("\n")
    assert len(lines) == 4
    assert set(lines[3]) <= set("  |^")
    assert "^" in lines[3]
    width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in lines[2])
    assert width >= 3
    assert len(lines[3]) <= 4 + 124


def test_the_text_of_an_input_error_is_all_of_its_diagnostics() -> None:
    error = InputError([Diagnostic("Y012", "one"), Diagnostic("Y013", "two")])
    assert str(error) == "error[Y012]: one\n\nerror[Y013]: two"
    assert isinstance(error, AblateError)
    assert error.exit_code == 2


def test_an_input_error_survives_the_way_from_a_worker() -> None:
    error = pickle.loads(pickle.dumps(InputError([diagnostic("a: 1", 1, 2)])))
    assert error.diagnostics == (diagnostic("a: 1", 1, 2),)


def test_an_input_error_of_one_diagnostic() -> None:
    error = InputError.one("Y001", "no such file", file="a.yaml", help="look elsewhere")
    assert error.diagnostics == (Diagnostic("Y001", "no such file", "a.yaml", None, None, "look elsewhere"),)


def test_a_refusal_has_an_exit_code_of_its_own() -> None:
    assert issubclass(RefusedError, AblateError)
    assert RefusedError.exit_code == 3
