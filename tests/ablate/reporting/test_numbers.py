"""How numbers and levels are written."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.analysis.prose import decimals
from ablate.reporting import numbers
from ablate.reporting.numbers import digits, fixed, interval, level, missing, percent, plain, whole


@pytest.mark.parametrize(
    ("smallest", "places"),
    [
        (0.02, 3),
        (0.05, 3),
        (0.1, 2),
        (1, 1),
        (0.5, 2),
        (10, 0),
        (0.001, 4),
        (0, 4),
        (1e-9, 10),
        (1e-20, 12),
        (1e-320, 12),
        (1e300, 0),
        (math.inf, 4),
    ],
)
def test_decimals_show_the_smallest_effect_to_two_digits(smallest: float, places: int) -> None:
    assert decimals(smallest) == places


def test_fixed() -> None:
    assert fixed(1.68249, 3) == "1.682"
    assert fixed(0.0812, 3, sign=True) == "+0.081"
    assert fixed(-0.0004, 3, sign=True) == "+0.000"
    assert fixed(-0.0004, 3) == "0.000"
    assert fixed(-1.5, 1, sign=True) == "-1.5"
    assert fixed(1.25e300, 3) == "1.25e+300"
    assert fixed(-1234567890123.4, 3, sign=True) == "-1.23457e+12"
    assert fixed(9_999_999_999, 1) == "9999999999.0"
    assert [fixed(value, 3) for value in (None, math.nan, pd.NA, math.inf, -math.inf)] == [""] * 5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00031, "0.00031"), (0.00003, "3.0e-05"), (1.2e-7, "1.2e-07"), (0, "0"), (1.0, "1.0"), (12.34, "12"),
        (123456, "123456"), (1.5e9, "1.5e+09"), (-0.25, "-0.25"), (math.inf, "inf"), (math.nan, ""),
    ],
)  # fmt: skip
def test_two_digits(value: float, text: str) -> None:
    assert digits(value, 2) == text


def test_small_parts() -> None:
    assert percent(0.312) == "+31.2"
    assert whole(pd.NA) == ""
    assert whole(3.0) == "3"
    assert interval("+0.1", "+0.2") == "[+0.1, +0.2]"
    assert interval("", "+0.2") == ""
    assert numbers.big(163_840) == "163,840"
    assert numbers.big(1.24e9) == "1.24 G"
    assert numbers.probability(0.0123) == "0.012"
    assert missing(None)
    assert not missing(0)
    assert not missing("")


LEVELS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)


def typed(value: Any) -> tuple[str, str]:
    return type(value).__name__, json.dumps(value)


@given(st.lists(LEVELS, min_size=2, max_size=2, unique_by=typed))
def test_two_levels_never_look_alike(levels: list[Any]) -> None:
    first, second = levels
    if isinstance(first, str) and isinstance(second, str) and (plain(first) != first or plain(second) != second):
        return  # what is cut out of private or invisible text may well look alike
    assert level(first) != level(second)


@pytest.mark.parametrize("value", [None, "null", "None", "NaN", "NA", "", "nan", "n/a", "(null)", "NULL"])
def test_no_reader_of_csv_takes_a_level_for_a_missing_value(value: Any) -> None:
    text = pd.DataFrame({"level": [level(value)], "x": [1]}).to_csv(index=False)
    assert pd.read_csv(io.StringIO(text))["level"].notna().all()


def test_common_levels_are_plain() -> None:
    assert [level(value) for value in ("none", "on", "pre", 4, 1e-3, True, None)] == [
        "none", "on", "pre", "4", "0.001", "true", "(null)",
    ]  # fmt: skip


def test_plain_text_has_no_invisible_characters() -> None:
    assert plain("a\u202eb\x00c\u2066") == "a\ufffdb\ufffdc\ufffd"
    assert plain("tab\tand\nline") == "tab\tand\nline"
