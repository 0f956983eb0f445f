"""The matching solver: the value of one numeric option at which a count comes nearest to a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from ablate.planning.search import Search
from ablate.slots import ImpossibleError

DIGITS = 6
"""Significant digits of the start to which a number that is no multiple of anything is resolved."""


class Insensitive(Exception):  # it says what the value is
    """The value changes nothing that is counted."""


@dataclass(frozen=True)
class Solution:
    """A value and what it counts to."""

    value: int | float
    count: int
    error: float
    """|count - target| / target."""


def solve(
    count: Callable[[int | float], int],
    start: int | float,
    target: int,
    *,
    within: float,
    multiple_of: int | float | None,
) -> Solution:
    """The start if its count is within ``within`` of the target, else the value whose count is nearest to the target.

    Counts are taken to rise or to fall with the value, by steps, as parameters do with a width and FLOPs with a number
    of training steps. Values are positive: whole numbers where the start is one, multiples of ``multiple_of`` where it
    is given, and else the shortest decimal number of those with the best count. A value that ``count`` refuses is
    passed over. What is found may be further from the target than ``within``.

    Raises:
        Insensitive: the value changes nothing.
        ValueError, ImpossibleError: what ``count`` raises of the start, where no value near it is allowed.
    """

    def solution(value: int | float, counted: int) -> Solution:
        return Solution(value, counted, abs(counted - target) / target)

    refused: Exception | None = None
    counted: int | None = None
    try:
        counted = count(start)
    except (ValueError, ImpossibleError) as error:
        refused = error
    if counted is not None and solution(start, counted).error <= within:
        return solution(start, counted)
    written = Decimal(repr(start))
    free = isinstance(start, float) and multiple_of is None
    unit = Decimal(1).scaleb(written.adjusted() + 1 - DIGITS) if free else Decimal(repr(multiple_of or 1))

    def value_at(index: int) -> int | float:
        return type(start)(index * unit)

    search = Search(lambda index: count(value_at(index)), max(1, round(written / unit)), target)
    if value_at(search.first) == start:
        search.known[search.first] = counted
    best = search.best(decimals=round(-math.log10(unit)) if free else None)
    if best is None:
        raise refused or ImpossibleError(f"no value near {start} is allowed")
    if search.is_flat:
        raise Insensitive(f"no value changes the count of {best[1]:,}")
    return solution(value_at(best[0]), best[1])
