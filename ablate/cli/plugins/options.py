"""The options of a component in words: type, default and bounds, as its schema has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from ablate.experiment.yaml.writing import dump
from ablate.registry import kind_of
from ablate.slots import Component, Options
from ablate.slots.component import a

REQUIRED = "required"
TYPES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
    "null": "null",
    "object": "mapping",
    "array": "list",
}
BOUNDS = {
    "minimum": ">= {}",
    "exclusiveMinimum": "> {}",
    "maximum": "<= {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": "multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "matches {}",
}
Schema = Mapping[str, Any]


class Option(NamedTuple):
    """An option, as the command line shows it."""

    name: str
    """With a dot below what holds it, as ``layers.range``."""
    type: str
    default: str
    bounds: str
    description: str


def options_of(component: type[Component]) -> list[Option]:
    """Every option but the kind, those inside of options after what holds them."""
    schema = component.model_json_schema()
    definitions = schema.get("$defs", {})
    found = _properties(schema, definitions, "", component.model_fields)
    return [each for each in found if each.name != "kind"]


def _properties(schema: Schema, definitions: Schema, above: str, fields: Mapping[str, FieldInfo]) -> Iterator[Option]:
    for name, its in schema.get("properties", {}).items():
        default = REQUIRED if name in schema.get("required", ()) else _default(its, fields.get(name))
        words = " ".join(str(its.get("description", "")).split())
        yield Option(above + name, _type(its), default, ", ".join(dict.fromkeys(_bounds(its))), words)
        for reference in _references(its):
            inner = definitions[reference]
            if "properties" in inner and not above:
                yield from _properties(inner, definitions, f"{name}.", {})


def _type(schema: Schema) -> str:
    if "x-slot" in schema:
        return a(schema["x-slot"])
    if "anyOf" in schema:
        return _either(dict.fromkeys(map(_type, schema["anyOf"])))
    if "allOf" in schema:
        return _type(schema["allOf"][0])
    if "const" in schema:
        return written(schema["const"])
    if "enum" in schema:
        return _either(map(written, schema["enum"]))
    if "$ref" in schema:
        return "mapping"
    if schema.get("type") == "array" and "items" in schema:
        return f"list, each {_type(schema['items'])}"
    return TYPES.get(schema.get("type", ""), "any value")


def _either(words: Any) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _bounds(schema: Schema) -> Iterator[str]:
    for key, words in BOUNDS.items():
        if key in schema:
            yield words.format(schema[key])
    for inner in schema.get("anyOf", ()):
        yield from _bounds(inner)


def _references(schema: Any) -> Iterator[str]:
    """The definitions that a schema names."""
    if isinstance(schema, Mapping):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.rpartition("/")[2]
        for inner in schema.values():
            yield from _references(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _references(inner)


def _default(schema: Schema, field: FieldInfo | None) -> str:
    if field is None:
        return written(schema.get("default"))
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, Component) and value == type(value).model_construct():
        return written(kind_of(type(value)))
    return written(value.model_dump(mode="json", exclude_none=True) if isinstance(value, Options) else value)


def written(value: Any) -> str:
    """A value as YAML spells it, in one line."""
    try:
        return " ".join(dump({"": value}).split()).partition(": ")[2]
    except (TypeError, ValueError):
        return str(value)
