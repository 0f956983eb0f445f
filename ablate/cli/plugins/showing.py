"""``ablate plugins show``: one component in full."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ablate.cli.output import console, print_json, print_table
from ablate.cli.plugins import registry_with
from ablate.cli.plugins.examples import instance, snippet
from ablate.cli.plugins.listing import status
from ablate.cli.plugins.naming import component_called
from ablate.cli.plugins.options import options_of
from ablate.experiment.yaml.writing import dump
from ablate.registry import Entry, Registry
from ablate.slots import Component, Traits
from ablate.slots.model import __name__ as OF_A_MODEL

PROPERTIES: dict[str, tuple[str | None, str | None]] = {
    "causal": ("causal: nothing depends on a later token", "not causal: a token sees later ones of its sequence"),
    "position_wise": ("position-wise: a token depends on itself alone", None),
    "batch_dependent": ("batch-dependent: in training a sequence sees the others of its batch", None),
    "needs_attention": ("needs a mixer with queries and keys", None),
    "attends": ("has queries and keys, on which positions and scales act", None),
    "crosses": ("can read another sequence, as cross-attention does", None),
    "cached": ("goes on from a cache, token by token", None),
    "fused": (None, "takes attention's fused kernel away"),
    "vmap": ("runs under torch.func.vmap", "does not run under torch.func.vmap"),
    "compiles": ("compiles as one graph", "does not compile as one graph"),
}
"""What is said of each trait that holds, and of each that does not."""


def show_plugin(name: str, plugins: list[Path], *, as_json: bool) -> None:
    """Print a component: what it is, where it comes from, its options, and how it is named in an experiment."""
    registry = registry_with(plugins)
    told = describe(component_called(name, registry), registry)
    if as_json:
        print_json(told)
        return
    out = console()
    out.print(f"{told['slot']}.{told['kind']}  {told['description']}")
    if told["details"]:
        out.print(told["details"])
    out.print()
    rows = [
        ["origin", f"{told['origin']}, version {told['version']}"],
        ["paper", told["paper"] or "none is named"],
        ["code", f"{told['file']}:{told['line']}, hash {told['source']}"],
        ["status", told["status"]],
    ]
    rows += [["properties" if not index else "", line] for index, line in enumerate(told["properties"])]
    for key, value in rows:
        out.print(f"{key:12}{value}")
    out.print()
    if told["options"]:
        columns = ("name", "type", "default", "bounds", "description")
        titles = [("option" if name == "name" else name, False) for name in columns]
        print_table(titles, [[each[name] for name in columns] for each in told["options"]])
    else:
        out.print("no options")
    out.print()
    if told["yaml"]:
        out.print("in an experiment:")
        out.print("".join(f"  {line}\n" for line in told["yaml"].splitlines()), end="")
    else:
        out.print(f"in an experiment: {told['without_yaml']}")


def describe(entry: Entry, registry: Registry) -> dict[str, Any]:
    """Everything that is shown of a component, as JSON values."""
    component = entry.component
    example = instance(entry, registry)
    traits = _traits(example)
    values = snippet(example, registry) if example else None
    why = "no experiment names it: what is installed, or in `plugins`, is used" if example else "give its options"
    details, paper = _docstring(component)
    return {
        "slot": component.slot,
        "kind": entry.kind,
        "description": component.describe(),
        "details": details,
        "paper": paper,
        "origin": entry.origin,
        "version": component.version,
        "status": status(entry),
        "file": _near(inspect.getfile(component)),
        "line": inspect.getsourcelines(component)[1],
        "source": entry.digest,
        "options": [each._asdict() for each in options_of(component)],
        "traits": asdict(traits) if traits else None,
        "properties": list(_in_words(traits)) if traits else [],
        "yaml": dump(values) if values else None,
        "without_yaml": None if values else why,
    }


def _traits(example: Component | None) -> Traits | None:
    """What is declared; nothing for slots that are no part of a model, to which no trait is about."""
    slot = example and next((each for each in type(example).__mro__ if "slot" in each.__dict__), None)
    return example.traits() if example and slot and slot.__module__ == OF_A_MODEL else None


def _in_words(traits: Traits) -> Iterator[str]:
    for name, (held, not_held) in PROPERTIES.items():
        if words := held if getattr(traits, name) else not_held:
            yield words


def _docstring(component: type[Component]) -> tuple[str, str]:
    """What the docstring says between its first line and its source, and the source."""
    lines = inspect.cleandoc(component.__doc__ or "").split("\n", 1)
    rest, *papers = re.split(r"\bSources?:", lines[1] if len(lines) > 1 else "")
    paragraphs = [" ".join(each.split()) for each in re.split(r"\n\s*\n", rest)]
    paper = " ".join((papers[0] if papers else "").split("\n\n")[0].split())
    return "\n".join(filter(None, paragraphs)), paper.rstrip(".")


def _near(file: str) -> str:
    """A path from here, if it lies below."""
    path = Path(file).resolve()
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
