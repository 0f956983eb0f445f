"""Turns a matplotlib figure into SVG that lives in the page: its colours, its fonts, ids of its own, the same bytes."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from ablate.reporting.palette import BASELINE, GRID, INK, MUTED, VARIABLES

P = ParamSpec("P")


class Panelled(Figure):
    """A figure whose panels and margins have their place, as :func:`ablate.reporting.layout.panels` makes it."""


STYLE: dict[Any, Any] = {
    # One unit of a figure is one pixel of the page: 72 dots an inch, and sizes in inches of 72 pixels.
    "figure.dpi": 72,
    "savefig.dpi": 72,
    "font.family": "DejaVu Sans",
    "font.size": 11.5,
    "axes.titlesize": 12.5,
    "axes.labelsize": 11,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "text.color": INK,
    # A name may hold dollar signs.
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.major.width": 0.8,
    "xtick.major.size": 3,
    "xtick.minor.size": 0,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": BASELINE,
    "hatch.linewidth": 0.6,
    "path.simplify": True,
    "path.simplify_threshold": 0.3,
    "svg.fonttype": "none",
    "svg.hashsalt": "ablate",
    "svg.image_inline": True,
}
"""How every figure looks; text stays text, set in the page's own font."""

METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
_TAG = re.compile(r"<[^>]*>")
_ID = re.compile(r'\bid="([^"]+)"')
_REFERENCE = re.compile(r'url\(#([^)]+)\)|href="#([^"]+)"')
_NUMBERS = re.compile(r'\b(d|points|transform|x|y|width|height)="([^"]*\d[^"]*)"')
_DECIMAL = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_FONT = re.compile(r"font:\s*(?:(\d+|bold|normal)\s+)?([\d.]+)px [^;\"]*")
_NO_TURN = re.compile(r' transform="rotate\(-0 [^)]*\)"|; font-family: [^;"]*')
_INVISIBLE = re.compile(r'<g><path d="[^"]*" style="fill: none"/></g>')
_HEAD = re.compile(r'<svg [^>]*?viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>')


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Silence matplotlib where its own font lacks a letter, which the page's has, and where it has no room."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="constrained_layout not applied", category=UserWarning)
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        yield


def drawn(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """A decorator for functions that draw a figure: they draw it in the report's style."""

    @wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with mpl.rc_context(STYLE), _quietly():
            return draw(*args, **kwargs)

    return styled


def inline(figure: Figure, name: str, alt: str) -> Markup:
    """The figure as an SVG element whose ids all begin with ``name``, so that no two figures share one.

    Args:
        figure: drawn by a function that is :func:`drawn`; or any other, which is laid out so that nothing overlaps or
            is cut off, and whose black and white become the page's own.
        name: unique in the page, as ``forest``.
        alt: what it shows, for those who cannot see it.
    """
    buffer = io.StringIO()
    with mpl.rc_context(STYLE), _quietly():
        bounds = None if isinstance(figure, Panelled) else "tight"
        if bounds and figure.get_layout_engine() is None and any(axes.get_subplotspec() for axes in figure.axes):
            figure.set_layout_engine("constrained")
        figure.savefig(buffer, format="svg", metadata=METADATA, bbox_inches=bounds)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style type=\"text/css\">.*?</style>|<!--.*?-->", "", text, flags=re.S)
    used = {one or other for one, other in _REFERENCE.findall(text)}
    # Tags alone: what is written in the figure, an arm's name say, stays as it is.
    text = _TAG.sub(lambda tag: _cleaned(tag[0], used, name), text)
    text = re.sub(r"\s*\n\s*", " ", re.sub(r">\s+<", "><", text)).strip()
    text = re.sub(r"<defs></defs>", "", _INVISIBLE.sub("", text))
    head = _HEAD.match(text)
    assert head is not None, "matplotlib writes a view box"
    width, height = (round(float(side)) for side in head.groups())
    # What is black has no fill of its own.
    opening = (
        f'<svg class="plot" role="img" aria-label="{escape(alt)}" viewBox="0 0 {head[1]} {head[2]}" fill="var(--ink)" '
    )
    return Markup(f'{opening}width="{width}" height="{height}">{text[head.end() :]}')


def _cleaned(tag: str, used: set[str], name: str) -> str:
    """One tag with the ids that something refers to (prefixed), short numbers, and the page's fonts and colours."""
    tag = _ID.sub(lambda found: f'id="{name}-{found[1]}"' if found[1] in used else "", tag)
    tag = _REFERENCE.sub(lambda found: found[0].replace("#", f"#{name}-"), tag)
    tag = _NO_TURN.sub("", tag)
    # A hundredth of a pixel is enough, and half the bytes.
    tag = _NUMBERS.sub(lambda found: f'{found[1]}="{_DECIMAL.sub(_rounded, found[2])}"', tag)
    tag = _FONT.sub(lambda found: f"font-size:{found[2]}px" + (";font-weight:650" if found[1] else ""), tag)
    for drawn_in, variable in VARIABLES.items():
        tag = tag.replace(drawn_in, variable)
    return tag.replace("xlink:href", "href").replace("<g >", "<g>").replace("base64,\n", "base64,")


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
