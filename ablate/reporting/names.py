"""Names in figures: shortened to the room that there is, so that no two arms look alike."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

SMALL = 11.0
"""The smallest letters of a figure, in pixels."""
_BREAKS = str.maketrans({"\n": "\N{RETURN SYMBOL}", "\t": "\N{RIGHTWARDS ARROW TO BAR}"})
"""A level may have what breaks a line; a name stands on one, and no font has a glyph for a break."""
_FACTOR = re.compile(r"(^|, )([^=,]*)=")


@lru_cache(maxsize=4096)
def text_width(text: str, size: float = SMALL, weight: int = 400) -> float:
    """Width of a text in pixels, by matplotlib's font, which is wider than most."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text.translate(_BREAKS), font, ismath=False)[0])


def shorten(text: str, width: float, size: float = SMALL, weight: int = 400) -> str:
    """The text on one line, with its middle cut out until it is no wider than ``width`` pixels."""
    text = text.translate(_BREAKS)
    if text_width(text, size, weight) <= width:
        return text
    fits, cut = 0, len(text)
    while cut - fits > 1:  # by halves: a name may have hundreds of letters
        kept = (fits + cut) // 2
        fits, cut = (kept, cut) if text_width(_middle_cut(text, kept), size, weight) <= width else (fits, kept)
    return _middle_cut(text, fits)


def _middle_cut(text: str, kept: int) -> str:
    return f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"


def wrapped(text: str, width: float, lines: int, size: float = SMALL, weight: int = 400) -> str:
    """The text broken after commas and at spaces into at most so many lines of this width; the last is shortened."""
    words, rows = text.split(" "), [""]
    while words:
        longer = f"{rows[-1]} {words[0]}".strip()
        if len(rows) == lines:
            return "\n".join([*rows[:-1], shorten(" ".join([rows[-1], *words]).strip(), width, size, weight)])
        if rows[-1] and text_width(longer, size, weight) > width:
            rows.append("")
        else:
            rows[-1] = shorten(longer, width, size, weight)
            words.pop(0)
    return "\n".join(rows)


def distinct(texts: Sequence[str], fit: Callable[[str], str]) -> list[str]:
    """The texts, each replaced by a shorter one where ``fit`` would cut it or make it look like another text.

    What tells them apart stays: the levels without the names of factors that other texts have too, else what differs
    within the group that looks alike; where nothing else helps, a number leads. Once fitted, all of them differ.
    """
    levels, factors = _levels_alone(texts), [set(_FACTOR.findall(text)) for text in texts]
    found = list(texts)
    for place, text in enumerate(texts):
        shared = set().union(*(theirs for other, theirs in enumerate(factors) if texts[other] != text))
        known = {name for _, name in factors[place]} <= {name for _, name in shared}
        others = {one for other, one in enumerate(levels) if texts[other] != text} | set(texts)
        if "…" in fit(text) and factors[place] and known and levels[place] not in others:
            found[place] = levels[place]
    for way in (_levels_alone, _what_differs, _numbered):
        alike = _alike(found, texts, fit)
        if not alike:
            break
        for group in alike:
            for place, text in zip(group, way([texts[at] for at in group]), strict=True):
                found[place] = text
    return found


def short_names(texts: Sequence[str], width: float, size: float = SMALL, weight: int = 400) -> list[str]:
    """The texts no wider than ``width`` pixels, so that no two different ones look alike."""

    def fit(text: str) -> str:
        return shorten(text, width, size, weight)

    return [fit(text) for text in distinct(texts, fit)]


def _alike(found: Sequence[str], texts: Sequence[str], fit: Callable[[str], str]) -> list[list[int]]:
    """Places whose texts differ and look alike once they are fitted, group by group."""
    groups: dict[str, list[int]] = {}
    for place, text in enumerate(found):
        groups.setdefault(fit(text), []).append(place)
    return [group for group in groups.values() if len({texts[place] for place in group}) > 1]


def _levels_alone(texts: Sequence[str]) -> list[str]:
    return [_FACTOR.sub(r"\1", text) for text in texts]


def _what_differs(texts: Sequence[str]) -> list[str]:
    """The texts without the letters that all of them begin and end with."""
    start = _shared(texts)
    end = min(_shared([text[::-1] for text in texts]), min(map(len, texts)) - start)
    return [f"{'…' if start else ''}{text[start : len(text) - end]}{'…' if end else ''}" for text in texts]


def _shared(texts: Sequence[str]) -> int:
    """How many letters all of the texts begin with."""
    return sum(1 for _ in itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False)))


def _numbered(texts: Sequence[str]) -> list[str]:
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts), start=1)}
    return [f"{numbers[text]}: {text}" for text in texts]


def in_heading(title: str, width: float, lines: int = 1) -> str:
    """A title as it stands above a panel: in at most so many lines of this width."""
    return wrapped(title, width, lines, 12.5, 700)


def headings(titles: Sequence[str], width: float, lines: int = 1) -> tuple[list[str], bool]:
    """Titles that stay apart above panels of this width, and whether one of them takes a second line."""
    found = distinct(titles, lambda title: in_heading(title, width, lines))
    return found, any("\n" in in_heading(title, width, lines) for title in found)
