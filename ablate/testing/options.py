"""Checks of a component as a value: it is written, read, compared and hashed without loss."""

from __future__ import annotations

import pickle
from typing import Any

from ablate.experiment.identity import canonical, digest, spelled, text
from ablate.experiment.reading import parse
from ablate.experiment.yaml.writing import dump
from ablate.slots import Component
from ablate.testing.case import Case
from ablate.testing.making import others, with_options


def round_trip(case: Case) -> str | None:
    """Options survive JSON."""
    written = case.component.model_dump(mode="json")
    read = with_options(type(case.component), written, case.registry)
    return None if read == case.component else f"{read!r}"


def yaml_round_trip(case: Case) -> str | None:
    """Options survive YAML, written as an experiment would."""
    written = dump({case.component.slot: spelled(case.component)})
    document = parse(written, "experiment.yaml").data
    read = with_options(type(case.component), document[case.component.slot], case.registry)
    return None if read == case.component else f"{read!r}, from {written!r}"


def is_value(case: Case) -> str | None:
    """Equal components are one key."""
    again = with_options(type(case.component), _written_out(case.component), case.registry)
    if again != case.component:
        return "two that differ"
    return None if len({again, case.component}) == 1 else "two hashes of equal components"


def pickled(case: Case) -> str | None:
    """A component goes to another process."""
    read = pickle.loads(pickle.dumps(case.component))
    return None if read == case.component else f"{read!r}"


def identified(case: Case) -> str | None:
    """The identity is stable, and every option that is alive is part of it."""
    component, registry = case.component, case.registry
    text(canonical(component))
    own = digest(component)
    if digest(with_options(type(component), _written_out(component), registry)) != own:
        return "another digest when defaults are written out"
    if digest(component.effective()) != own:
        return "another digest of what `effective()` gives"
    same = [name for name in type(component).model_fields if _merged(case, name)]
    return f"the same digest for other values of {', '.join(f'`{name}`' for name in same)}" if same else None


def _merged(case: Case, name: str) -> bool:
    """Whether two values of an option have one digest though neither is dead."""
    own = digest(case.component)
    return any(
        digest(other) == own and other.effective() != case.component.effective()
        for other in others(case.component, name, case.registry)
    )


def _written_out(component: Component) -> dict[str, Any]:
    return {name: getattr(component, name) for name in type(component).model_fields}
