"""Components to be checked: instances of a class, and the same component with other options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from functools import cache
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from ablate.registry import Registry
from ablate.slots import Component, Options


@cache
def installed() -> Registry:
    """The registry of what is installed."""
    return Registry.installed()


def without_example(component: type[Component]) -> str | None:
    """The options that are required and have no example, in words."""
    bare = [f"`{name}`" for name, field in component.model_fields.items() if field.is_required() and not field.examples]
    if not bare:
        return None
    verb = "is required and has no example" if len(bare) == 1 else "are required and have no example"
    return f"{', '.join(bare)}, which {verb}"


def default(component: type[Component], registry: Registry | None = None) -> Component:
    """A component with its default options; one that is required takes the first of its field's ``examples``.

    Where the options do not fit together so, as where one of two must be given, one that has an example takes that too.
    """
    examples = {name: field.examples[0] for name, field in component.model_fields.items() if field.examples}
    required = {name: examples[name] for name, field in component.model_fields.items() if field.is_required()}
    try:
        return with_options(component, required, registry)
    except ValidationError:
        for name in examples.keys() - required.keys():
            with suppress(ValidationError):
                return with_options(component, {**required, name: examples[name]}, registry)
        raise


def with_options(component: type[Component], options: dict[str, Any], registry: Registry | None) -> Component:
    """A component with these options, validated as an experiment's are."""
    return component.model_validate(options, context={"registry": registry or installed()})


def others(component: Component, name: str, registry: Registry) -> Iterator[Component]:
    """The same component with other valid values of one option."""
    field = type(component).model_fields[name]
    value = getattr(component, name)
    kept = {other: getattr(component, other) for other in component.model_fields_set}
    for candidate in (*(field.examples or ()), *_values(field.annotation, value, registry)):
        try:
            other = with_options(type(component), {**kept, name: candidate}, registry)
        except Exception:  # out of bounds, or not together with another option
            continue
        found = getattr(other, name)
        if type(found) is not type(value) or found != value:
            yield other


def _values(annotation: Any, value: Any, registry: Registry) -> Iterator[Any]:
    """Values that an option of this type may have; not all of them are within its bounds."""
    if annotation is bool:
        yield from (True, False)
    elif annotation is int:
        known = value if type(value) is int else 4
        yield from (known * 2, known + 1, known - 1, known // 2, 1, 2)
    elif annotation is float:
        size = float(value) if isinstance(value, int | float) else 1.0
        yield from (size / 2, size * 2, size + 0.25, 0.5, 0.25, 0.9)
    elif annotation is str:
        yield from (f"{value}2", "other")
    elif annotation is None or annotation is type(None):
        yield None
    elif get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from annotation
    elif isinstance(annotation, type) and issubclass(annotation, Component):
        yield from _components(annotation, registry)
    elif get_origin(annotation) not in (list, tuple, dict, set, frozenset):
        for inner in get_args(annotation):
            yield from _values(inner, value, registry)


def _components(slot: type[Component], registry: Registry) -> Iterator[Component]:
    for component in registry.all(slot.slot):
        try:
            yield default(component, registry)
        except Exception:  # it cannot be made by its defaults, which is for its own checks to say
            continue


def groups(owner: type[Options]) -> Iterator[type[Options]]:
    """A class of options, and the classes of options inside of it that are no components."""
    yield owner
    for field in owner.model_fields.values():
        for inner in _classes(field.annotation):
            if issubclass(inner, Options) and not issubclass(inner, Component) and inner is not owner:
                yield from groups(inner)


def _classes(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        yield annotation
    for inner in get_args(annotation):
        yield from _classes(inner)
