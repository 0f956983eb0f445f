"""How a factor's level is written, so that no two levels look alike."""

from __future__ import annotations

import json
from collections.abc import Mapping


def spelled(level: object) -> str:
    """A factor's level as text, with every level its own: null, 1, 1.0, true and the text "null" are five."""
    plain = json.dumps(level, sort_keys=True, ensure_ascii=False)
    if not isinstance(level, str):
        return plain
    try:
        json.loads(level)
    except ValueError:
        return level
    return plain


def short(value: object) -> str:
    """A value for a reader, a number with three digits; two values may look alike."""
    return f"{value:.3g}" if isinstance(value, float) else spelled(value)


def in_words(values: Mapping[str, object]) -> str:
    """Values of options for a reader: the last part of each dotted path, as ``lr=0.003, warmup=100``."""
    return ", ".join(f"{path.rpartition('.')[2]}={short(value)}" for path, value in values.items())
