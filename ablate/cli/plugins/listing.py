"""``ablate plugins list``: every component that can be named, and the plugins that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ablate.cli.output import console, print_json, print_table
from ablate.cli.plugins import registry_with
from ablate.cli.plugins.naming import slot_called
from ablate.registry import Entry, Registry
from ablate.slots import SLOTS


def list_plugins(plugins: list[Path], *, slot: str | None, as_json: bool) -> None:
    """Print the components of every slot, or of one, and what could not be used."""
    registry = registry_with(plugins)
    entries = [_told(entry) for name in ([slot_called(slot)] if slot else SLOTS) for entry in _of(name, registry)]
    broken = [{"origin": each.origin, "error": each.error} for each in registry.broken]
    if as_json:
        print_json({"components": entries, "broken": broken})
        return
    columns = ("slot", "kind", "origin", "version", "status", "description")
    print_table([(name, False) for name in columns], [[str(each[name]) for name in columns] for each in entries])
    for each in broken:
        console().print(f"broken: {each['origin']}: {each['error']}")


def status(entry: Entry) -> str:
    """What a component is to its slot: ``ok``, or what stands there by itself, or what ``off`` puts there."""
    component = entry.component
    special = {"default": component.default, "neutral": component.neutral}
    return ", ".join(word for word, kind in special.items() if kind == entry.kind) or "ok"


def _of(slot: str, registry: Registry) -> Iterator[Entry]:
    return (registry.entry(slot, kind) for kind in registry.kinds(slot))


def _told(entry: Entry) -> dict[str, Any]:
    component = entry.component
    return {
        "slot": component.slot,
        "kind": entry.kind,
        "origin": entry.origin,
        "version": component.version,
        "status": status(entry),
        "description": component.describe(),
    }
