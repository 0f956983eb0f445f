"""Where an experiment came from: the commit, and the components with their code."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ablate.experiment.reading import Document, Place
from ablate.experiment.settings import Setup
from ablate.registry import Registry, kind_of
from ablate.slots import Interface, Model, Options, named, parts_of


def git_state(folder: Path) -> dict[str, Any] | None:
    """The commit that the folder is at, and whether files differ from it; None outside of a repository."""

    def git(*arguments: str) -> str:
        shown = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
        return shown.stdout.strip()

    try:
        return {"commit": git("rev-parse", "--short=12", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):  # no git, no repository, no commit: nothing to state
        return None


def components_of(values: Iterable[Options], registry: Registry) -> list[dict[str, Any]]:
    """Every component that the values are made of, with its origin, its version and the hash of its source."""
    used = {(component.slot, kind_of(type(component))): component for value in values for component in parts_of(value)}
    listed = []
    for (slot, kind), component in sorted(used.items()):
        entry = registry.entry(slot, kind)
        listed.append(
            {"slot": slot, "kind": kind, "origin": entry.origin, "version": component.version, "source": entry.digest}
        )
    return listed


def notes_of(setup: Setup, interface: Interface) -> list[str]:
    """What the parts of a model declare that a reader of its results must know, as ``norm `batch`: ...``."""
    ahead = interface.form == "classification"  # where a whole sequence is read before anything is said of it
    parts = [part for part in parts_of(setup.model.effective()) if not isinstance(part, Model)]
    told = [(part, replace(part.traits(), causal=part.traits().causal or ahead)) for part in parts]
    return list(dict.fromkeys(f"{named(part)}: {note}" for part, traits in told for note in traits.notes()))


def sources(document: Document) -> dict[str, str]:
    """Where every value of the baseline was written, as ``norm.yaml:7``, by dotted path."""
    found = {}
    for place in document.values:
        if (
            place
            and place[0] in ("model", "task", "training", "budget", "diverged")
            and not _has_parts(document, place)
        ):
            found[".".join(map(str, place))] = document.located(place)
    return found


def _has_parts(document: Document, place: Place) -> bool:
    value: Any = document.data
    for step in place:
        value = value[step]
    return isinstance(value, dict | list) and bool(value)
