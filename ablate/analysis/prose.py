"""How counts, numbers and lists are written in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

MOST_NAMES = 6
"""So many names are given; of the rest, their number is."""
ROUNDING = 1e-9
"""Half the width of an interval that is taken for rounding, as a share of the number or of 1, whichever is more."""
LONG = 1e9
"""Numbers from here on are written as powers of ten."""

MOST_PLACES = 12
"""No number has more decimals."""
HUGE = 1e10
"""From here on a number is written with an exponent, as 1.25e+300."""


def decimals(smallest_effect: float) -> int:
    """Decimals that show the smallest effect that matters to two digits: 0.02 takes three."""
    if not smallest_effect or not math.isfinite(smallest_effect):
        return 4
    return min(MOST_PLACES, max(0, 1 - math.floor(math.log10(abs(smallest_effect)) + 1e-9)))


def fixed(value: float, places: int, sign: bool = False) -> str:
    """A finite number with so many decimals, or with an exponent where it is :data:`HUGE`. Minus zero is zero."""
    form = ".6g" if abs(value) >= HUGE else f".{places}f"
    text = f"{value:{'+' if sign else ''}{form}}"
    return text.replace("-", "+" if sign else "") if float(text) == 0 else text


def number(count: int, noun: str) -> str:
    """A count with its noun, as "1 seed" or "4,000 seeds"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def joined(names: Sequence[str]) -> str:
    """Names as a list; of many, the first and how many more there are. Names with commas are kept apart."""
    more = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    every = [*names[:MOST_NAMES], *more]
    if len(every) == 1:
        return every[0]
    mark = ";" if any("," in name for name in every) else ","
    return f"{f'{mark} '.join(every[:-1])}{';' if mark == ';' else ''} and {every[-1]}"


def estimate(value: float, low: float, high: float, unit: str = "") -> str:
    """A signed number with its 95% interval, where there is one, as "-8.0% [95% CI -9.2%, -6.7%]".

    It has as many places as show half of the interval's width to two digits; or else, also where that is rounding, the
    number to three.
    """
    bounded = math.isfinite(low) and math.isfinite(high)
    spread = (high - low) / 2 if bounded else 0.0
    size, figures = (spread, 1) if spread > ROUNDING * max(1, abs(value)) else (abs(value), 2)
    places = min(9, max(0, figures - math.floor(math.log10(size)))) if size > ROUNDING else 2
    text, below, above = (
        f"{0.0 + round(each, places):+.{places}f}" if abs(each) < LONG else f"{each:+.3g}"
        for each in (value, low, high)
    )
    tight = unit if unit == "%" else ""
    return f"{text}{unit} [95% CI {below}{tight}, {above}{tight}]" if bounded else f"{text}{unit}"
