"""Figures as inline SVG."""

from __future__ import annotations

import re

import numpy as np
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


def test_numbers_are_no_longer_than_they_need_be() -> None:
    without_images = re.sub(r'href="data:[^"]*"', "", inline(picture(), "one", "alt"))
    assert not re.search(r'\b(?:d|x|y|transform)="[^"]*\d\.\d{3}', without_images)
