"""A component as it would be named in an experiment: its options, and its slot's place in the file."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_origin

from pydantic import ValidationError

from ablate.experiment.schema import Settings
from ablate.registry import Entry, Registry, kind_of
from ablate.slots import Component, Options

MODEL = "decoder"
"""The model that an example names where several have the slot."""


def instance(entry: Entry, registry: Registry) -> Component | None:
    """The component with options at their defaults; one that must be given has the first of its field's ``examples``.

    None if that cannot be: an option without a default has no example, or the options do not fit together.
    """
    fields = entry.component.model_fields
    required = {name: field.examples[0] for name, field in fields.items() if field.is_required() and field.examples}
    optional = {name: field.examples[0] for name, field in fields.items() if field.examples}
    for options in (required, optional):
        try:
            return entry.component.model_validate({"kind": entry.kind, **options}, context={"registry": registry})
        except ValidationError:
            continue
    return None


def snippet(component: Component, registry: Registry) -> dict[str, Any] | None:
    """The component in its slot's place in an experiment, with the kinds of what holds it; None if there is no place.

    What is not given is left out: an option whose value is null.
    """
    dumped = component.model_dump(mode="json", exclude_none=True)
    options = {"kind": dumped.pop("kind"), **dumped}
    place = _place(component.slot, registry)
    return place(options["kind"] if options.keys() == {"kind"} else options) if place else None


Put = Callable[[Any], dict[str, Any]]


def _place(slot: str, registry: Registry) -> Put | None:
    """What puts a value where an experiment names the slot, as near to its root as can be."""
    waiting: deque[tuple[type[Options], Put]] = deque([(Settings, lambda inside: inside)])
    seen: set[type[Any]] = {Settings}
    while waiting:
        owner, put = waiting.popleft()
        for name, field in owner.model_fields.items():
            for found, listed in _options_in(field.annotation):
                into = _into(put, name, listed=listed)
                if issubclass(found, Component) and found.slot == slot:
                    return into
                for held in _choices(found, registry):
                    if held not in seen:
                        seen.add(held)
                        waiting.append((held, into if held is found else _as_kind(into, kind_of(held))))
    return None


def _choices(found: type[Options], registry: Registry) -> list[Any]:
    """The classes whose options may stand where ``found`` is asked for."""
    if not issubclass(found, Component):
        return [found]
    return sorted(registry.all(found.slot), key=lambda component: kind_of(component) != MODEL)


def _into(put: Put, name: str, *, listed: bool) -> Put:
    return lambda inside: put({name: [inside] if listed else inside})


def _as_kind(put: Put, kind: str) -> Put:
    return lambda inside: put({"kind": kind, **inside})


def _options_in(annotation: Any, *, listed: bool = False) -> Iterator[tuple[type[Options], bool]]:
    """The classes of options in a type, and whether each is in a list."""
    if isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, Options):
        yield annotation, listed
    for inner in get_args(annotation):
        yield from _options_in(inner, listed=listed or get_origin(annotation) is list)
