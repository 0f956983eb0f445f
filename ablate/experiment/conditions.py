"""Conditions: what an arm must have for a factor to be part of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ablate.experiment.identity import text, written
from ablate.experiment.levels import Bench
from ablate.experiment.paths import MISSING, Place, alone, class_at, readers, slots_at, value_at
from ablate.experiment.problems import diagnose
from ablate.registry import Registry, closest


@dataclass(frozen=True)
class Condition:
    """Values that an arm must have one of at a path; a component is meant by its kind or by all of its options."""

    path: Place
    kinds: frozenset[str] = frozenset()
    """Kinds of the component there."""
    values: frozenset[str] = frozenset()
    """Values there, as canonical text, so that types stay apart; in an option that takes fractions 1 is 1.0."""

    def holds(self, raw: Any, registry: Registry) -> bool:
        """Whether a spelled setup fulfils it; one that has no such option does not."""
        kind = value_at((*self.path, "kind"), raw, registry) if self.kinds else MISSING
        return kind in self.kinds or (bool(self.values) and _key(self.path, raw, registry) in self.values)

    def excludes(self, other: Condition) -> bool:
        """Whether no arm can fulfil both."""
        alike = bool(self.kinds) == bool(other.kinds) and bool(self.values) == bool(other.values)
        return self.path == other.path and alike and not self.kinds & other.kinds and not self.values & other.values


def exclusive(one: Iterable[Condition], other: Sequence[Condition]) -> bool:
    """Whether no arm can fulfil all conditions of both factors."""
    return any(mine.excludes(theirs) for mine in one for theirs in other)


def read_condition(bench: Bench, path: Place, value: Any, place: Place) -> Condition:
    """What `when` says of a path; a value that could never be there is noted as a problem."""
    slots = slots_at(path, bench.registry)
    if path[-1] == "kind" and (around := slots_at(path[:-1], bench.registry)):
        path, slots = path[:-1], around
    if not isinstance(value, list) or _accepted(bench, path, value) is not None:
        listed = [(value, place)]
    else:
        listed = [(each, (*place, index)) for index, each in enumerate(value)]
    if not listed:
        bench.report("S103", "`when` names no value", place, otherwise="write the value, or a list of values")
    kinds: set[str] = set()
    values: set[str] = set()
    for each, at in listed:
        if slots and isinstance(each, str):
            known = sorted({kind for slot in slots for kind in bench.registry.kinds(slot)})
            if each not in known:
                words = f"no {slots[0]} is called `{each}`"
                bench.report("S102", words, at, closest(each, known), otherwise=f"there is: {', '.join(known)}")
            kinds.add(each)
        elif (key := _accepted(bench, path, each)) is not None:
            values.add(key)
        else:
            _report(bench, path, each, at)
    return Condition(path, frozenset(kinds), frozenset(values))


def _accepted(bench: Bench, path: Place, value: Any) -> str | None:
    """The canonical text of a value, if it may stand at a path in any component; None if it may not."""
    for owner, name in readers(path, bench.registry):
        try:
            found = alone(owner, name).model_validate({name: value}, context={"registry": bench.registry})
        except ValidationError:
            continue
        return text(written(getattr(found, name)))
    return None


def _report(bench: Bench, path: Place, value: Any, place: Place) -> None:
    """Note why a value cannot stand at a path."""
    owner, name = readers(path, bench.registry)[0]
    try:
        alone(owner, name).model_validate({name: value}, context={"registry": bench.registry})
    except ValidationError as error:
        bench.problems += diagnose(error, bench.document, bench.registry, data={name: value}, origins={(name,): place})


def _key(path: Place, raw: Any, registry: Registry) -> str | None:
    """The canonical text of what stands at a path; None where nothing does."""
    found, owner, name = value_at(path, raw, registry), class_at(path[:-1], raw, registry), str(path[-1])
    if found is MISSING or owner is None or name not in owner.model_fields:
        return None
    try:
        option = alone(owner, name).model_validate({name: found}, context={"registry": registry})
    except ValidationError:  # the arm is refused for it
        return None
    return text(written(getattr(option, name)))
