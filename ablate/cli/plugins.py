"""``ablate plugins``: what is installed."""

from __future__ import annotations

from pathlib import Path

from ablate.cli.output import console, print_json, print_table
from ablate.registry import Registry


def registry_with(plugins: list[Path]) -> Registry:
    """What is installed, and these files."""
    registry = Registry.installed()
    for plugin in plugins:
        registry.add_file(plugin, str(plugin))
    return registry


def list_plugins(plugins: list[Path], *, as_json: bool) -> None:
    """Print every component, and what could not be used."""
    registry = registry_with(plugins)
    entries = [
        {
            "slot": entry.component.slot,
            "kind": entry.kind,
            "origin": entry.origin,
            "version": entry.component.version,
            "description": entry.component.describe(),
        }
        for entry in registry.entries()
    ]
    broken = [{"origin": each.origin, "error": each.error} for each in registry.broken]
    if as_json:
        print_json({"components": entries, "broken": broken})
        return
    print_table([(name, False) for name in entries[0]], [[str(value) for value in each.values()] for each in entries])
    for each in broken:
        console().print(f"cannot be used: {each['origin']}: {each['error']}")
