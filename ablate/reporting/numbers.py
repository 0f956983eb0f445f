"""How a number or a level is written: once, for the page and for every file beside it."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pandas as pd

from ablate.analysis import prose
from ablate.reporting.privacy import redact

TIMES, MINUS, DASH = "\N{MULTIPLICATION SIGN}", "\N{MINUS SIGN}", "\N{EN DASH}"
NULL = "(null)"
"""The level null: no reader of CSV takes it for a missing value, and no other level is written so."""
# What readers of CSV, or of the page, take for a missing value; a level that is such a text is written in quotes.
_MISSING = {"", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "<NA>", "#N/A", "#NA",
            "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", NULL, DASH}  # fmt: skip
# Control characters, and those that turn the direction of what follows.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)


def plain(text: str) -> str:
    """A text that is safe to show: nothing private, and no character that acts on what is around it."""
    return _UNSEEN.sub("\ufffd", redact(text))


def level(value: Any) -> str:
    """A level of a factor, so that two levels never look alike: null, "null", 1 and "1" are four texts."""
    if value is None:
        return NULL
    if not isinstance(value, str):
        return plain(json.dumps(value, ensure_ascii=False, sort_keys=True))
    try:
        json.loads(value)
    except ValueError:
        return json.dumps(value, ensure_ascii=False) if value.strip() in _MISSING else plain(value)
    return plain(json.dumps(value, ensure_ascii=False))


def missing(value: Any) -> bool:
    """Whether there is no number: None, NaN, or pandas' NA."""
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def fixed(value: Any, places: int, sign: bool = False) -> str:
    """A number with so many decimals, as in sentences; nothing where there is none, or it is too large to be known."""
    return "" if missing(value) or math.isinf(value) else prose.fixed(float(value), places, sign)


def digits(value: Any, count: int = 3) -> str:
    """A number with so many significant digits, as 0.00031, 1.2e-05 or 51200."""
    if missing(value):
        return ""
    number = float(value)
    if math.isinf(number) or number == 0:
        return "0" if number == 0 else ("inf" if number > 0 else "-inf")
    exponent = math.floor(math.log10(abs(float(f"{number:.{count - 1}e}"))))
    if -4 <= exponent < 7:
        return f"{number:.{max(0, count - 1 - exponent)}f}"
    return f"{number:.{count - 1}e}"


def probability(value: Any) -> str:
    """A p-value, to two digits."""
    return digits(value, 2)


def whole(value: Any) -> str:
    """A count."""
    return "" if missing(value) else str(round(float(value)))


def percent(value: Any, places: int = 1) -> str:
    """A share as a signed number of per cent, without the sign of per cent: the column's head has it."""
    return "" if missing(value) else fixed(100 * float(value), places, sign=True)


def interval(low: str, high: str) -> str:
    """Two written bounds as one interval; nothing where one of them is missing."""
    return f"[{low}, {high}]" if low and high else ""


def big(value: float) -> str:
    """A large count in words of three digits: 163,840 or 1.2 G."""
    if missing(value):
        return ""
    number = float(value)
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if abs(number) >= size:
            return f"{number / size:.3g} {unit}"
    return f"{round(number):,}"


def duration(seconds: float) -> str:
    """A time span, as 48 s, 12 min or 3.4 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
