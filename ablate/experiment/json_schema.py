"""The editor's schema of an experiment file, made from the same classes that validate it."""

from __future__ import annotations

from typing import Any

from ablate.experiment.schema import Settings
from ablate.registry import Registry, kind_of
from ablate.slots import SLOTS, Component

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(registry: Registry) -> dict[str, Any]:
    """The schema of an experiment, with every component that the registry knows (Draft 2020-12)."""
    schema = Settings.model_json_schema(by_alias=True)
    definitions = schema.setdefault("$defs", {})
    for slot in SLOTS:
        components = registry.all(slot)
        names = {
            "enum": [kind_of(component) for component in components],
            "description": f"{SLOTS[slot].describe()} By name, with every option at its default.",
        }
        options = []
        for component in components:
            name = f"{slot}.{kind_of(component)}"
            # Options inside of options go by the component's name too: two plugins may call theirs the same.
            own = component.model_json_schema(ref_template=f"#/$defs/{name}.{{model}}")
            definitions |= {f"{name}.{inner}": schema for inner, schema in own.pop("$defs", {}).items()}
            definitions[name] = own | {"required": sorted({"kind", *own.get("required", [])})}
            options.append({"$ref": f"#/$defs/{name}"})
        needs_options = {kind_of(component) for component in components if _required(component)}
        names["enum"] = [name for name in names["enum"] if name not in needs_options]
        definitions[slot] = {"anyOf": [names, *options] if names["enum"] else options}
    return {"$schema": DIALECT, **_linked(schema), "title": "An experiment of Ablate"}


def _required(component: type[Component]) -> bool:
    return any(field.is_required() for field in component.model_fields.values())


def _linked(value: Any) -> Any:
    """The schema with each mark of a slot replaced by a reference, and without defaults that only code knows."""
    if isinstance(value, dict):
        if "x-slot" in value:
            rest = {key: _linked(item) for key, item in value.items() if key not in ("x-slot", "default")}
            return {"$ref": f"#/$defs/{value['x-slot']}", **rest}
        return {key: _linked(item) for key, item in value.items()}
    return [_linked(item) for item in value] if isinstance(value, list) else value
