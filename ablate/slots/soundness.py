"""What can be wrong with a component as a class, found when it is brought in and not when it is first used."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Set
from enum import Enum
from functools import cache
from typing import Any, get_args

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.json_schema import PydanticJsonSchemaWarning

from ablate.slots.component import Component, Options

_OPTIONS = "what an option may be is in ablate.slots.Options"


def lacks(component: type[Component]) -> list[str]:
    """What a component's slot asks for and the class does not have: methods, and values such as ``units``."""
    absent = [name for name in component.__class_vars__ if not hasattr(component, name)]
    return sorted({*getattr(component, "__abstractmethods__", ()), *absent})


@cache  # a class stays as it is written, and every registry that brings it in asks
def faults(component: type[Component]) -> tuple[tuple[str, str], ...]:
    """What makes a component unusable as it is written: what to say after its name, and the remedy."""
    return tuple(_faults(component))


def _faults(component: type[Component]) -> Iterator[tuple[str, str]]:
    taken = component.__class_vars__ & component.model_fields.keys()
    for name in sorted(taken):
        yield f"has an option `{name}`, which is a setting of the class", f"write `{name} = ...`, without a type"
    version: Any = component.version
    if "version" not in taken and (type(version) is not int or version < 1):
        yield f"has the version {_shown(version)}, which is no whole number from 1", "write `version = 2`, for example"
    for owner in dict.fromkeys([component, *_nested(component)]):
        within = "" if owner is component else f" of `{owner.__name__}`"
        for name, why in _bad_defaults(owner):
            yield f"has an option `{name}`{within} whose default cannot be: {why}", _OPTIONS
        for name in _unsayable(owner):
            yield f"has an option `{name}`{within} of a type that no file can hold", _OPTIONS


def _unsayable(owner: type[Options]) -> list[str]:
    """Options such as functions, of which an editor's schema cannot be made either."""
    if _has_schema(owner):
        return []
    return [name for name, field in owner.model_fields.items() if not _has_schema(field.annotation)]


def _has_schema(annotation: Any) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PydanticJsonSchemaWarning)  # of defaults, which are looked at by themselves
        try:
            TypeAdapter(annotation).json_schema()
        except PydanticUserError:
            return False
    return True


def _bad_defaults(owner: type[Options]) -> Iterator[tuple[str, str]]:
    """Options whose default is not what their own type says, or could not be written to a file."""
    for name, field in owner.model_fields.items():
        if field.is_required():
            continue
        default = field.get_default(call_default_factory=True, validated_data={})
        if why := _invalid(owner, name, default) or _unwritable(default):
            yield name, why


def _invalid(owner: type[Options], name: str, default: Any) -> str | None:
    try:
        owner.__pydantic_validator__.validate_python({name: default})
    except ValidationError as error:
        # Other options may be missing or not fit together, which is for an experiment to say.
        found = [each for each in error.errors() if each["loc"][:1] == (name,)]
        return f"{_shown(found[0]['input'])}{_in_words(found[0]['msg'])}" if found else None
    except Exception:  # a component by its name, which needs a registry, or what a validator of the author's raises
        return None
    return None


def _unwritable(value: Any) -> str | None:
    try:
        json.dumps(value, allow_nan=False, default=_plain)
    except (TypeError, ValueError):
        return f"{_shown(value)} cannot be written as JSON"
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, Options):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return list(value)
    if isinstance(value, Enum):
        return value.value
    raise TypeError


def _nested(owner: type[Options], seen: frozenset[type[Options]] = frozenset()) -> Iterator[type[Options]]:
    """The classes of options inside of options; components are seen to where they are brought in."""
    for field in owner.model_fields.values():
        for found in _in_type(field.annotation):
            if found not in seen:
                yield found
                yield from _nested(found, seen | {found})


def _in_type(annotation: Any) -> Iterator[type[Options]]:
    if isinstance(annotation, type) and issubclass(annotation, Options) and not issubclass(annotation, Component):
        yield annotation
    for inner in get_args(annotation):
        yield from _in_type(inner)


def _in_words(message: str) -> str:
    expected = message.removeprefix("Input should be ")
    return f" is not {expected}" if expected != message else f": {message}"


def _shown(value: Any) -> str:
    scalar = value is None or isinstance(value, bool | int | float | str)
    return f"{value!r:.60}" if scalar else f"a {type(value).__name__}"
