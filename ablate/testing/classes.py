"""Checks of a component as a class: how it is imported, written and described."""

from __future__ import annotations

import inspect
import re

from ablate.registry import FILE
from ablate.slots import Component, Traits
from ablate.slots.soundness import faults, lacks
from ablate.testing.case import Case
from ablate.testing.importing import imported_alone
from ablate.testing.making import groups

# The paper's names and year, or the document's: something must follow the word.
_SOURCE = re.compile(r"Sources?:\s+\S+\s+\S+")


def imports(component: type[Component]) -> str | None:
    """The module is imported by a fresh interpreter, and leaves torch, numpy and random as they were."""
    name = component.__module__
    file = inspect.getfile(component) if name.startswith(FILE) else None
    return imported_alone(name, file)


def sound(component: type[Component]) -> str | None:
    """The class has all that its slot asks for, and options that a file can hold."""
    wrong = [f"no `{name}`" for name in lacks(component)]
    if "kind" not in component.model_fields:
        wrong.append("no `kind`")
    wrong += [f"a class that {what} ({remedy})" for what, remedy in faults(component)]
    return "; ".join(wrong) or None


def described(component: type[Component]) -> str | None:
    """The docstring's first line is the description everywhere."""
    first = (component.__dict__.get("__doc__") or "").strip().split("\n")[0]
    if not first:
        return "no docstring"
    return "a source in the first line" if _SOURCE.match(first) else None


def options_described(component: type[Component]) -> str | None:
    """Each option has a docstring under it."""
    bare = [
        f"`{name}`" if owner is component else f"`{name}` of `{owner.__name__}`"
        for owner in dict.fromkeys(groups(component))
        for name, field in owner.model_fields.items()
        if name != "kind" and not (field.description or "").strip()
    ]
    return f"nothing under {', '.join(bare)}" if bare else None


def sourced(component: type[Component]) -> str | None:
    """The docstring says where the component comes from."""
    return None if _SOURCE.search(component.__doc__ or "") else "no `Source:` in the docstring"


def declares(case: Case) -> str | None:
    """``traits`` is a pure function of the options."""
    found = case.component.traits()
    if not isinstance(found, Traits):
        return f"a {type(found).__name__}"
    return None if found == case.component.traits() else "two different ones"
