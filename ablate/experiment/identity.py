"""What makes two trials the same trial: canonical, typed text and its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from enum import Enum
from functools import cache, partial
from typing import Any

from ablate.errors import InputError
from ablate.slots import Component, Options, named


def canonical(value: Any, *, as_written: bool = False) -> Any:
    """The parts of a value that identity is made of, as JSON values.

    An option at its default is left out, so that a new option orphans no old record; a component's version is left
    out while it is 1. Options that are dead beside others are left out too (:meth:`Component.effective`), unless the
    value is wanted ``as_written``: two levels that are one beside this baseline may differ in another arm. Types stay
    apart: 1, 1.0 and true are three values.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, Component) and not as_written:
        value = _effective(value)
    if isinstance(value, Options):
        kept = {}
        for name in type(value).model_fields:
            option = canonical(getattr(value, name), as_written=as_written)
            if name == "kind" or not _is_default(type(value), name, option, as_written=as_written):
                kept[name] = option
        if isinstance(value, Component) and value.version != 1:
            kept["version"] = value.version
        return kept
    inner = partial(canonical, as_written=as_written)
    if isinstance(value, Mapping):
        return {str(inner(key)): inner(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [inner(item) for item in value]
    if isinstance(value, Set):
        return sorted(map(inner, value), key=text)
    return value.value if isinstance(value, Enum) else value


def _effective(component: Component) -> Component:
    """What a component says of its dead options, held to its contract here: identities rest on it."""
    try:
        found: Any = component.effective()
    except (Exception, SystemExit) as error:  # whatever a component's code raises; its author can mend it
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError.one("G210", f"`effective` of {named(component)} fails: {said}", help=_OF_EFFECTIVE) from error
    if type(found) is not type(component):
        gave = f"gives {type(found).__name__}, and no {type(component).__name__}"
        raise InputError.one("G210", f"`effective` of {named(component)} {gave}", help=_OF_EFFECTIVE)
    checked: Component = found
    return checked


_OF_EFFECTIVE = "it gives the same component, with options that have no effect at their defaults"


def spelled(value: Any) -> Any:
    """A value as it could stand in YAML: every component with its kind, and the options that are not at their default.

    Options at their default are left out so that a level can set one of two options that exclude each other.
    """
    if isinstance(value, Mapping):
        return {key: spelled(item) for key, item in value.items()}
    if isinstance(value, list | tuple | Set):
        return [spelled(item) for item in value]
    if not isinstance(value, Options):
        return value
    options = {name: getattr(value, name) for name in type(value).model_fields}
    return {
        name: spelled(option)
        for name, option in options.items()
        if name == "kind"
        or isinstance(option, Options)
        or not _is_default(type(value), name, written(option), as_written=True)
    }


def written(value: Any) -> Any:
    """The canonical form of a value with the options that are dead beside others."""
    return canonical(value, as_written=True)


def _is_default(owner: type[Options], name: str, option: Any, *, as_written: bool) -> bool:
    """Whether an option, in its canonical form, is what it would be if nothing were said of it."""
    default, plain = _default(owner, name, as_written=as_written)
    if default is None:
        return False
    if option is None or isinstance(option, bool | int | float | str):
        return type(option) is type(plain) and bool(option == plain)
    return text(option) == default


@cache
def _default(owner: type[Options], name: str, *, as_written: bool) -> tuple[str | None, Any]:
    """An option's default as canonical text and as a plain value; no text where it is required."""
    field = owner.model_fields[name]
    if field.is_required():
        return None, None
    form = canonical(field.get_default(call_default_factory=True, validated_data={}), as_written=as_written)
    return text(form), form


def text(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, floats by their shortest form, so 1e-3 and 0.001 are one."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def digest(value: Any) -> str:
    """Sixteen hexadecimal digits that stand for a value."""
    return hashlib.sha256(text(canonical(value)).encode()).hexdigest()[:16]
