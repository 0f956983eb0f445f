"""Scalars by YAML 1.2's core schema, also against another implementation, and the numbers that were meant."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from ablate.errors import InputError
from ablate.experiment.yaml.scalars import looks_like_number, resolve
from tests.ablate.experiment.yaml.outcomes import data, errors, typed
from tests.ablate.experiment.yaml.words import SCALARS


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


@pytest.mark.parametrize("text", ["1" * 310, "-" + "9" * 5000, "1e309", "-1e999", "0x" + "f" * 300, "1e-324", "1e-999"])
def test_a_number_that_no_float_can_hold_is_an_error(text: str) -> None:
    assert [d.code for d in errors(f"a: {text}")] == ["Y018"]
    with pytest.raises(OverflowError):
        resolve(text)


def test_zeros_are_no_underflow_and_may_be_many() -> None:
    assert data(f"a: [0e-999, 0.000, -0.0e5, {'0' * 5000}7]") == {"a": [0.0, 0.0, -0.0, 7]}


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


CONTEXTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "value": ("a: {}\n", lambda root: root["a"]),
    "item": ("a:\n- {}\n", lambda root: root["a"][0]),
    "key": ("{}: 1\n", lambda root: next(iter(root))),
}
# Where the two differ on purpose: the name, the reason, the scalars and what becomes of them here. A key is one more.
DIFFERENCES: dict[str, tuple[str, set[str], str]] = {
    "underscores": (
        "the core schema has no digits in groups; 1_000 as a number is YAML 1.1",
        {"1_000", "1__0", "1_", "1_000.5", "1_0e3", "0x_FF", "0x1_F", "0o1_7", "0_0", "0o_7", "0b_1", "0b_",
         "1__000", "1_e3", "1_.5", "1._5", "-1_000", "+1_000"},
        "text",
    ),
    "binary": ("the core schema has no binary numbers", {"0b1", "0b101", "-0b1"}, "text"),
    "signs": ("the core schema has no sign before 0o and 0x", {"-0o7", "+0o7", "-0x1F", "+0x1F"}, "text"),
    "exponents": ("the sign of an exponent may be left out after .5 as after 0.5", {".5e3", ".5E3"}, "number"),
    "dates": (
        "the core schema has no dates, and one that is in no calendar is no error",
        {"2024-01-01", "2024-01-01T00:00:00Z", "2024-13-01", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43",
         "0000-00-00", "9999-12-31", "2024-02-30", "2024-01-01 12:00:00 +01:00"},
        "text",
    ),
    "range": (
        "an overflow or underflow is an error and no silent .inf or 0",
        {"1e309", "-1e309", "1e-400", "1e99999", "1.7976931348623159e308", "2e-324", "0." + "0" * 400 + "1",
         "1" * 400 + ".5"},
        "Y018",
    ),
    "whole numbers": (
        "a whole number that no float can hold is an error too, since it may stand where a float is wanted",
        {"1" * 400, "-" + "1" * 400, "0x" + "f" * 300, "0o" + "7" * 400},
        "Y018",
    ),
    "special": ("<< and = are text where they are values; YAML 1.1 gave them a meaning", {"<<", "="}, "text"),
    "surrogates": ("a pair of JSON's escapes is one character", {'"\\ud83d\\ude42"'}, "text"),
    "tags": ("a tag is an error, a standard one too", {"!!str", "!!null", "!!int 1", "!"}, "Y015"),
    "tabs": ("YAML 1.2 lets a tab separate, and stand inside of text", {"a\tb"}, "text"),
    "tabs around numbers": ("YAML 1.2 lets a tab separate", {"1\t", "1\t# note"}, "number"),
}  # fmt: skip
# What differs as a value and not as a key: the other reader refuses a merge key and a lone tag, and tabs after a key.
NOT_AS_KEYS = {"<<", "=", "!!str", "!!null", "!", "1\t", "1\t# note"}


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
    assert len(set(SCALARS)) == len(SCALARS) >= 400
    listed = [scalar for _, scalars, _ in DIFFERENCES.values() for scalar in scalars]
    assert len(set(listed)) == len(listed)
    assert NOT_AS_KEYS <= set(listed) <= set(SCALARS)


@pytest.mark.parametrize("context", CONTEXTS)
def test_scalars_read_as_in_another_reader_of_yaml_1_2_but_for_what_is_listed(context: str) -> None:
    found: dict[str, set[str]] = {name: set() for name in DIFFERENCES}
    unexplained = {}
    for scalar in SCALARS:
        here, there = ours(scalar, context), theirs(scalar, context)
        as_value = kind(ours(scalar, "value"))
        if here == there or (re.fullmatch(r"Y\d+", here) and there == "error"):
            continue
        name = next((name for name, (_, scalars, _) in DIFFERENCES.items() if scalar in scalars), None)
        if name is None and context == "key" and here == "Y013" and as_value != "text":
            continue  # a key that is not text is an error that says how to write it
        expected = name and DIFFERENCES[name][2]
        if kind(here) == ("Y013" if context == "key" and expected == "number" else expected):
            found[name or ""].add(scalar)
        else:
            unexplained[scalar] = (here, there)
    assert unexplained == {}
    # A difference that is listed and no longer there would hide the next one.
    gone = NOT_AS_KEYS if context == "key" else set()
    assert found == {name: scalars - gone for name, (_, scalars, _) in DIFFERENCES.items()}


@pytest.mark.parametrize("scalar", SCALARS)
def test_a_key_is_text_where_the_value_is_and_else_an_error(scalar: str) -> None:
    as_value, as_key = ours(scalar, "value"), ours(scalar, "key")
    if kind(as_value) in ("number", "NoneType", "bool", "list", "dict"):
        # A comment instead of a key leaves nothing, or leaves the file without a mapping.
        assert as_key in (("Y007", "Y009") if "#" in scalar else ("Y013",))
    elif kind(as_value) == "text" and not scalar.startswith(("|", ">", "<<")):
        assert as_key == as_value
