"""``ablate plugins``: what is installed, one component in full, the contract suite, and a component to begin with."""

from __future__ import annotations

from pathlib import Path

from ablate.registry import Registry


def registry_with(plugins: list[Path]) -> Registry:
    """What is installed, and these files."""
    registry = Registry.installed()
    for plugin in plugins:
        registry.add_file(plugin, str(plugin))
    return registry
