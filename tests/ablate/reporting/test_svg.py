"""Figures as inline SVG."""

from __future__ import annotations

import re

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ablate.reporting.palette import COLOURS, GROUND, INK
from ablate.reporting.svg import drawn, inline

HOSTILE = '<script>alert(1)</script> id="x" #010101 d="1.23456" $x_1$ 世界'


@drawn
def picture(text: str = "label") -> Figure:
    figure = Figure(figsize=(4, 2))
    axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    axes.plot([0, 1, 2], [0, 1, 0], color=COLOURS[0], marker="s", markeredgecolor=GROUND)
    axes.imshow(np.eye(2), extent=(0, 1, 0, 1), interpolation="none")
    axes.text(0.5, 0.5, text, color=INK)
    return figure


def test_the_same_figure_gives_the_same_bytes() -> None:
    assert inline(picture(), "one", "alt") == inline(picture(), "one", "alt")


def test_ids_begin_with_the_figures_name_and_each_is_used() -> None:
    one, two = inline(picture(), "one", "alt"), inline(picture(), "two", "alt")
    ids = re.findall(r'\bid="([^"]+)"', one)
    assert ids
    assert all(id.startswith("one-") for id in ids)
    assert set(ids) == set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", one))
    assert not set(ids) & set(re.findall(r'\bid="([^"]+)"', two))


def test_it_takes_the_pages_colours_and_font() -> None:
    svg = inline(picture(), "one", "alt")
    assert "var(--ink)" in svg
    assert "var(--ground)" in svg
    assert COLOURS[0] in svg
    assert "#010101" not in svg
    assert "font-family" not in svg


def test_it_says_nothing_of_when_and_by_what_it_was_drawn() -> None:
    svg = inline(picture(), "one", "alt")
    assert not re.search(r"<metadata|<!--|<\?xml|<style|DOCTYPE|[Mm]atplotlib|20\d\d-", svg)


def test_texts_stay_what_they_are() -> None:
    svg = inline(picture(HOSTILE), "one", f'alt "{HOSTILE}"')
    assert HOSTILE.replace("<", "&lt;").replace(">", "&gt;") in svg
    assert "<script" not in svg
    assert 'aria-label="alt &#34;&lt;script' in svg


def test_a_figure_of_anyones_is_whole_and_in_the_pages_colours() -> None:
    figure = Figure(figsize=(9, 2))
    one, other = figure.subplots(1, 2)
    names = ["a name that is longer than the axes' margin", "b"]
    for axes in (one, other):
        axes.barh(names, [1, 2], color="white", edgecolor="black")
    svg = inline(figure, "own", "alt")
    assert "#000000" not in svg
    assert "#ffffff" not in svg
    assert svg.startswith('<svg class="plot" role="img" aria-label="alt" viewBox="0 0 ')
    assert 'fill="var(--ink)"' in svg.split(">")[0]
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    left, right = (axes.get_tightbbox(renderer) for axes in (one, other))
    assert left is not None
    assert right is not None
    assert left.x1 <= right.x0
    bounds = figure.get_tightbbox(renderer)
    width = re.findall(r' width="(\d+)"', svg)[0]
    assert int(width) >= 72 * bounds.width


def test_numbers_are_no_longer_than_they_need_be() -> None:
    without_images = re.sub(r'href="data:[^"]*"', "", inline(picture(), "one", "alt"))
    assert not re.search(r'\b(?:d|x|y|transform)="[^"]*\d\.\d{3}', without_images)
