"""What makes two trials the same trial: canonical, typed text and its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ablate.slots import Component, Options


def canonical(value: Any) -> Any:
    """The parts of a value that identity is made of, as JSON values.

    An option at its default is left out, so that a new option orphans no old record; a component's version is left
    out while it is 1. Types stay apart: 1, 1.0 and true are three values.
    """
    if isinstance(value, Options):
        fields = type(value).model_fields
        options = {name: canonical(getattr(value, name)) for name in fields}
        kept = {name: option for name, option in options.items() if name == "kind" or not at_default(value, name)}
        if isinstance(value, Component) and value.version != 1:
            kept["version"] = value.version
        return kept
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [canonical(item) for item in value]
    return value


def at_default(options: Options, name: str) -> bool:
    """Whether an option has the value that it would have if nothing were said of it."""
    field = type(options).model_fields[name]
    if field.is_required():
        return False
    default = field.get_default(call_default_factory=True, validated_data={})
    return text(canonical(getattr(options, name))) == text(canonical(default))


def text(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, floats by their shortest form, so 1e-3 and 0.001 are one."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def digest(value: Any) -> str:
    """Sixteen hexadecimal digits that stand for a value."""
    return hashlib.sha256(text(canonical(value)).encode()).hexdigest()[:16]
