"""How counts and lists are written in sentences."""

from __future__ import annotations

from collections.abc import Sequence

MOST_NAMES = 6
"""So many names are given; of the rest, their number is."""


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
