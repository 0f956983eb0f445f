"""Why two levels of a factor that are spelled differently are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ablate.experiment.levels import Bench, Level, label, setup_key, shown
from ablate.experiment.paths import Place


def without_effect(bench: Bench, one: Level, other: Level) -> str | None:
    """What only one of two equal levels spells, which has no effect since it is so anyway; None if there is no such."""
    mine, theirs = _given(bench, one), _given(bench, other)
    extra = [
        (place, *given[place]) for given in (mine, theirs) for place in given if (place in mine) != (place in theirs)
    ]
    if not extra:
        return None
    inside = all(place not in (path, (*path, "kind")) for place, path, _ in extra)
    said = [
        _spelling(place[len(path) :] if inside else place, place[len(path) :], value) for place, path, value in extra
    ]
    if inside:
        return f"`{', '.join(said)}` is what it has anyway: options at their default change nothing"
    alone = bench.setup([Level(None, {path: value for _, path, value in extra}, one.source)], quietly=True)
    if alone and setup_key(alone) == setup_key(bench.base):
        return f"`{', '.join(said)}` is what the baseline has anyway"
    return f"`{', '.join(said)}` changes nothing there: it is so anyway, or nothing reads it"


def _given(bench: Bench, level: Level) -> dict[Place, tuple[Place, Any]]:
    """Every place that a level speaks of, with the path that it sets there, and to what."""
    return {
        place: (path, value) for path, value in level.changes.items() for place in sorted(bench.explicit({path: value}))
    }


def _spelling(name: Place, inside: Place, value: Any) -> str:
    """An option as it is written: its name, and what a level's value has at the place ``inside`` it."""
    for step in inside:
        value = value[step] if isinstance(value, Mapping) else value
    return f"{'.'.join(map(str, name)).removesuffix('.kind')}: {shown(label(value))}"
