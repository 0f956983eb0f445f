"""Panels, and labels that keep out of each other's way."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from ablate.reporting.layout import Margins, log_places, panels, power, spread
from ablate.reporting.names import shorten, text_width, wrapped
from ablate.reporting.svg import drawn


@given(st.lists(st.floats(0, 100), max_size=12))
def test_labels_are_apart_in_order_and_inside(wanted: list[float]) -> None:
    found = spread(sorted(wanted), 13, -10, 160)
    assert len(found) == len(wanted)
    assert all(after - before >= 13 - 1e-6 for before, after in pairwise(found))
    assert all(-10 - 1e-6 <= at <= 160 + 1e-6 for at in found)


def test_labels_that_have_room_stay_where_they_are() -> None:
    assert spread([0, 20, 50], 13, -10, 100) == [0, 20, 50]
    assert spread([50, 50], 10, 0, 100) == [45, 55]


def test_labels_without_room_share_it() -> None:
    assert spread([5, 5, 5], 100, 0, 10) == [0, 5, 10]
    assert spread([], 10, 0, 1) == []


def test_long_names_lose_their_middle() -> None:
    name = "placement=" + "y" * 300
    short = shorten(name, 100)
    assert short.startswith("placem")
    assert short.endswith("y")
    assert "…" in short
    assert text_width(short) <= 100
    assert shorten("short", 100) == "short"
    assert len(shorten(name, 1)) <= 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1"), (0.001, "0.001"), (1e-5, "10⁻⁵"), (2e-7, "2·10⁻⁷"), (500, "500"), (1e6, "10⁶"), (0, "0")],
)
def test_numbers_on_axes(value: float, text: str) -> None:
    assert power(value) == text


def test_log_axes_have_round_ticks_whatever_their_range() -> None:
    assert log_places(1e-6, 1.5) == [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0] or len(log_places(1e-6, 1.5)) <= 6
    assert log_places(0.9, 3.1) == [1, 2]
    assert len(log_places(1.1, 1.15)) == 3
    assert len(log_places(1e-30, 1e30)) <= 7


def test_panels_are_as_large_as_asked() -> None:
    @drawn
    def draw() -> Figure:
        figure, axes = panels(3, 2, (200, 100), Margins(40, 20, 30, 10))
        assert [round(one.get_window_extent().width) for one in axes] == [200, 200, 200]
        assert [round(one.get_window_extent().height) for one in axes] == [100, 100, 100]
        assert axes[0].get_window_extent().y0 > axes[2].get_window_extent().y0
        return figure

    assert [round(72 * side) for side in draw().get_size_inches()] == [520, 280]


def test_long_titles_break_at_spaces_before_they_are_cut() -> None:
    assert wrapped("residual=off, scale=off", 100, 2) == "residual=off,\nscale=off"
    assert wrapped("short", 100, 2) == "short"
    cut = wrapped("one two three " + "y" * 300, 60, 2).split("\n")
    assert len(cut) == 2
    assert all(text_width(row) <= 60 for row in cut)
    assert "…" in cut[1]
    assert wrapped("y" * 300, 60, 1).count("…") == 1
