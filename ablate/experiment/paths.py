"""Paths into an experiment: which class reads a place, and which value stands there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import create_model

from ablate.experiment.identity import spelled
from ablate.experiment.schema import Settings
from ablate.experiment.yaml.nodes import Place
from ablate.registry import Registry
from ablate.slots import Component, Options

__all__ = ["MISSING", "Place", "alone", "class_at", "fields_at", "overlap", "readers", "slots_at", "unread", "value_at"]


def fields_at(place: Place, data: Any, registry: Registry) -> list[str]:
    """The keys that may stand at a place."""
    owner = class_at(place, data, registry)
    if owner is None:
        return []
    return ["schema" if name == "schema_version" else name for name in owner.model_fields]


def class_at(place: Place, data: Any, registry: Registry) -> type[Options] | None:
    """The class whose options stand at a place, or None where there are no options."""
    annotation: Any = Settings
    value = data
    for step in place:
        annotation = _annotation_of(step, annotation, value, registry)
        value = _inside(value, step)
    return next(_options(annotation, value, registry), None)


def overlap(one: Place, other: Place) -> Place | None:
    """The deeper of two places if the other is around it or is the same."""
    shorter, deeper = sorted((one, other), key=len)
    return deeper if deeper[: len(shorter)] == shorter else None


class Missing:
    """What stands at a path that nothing reads, or where a value is required and not given."""


MISSING = Missing()


def value_at(path: Place, data: Any, registry: Registry) -> Any:
    """The value that a path has in a spelled setup, the defaults of its components included; MISSING if none."""
    owner: type[Options] | None = Settings
    value = data
    for step in path:
        field = owner.model_fields.get(str(step)) if owner else None
        inner = _inside(value, step)
        if inner is None and not (isinstance(value, Mapping) and step in value):
            if field is None or field.is_required():
                return MISSING
            inner = spelled(field.get_default(call_default_factory=True, validated_data={}))
        value = inner
        owner = next(_options(field.annotation, value, registry), None) if field else None
    return value


def unread(path: Place, registry: Registry) -> tuple[int, list[str]] | None:
    """The first step of a path that no component reads, of whatever kind, and what could stand there; None if none."""
    annotations: list[Any] = [Settings]
    for index, step in enumerate(path):
        owners = [owner for annotation in annotations for owner in _any_options(annotation, registry)]
        annotations = [owner.model_fields[str(step)].annotation for owner in owners if step in owner.model_fields]
        if not annotations:
            return index, sorted({name for owner in owners for name in owner.model_fields})
    return None


def readers(path: Place, registry: Registry) -> list[tuple[type[Options], str]]:
    """Every option that a path may mean, whatever components are named around it: its class and its name there."""
    annotations: list[Any] = [Settings]
    found: list[tuple[type[Options], str]] = []
    for step in path:
        owners = [owner for annotation in annotations for owner in _any_options(annotation, registry)]
        found = [(owner, str(step)) for owner in owners if step in owner.model_fields]
        annotations = [owner.model_fields[name].annotation for owner, name in found]
    return found


def slots_at(path: Place, registry: Registry) -> list[str]:
    """The slots of the components that may stand at a path."""
    branches = [
        branch for owner, name in readers(path, registry) for branch in _branches(owner.model_fields[name].annotation)
    ]
    return list(dict.fromkeys(branch.slot for branch in branches if _is_slot(branch)))


@cache
def alone(owner: type[Options], name: str) -> type[Options]:
    """One option without the others beside it, to check a value by."""
    field = owner.model_fields[name]
    options: dict[str, Any] = {name: (field.annotation, field)}
    return create_model(f"{owner.__name__}.{name}", __base__=Options, **options)


def _inside(value: Any, step: str | int) -> Any:
    """What stands under a step; a component that is given by its name alone has its kind there."""
    if isinstance(value, str) and step == "kind":
        return value
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return value.get(step) if isinstance(value, Mapping) else None


def _any_options(annotation: Any, registry: Registry) -> Iterator[type[Options]]:
    """The classes of options that a type may have, whatever component is named."""
    for branch in _branches(annotation):
        if _is_slot(branch):
            yield from registry.all(branch.slot)
        elif isinstance(branch, type) and issubclass(branch, Options):
            yield branch


def _annotation_of(step: str | int, annotation: Any, value: Any, registry: Registry) -> Any:
    """The type of what stands under ``step`` in something of this type."""
    for branch in _branches(annotation):
        if get_origin(branch) in (dict, list):
            return get_args(branch)[-1]
    for owner in _options(annotation, value, registry):
        if step in owner.model_fields:
            return owner.model_fields[str(step)].annotation
    return None


def _options(annotation: Any, value: Any, registry: Registry) -> Iterator[type[Options]]:
    """The classes of options in a type; a slot gives the class of the component that the value names."""
    for branch in _branches(annotation):
        if not (isinstance(branch, type) and issubclass(branch, Options)):
            continue
        if issubclass(branch, Component) and branch.is_slot():
            kind = value.get("kind") if isinstance(value, Mapping) else value or branch.default
            if kind in registry.kinds(branch.slot):
                yield registry.get(branch.slot, kind)
        else:
            yield branch


def _is_slot(branch: Any) -> bool:
    return isinstance(branch, type) and issubclass(branch, Component) and branch.is_slot()


def _branches(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
