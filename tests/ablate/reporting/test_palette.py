"""Colours and second cues."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from matplotlib.colors import to_rgb

from ablate.reporting.figures.lines import MOST_LINES
from ablate.reporting.palette import BASELINE, COLOURS, GLYPHS, MARKERS, look


def luminance(colour: str) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def grounds() -> list[str]:
    css = (files("ablate.reporting") / "templates" / "report.css").read_text(encoding="utf-8")
    return re.findall(r"--ground: (#\w+)", css)


@pytest.mark.parametrize("colour", [BASELINE, *COLOURS])
def test_every_colour_shows_on_both_grounds(colour: str) -> None:
    light, dark = grounds()
    assert contrast(colour, light) >= 3
    assert contrast(colour, dark) >= 3


def test_the_baseline_alone_is_grey() -> None:
    assert look(0).colour == BASELINE
    assert all(look(index).colour != BASELINE for index in range(1, 100))


def test_56_arms_stay_apart_by_colour_and_marker_and_35_by_colour_and_dash() -> None:
    assert len({look(index)[:2] for index in range(1, 57)}) == 56
    assert len({look(index)[::2] for index in range(1, 36)}) == 35


def test_no_colour_returns_among_the_arms_that_are_drawn_as_lines() -> None:
    assert len({look(index).colour for index in range(MOST_LINES)}) == MOST_LINES


def test_every_marker_has_its_letter() -> None:
    assert set(GLYPHS) == set(MARKERS)
