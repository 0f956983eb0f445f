"""The report's colours and second cues, the same in every figure, on light and on dark grounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

BASELINE = "#7a7f87"
"""The baseline's grey, and nobody else's."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b0568c", "#a67c00", "#00868b", "#8266cc")
"""One colour an arm, in the order of the plan; each has a contrast of 3:1 with both grounds. They are as many as the
arms that are drawn as lines in one figure, so that none returns there."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
"""The second cue where there are points. Their number shares no factor with the colours', so 56 arms stay apart."""
GLYPHS: Mapping[str, str] = dict(zip(MARKERS, "●■▲◆▼✚✖◀", strict=True))
"""The markers as letters, for text."""
DASHES: tuple[tuple[float, ...], ...] = ((), (6, 2.2), (1.6, 1.6), (6, 1.8, 1.4, 1.8), (9, 2.5))
"""The second cue where there are lines."""

# Drawn in these, and then replaced by the page's own colours, so that one figure reads on both grounds.
INK, MUTED, GRID, GROUND, BAND = "#010101", "#020202", "#030303", "#040404", "#050505"
VARIABLES: Mapping[str, str] = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    GROUND: "var(--ground)",
    BAND: "var(--band)",
    # What matplotlib draws in by itself, in a figure that is not the report's own.
    "#000000": "var(--ink)",
    "#ffffff": "var(--ground)",
}
"""What stands in the page for each of the colours that a figure is drawn in."""

SCALE = "viridis"
"""Colour map of magnitudes."""


class Look(NamedTuple):
    """How one arm is drawn everywhere."""

    colour: str
    marker: str
    dash: tuple[float, ...]

    def size(self, size: float) -> float:
        """The size at which the marker looks as large as a disc of this size."""
        return size * {"o": 1.0, "s": 0.92, "D": 0.88, "P": 1.28, "X": 1.22}.get(self.marker, 1.12)


def look(index: int) -> Look:
    """The look of the arm at this place in the plan; the baseline is the first."""
    if index == 0:
        return Look(BASELINE, "o", ())
    return Look(COLOURS[(index - 1) % len(COLOURS)], MARKERS[index % len(MARKERS)], DASHES[index % len(DASHES)])
