"""What was meant by a key that nothing reads: a misspelling, a key of another place, or another tool's word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ablate.experiment.paths import Place, fields_at
from ablate.registry import Registry, closest

ELSEWHERE = {
    "direction": "goal",
    "mode": "goal",
    "learning_rate": "lr",
    "batch_size": "batch",
    "max_steps": "steps",
    "max_epochs": "steps",
    "epochs": "steps",
    "d_model": "width",
    "hidden_size": "width",
    "n_layers": "depth",
    "num_layers": "depth",
    "n_heads": "heads",
    "num_heads": "heads",
}
"""What other tools call a key, and its name here."""


def meant(place: Place, data: Any, registry: Registry) -> str:
    """The help for the unknown key at ``place``: how it is spelled, where it belongs, or what there is."""
    around, name = place[:-1], str(place[-1])
    options = fields_at(around, data, registry)
    word = ELSEWHERE.get(name, name)
    homes = [home for home in _sections(data, registry) if word in fields_at(home, data, registry)]
    if word in options:
        return f"did you mean `{word}`?"
    if 1 <= len(homes) <= 2:
        return f"`{word}` belongs {' or '.join(_told(home) for home in homes)}"
    near = closest(name, options)
    return f"did you mean `{near}`?" if near else f"there is: {', '.join(options)}"


def _told(home: Place) -> str:
    return f"in `{'.'.join(map(str, home))}`" if home else "at the top of the file"


def _sections(data: Any, registry: Registry) -> Iterator[Place]:
    """The top of the file, its sections, and the components in them."""
    yield ()
    for section in fields_at((), data, registry):
        yield (section,)
        inside = data.get(section) if isinstance(data, Mapping) else None
        if isinstance(inside, Mapping) and section != "factors":
            yield from ((section, key) for key, value in inside.items() if isinstance(value, Mapping))
