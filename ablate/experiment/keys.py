"""What was meant by a key, a path or a word that nothing reads, and how a key that is missing is written.

It may be misspelt, be the name of another place, or be another tool's word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from ablate.experiment.paths import Place, class_at, fields_at
from ablate.experiment.schema import Factor
from ablate.experiment.settings import Setup
from ablate.registry import Registry, closest
from ablate.slots import Component, Options

ELSEWHERE = {
    "direction": "goal",
    "mode": "goal",
    "learning_rate": "lr",
    "batch_size": "batch",
    "max_steps": "steps",
    "max_epochs": "steps",
    "epochs": "steps",
    "d_model": "width",
    "hidden_size": "width",
    "n_layers": "depth",
    "num_layers": "depth",
    "n_heads": "heads",
    "num_heads": "heads",
}
"""What other tools call a key, and its name here."""
VALUES = {
    "factorial": "full",
    "full_factorial": "full",
    "grid": "full",
    "cartesian": "full",
    "ofat": "one_at_a_time",
    "oat": "one_at_a_time",
    "single": "one_at_a_time",
    "ablation": "leave_one_out",
    "loo": "leave_one_out",
}
"""What other tools call a value, and its name here."""
PRUNERS = ("asha", "bohb", "hyperband")
"""What other tools call ways to give up trials that are behind, and that does not say so."""
HALVING = "`halving: {reduction: 3, rungs: 2}`"
"""How the one way that there is here is written."""
STEPS = "budget.steps"
"""The path of the one thing that an arm may have of its own beside its setup."""
NO_FACTOR = {
    "seeds": "seeds are replicates and no factor: every arm is trained with each of them",
    "seed": "seeds are replicates and no factor: every arm is trained with each of them, as in `seeds: 6`",
    "budget": f"of the budget, arms differ in `{STEPS}` alone",
    "steps": f"did you mean `{STEPS}`?",
}
"""What is meant to be varied and is no path, and why it is none or which one is meant."""

DEEPEST = 5
"""How many steps below a place an option of some name is looked for."""


def meant(place: Place, data: Any, registry: Registry) -> str:
    """The help for the unknown key at ``place``: how it is spelled, where it belongs, or what there is."""
    around, name = place[:-1], str(place[-1])
    options = fields_at(around, data, registry)
    word = ELSEWHERE.get(name, name)
    homes = [home for home in _sections(data, registry) if word in fields_at(home, data, registry)]
    if word in options:
        return f"did you mean `{word}`?"
    if around[:1] not in (("model",), ("task",)) and (help := instead_of_pruning(name, "halving" in options)):
        return help
    if 1 <= len(homes) <= 2:
        return f"`{word}` belongs {' or '.join(_told(home) for home in homes)}"
    near = closest(name, options)
    return f"did you mean `{near}`?" if near else f"there is: {', '.join(options)}"


def meant_value(word: str, choices: Iterable[str]) -> str | None:
    """Which of the choices was meant: another tool's word for it, or a misspelling; None where none is near."""
    choices = list(choices)
    here = VALUES.get(word.lower().replace("-", "_").replace(" ", "_"))
    return here if here in choices else closest(word, choices)


def instead_of_pruning(word: str, tuning: bool) -> str | None:
    """The help for another tool's word for giving up trials that are behind; None for any other word.

    Args:
        word: a key or a value that nothing reads.
        tuning: whether it stands in `tune`.
    """
    plain = "".join(filter(str.isalnum, word.lower()))
    if plain not in PRUNERS and not any(part in plain for part in ("prun", "halving", "earlystop")):
        return None
    if tuning:
        return f"trials are pruned by {HALVING}, whatever the method"
    return f"trials are pruned by {HALVING} in `tune`, and nowhere else: those that are reported train to their end"


def deeper(around: Place, name: str, data: Any, registry: Registry) -> list[Place]:
    """Where below a place there is an option of this name, or of what it is called here: the nearest ones."""
    name = ELSEWHERE.get(name, name)
    places = [around]
    for _ in range(DEEPEST):
        places = [(*place, inner) for place in places for inner in fields_at(place, data, registry) if inner != "kind"]
        if found := [place for place in places if place[-1] == name]:
            return found
    return []


def meant_path(steps: Sequence[str], factors: Mapping[str, Factor], data: Any, registry: Registry) -> str | None:
    """The help for a path of another start: the path of a factor, an option deeper down, or a start that is near."""
    dotted, (name, *rest) = ".".join(steps), steps
    if why := NO_FACTOR.get(ELSEWHERE.get(dotted, dotted)):
        return why
    if name == "budget":
        return NO_FACTOR[closest(ELSEWHERE.get(rest[-1], rest[-1]), ["steps"]) or name]
    factor = factors.get(dotted)
    if factor and (path := factor.path or factor.switch):
        return f"did you mean `{path}`?"
    if factor and isinstance(factor.levels, dict):
        paths = dict.fromkeys(path for changes in factor.levels.values() for path in changes)
        sets = f": its levels set {', '.join(f'`{path}`' for path in paths)}" if paths else ""
        return f"`{dotted}` is a factor, and a path is wanted{sets}"
    if inner := in_setup(name, data, registry):
        return did_you_mean(inner, rest)
    near = closest(name, Setup.model_fields)
    return f"did you mean `{'.'.join([near, *rest])}`?" if near and rest else None


def did_you_mean(places: Iterable[Place], rest: Sequence[str] = ()) -> str:
    """The guess that one of a few places was meant, each with the steps that follow it."""
    paths = [f"`{'.'.join([*map(str, place), *rest])}`" for place in places][:3]
    return f"did you mean {' or '.join(paths)}?"


def in_setup(name: str, data: Any, registry: Registry) -> list[Place]:
    """Where in a setup there is an option of this name, or of what it is called here: the places of fewest steps."""
    found = [place for section in Setup.model_fields for place in deeper((section,), name, data, registry)]
    return [place for place in found if len(place) == min(map(len, found))]


def to_write(place: Place, data: Any, registry: Registry) -> str | None:
    """The help for the required key that is missing at ``place``: its form, and what there is for it or what it is."""
    name, owner = str(place[-1]), class_at(place[:-1], data, registry)
    field = owner.model_fields.get(name) if owner else None
    if field is None:
        return None
    if _is_slot(field.annotation):
        kinds = registry.kinds(field.annotation.slot)
        return f"write `{name}: {_form(field.annotation, registry)}`; there is: {', '.join(kinds)}"
    if _is_section(field.annotation):
        return f"write `{name}: {_form(field.annotation, registry)}`"
    return field.description.split("\n")[0] if field.description else None


def _form(annotation: Any, registry: Registry) -> str:
    """How a value of a type is written: what it cannot do without, and an ellipsis for what is not known."""
    if _is_slot(annotation):
        slot = annotation
        kind = slot.usual or slot.default or next(iter(registry.kinds(slot.slot)), "KIND")
        return f"{{kind: {kind}, …}}"
    if _is_section(annotation):
        required = {name: field for name, field in annotation.model_fields.items() if field.is_required()}
        return f"{{{', '.join(f'{name}: {_form(field.annotation, registry)}' for name, field in required.items())}}}"
    return "…"


def _is_slot(annotation: Any) -> TypeGuard[type[Component]]:
    return _is_section(annotation) and issubclass(annotation, Component) and annotation.is_slot()


def _is_section(annotation: Any) -> TypeGuard[type[Options]]:
    return isinstance(annotation, type) and issubclass(annotation, Options)


def _told(home: Place) -> str:
    return f"in `{'.'.join(map(str, home))}`" if home else "at the top of the file"


def _sections(data: Any, registry: Registry) -> Iterator[Place]:
    """The top of the file, its sections, and the components in them."""
    yield ()
    for section in fields_at((), data, registry):
        yield (section,)
        inside = data.get(section) if isinstance(data, Mapping) else None
        if isinstance(inside, Mapping) and section != "factors":
            yield from ((section, key) for key, value in inside.items() if isinstance(value, Mapping))
