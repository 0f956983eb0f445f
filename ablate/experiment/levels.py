"""Levels: what one value of a factor sets, what it is called, and the setup that levels make of the baseline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ablate.errors import Diagnostic, InputError, visible
from ablate.experiment.identity import canonical, spelled, text
from ablate.experiment.paths import Place, class_at, overlap, value_at
from ablate.experiment.problems import diagnose, in_order
from ablate.experiment.reading import Document
from ablate.experiment.schema import Settings
from ablate.experiment.settings import Budget, Setup, Trained
from ablate.experiment.yaml.scalars import resolve
from ablate.registry import Registry
from ablate.slots import SLOTS, Component

_BRACKETS = re.compile(r"\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\}")


@dataclass(frozen=True)
class Level:
    """One value of a factor: its label, and what it sets."""

    label: Any
    """A scalar as it is written, the name of a bundle, on or off; anything else as compact text."""
    changes: Mapping[Place, Any]
    """What is set, by path."""
    source: Place
    """Where in the document it stands."""
    same: bool = False
    """Whether it is what `model`, `task`, `training` and `budget` have anyway, so that nothing is to be set."""

    def origin(self, path: Place, document: Document) -> Place:
        """Where in the document the value stands that is set at this path."""
        bundle = (*self.source, ".".join(map(str, path)))
        return bundle if bundle in document.values else self.source


def label(value: Any) -> Any:
    """What a level is called: scalars as they are, anything else as compact text, so that tables can group by it."""
    if isinstance(value, Mapping):
        options = [f"{key}={_inner(item)}" for key, item in value.items() if key != "kind"]
        kind = value.get("kind")
        if kind:
            return f"{kind}({', '.join(options)})" if options else kind
        return f"{{{', '.join(options)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inner, value))}]"
    return value


def _inner(value: Any) -> str:
    """A value inside of a label, in the words of YAML."""
    return str(label(value)) if isinstance(value, Mapping | list | str) else shown(value)


def same_label(one: Any, other: Any) -> bool:
    """Whether two labels are one; 1, 1.0 and true are three."""
    return type(one) is type(other) and bool(one == other)


def same_value(level: Level, value: Any) -> bool:
    """Whether a mapping or a list is all that a level sets, whatever the order of its keys."""
    return isinstance(value, Mapping | list) and [value_key(each) for each in level.changes.values()] == [
        value_key(value)
    ]


def value_key(value: Any) -> str:
    """What equal values share, and different ones do not: also those that no option takes, as not a number."""
    try:
        return text(canonical(value))
    except ValueError:  # a number that is not finite
        return repr(value)


def shown(value: Any) -> str:
    """A label as YAML spells it: text that would be read as something else is in quotes, and all can be seen.

    Text with a comma or an equals sign outside of brackets is in quotes too, so that names of arms stay apart.
    """
    if value is None:
        return "null"
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else str(value)
    try:
        plain = resolve(value) == value
    except OverflowError:
        plain = False
    seen = visible(value)
    outside, rest = value, ""
    while outside != rest:
        rest, outside = outside, _BRACKETS.sub("", outside)
    if plain and seen == value and not set(outside) & set("=,"):
        return seen
    return '"' + seen.replace('"', '\\"') + '"'


class Bench:
    """An experiment being worked out: its baseline, and the problems that were found so far."""

    def __init__(self, settings: Settings, document: Document, registry: Registry) -> None:
        self.settings = settings
        self.document = document
        self.registry = registry
        steps = Budget(steps=settings.budget.steps)
        self.base = Trained(model=settings.model, task=settings.task, training=settings.training, budget=steps)
        self.raw = spelled(self.base)
        self._neutral = {slot.neutral for slot in SLOTS.values()} - {None}
        self.problems: list[Diagnostic] = []

    def tree(self, levels: Iterable[Level]) -> Any:
        """The baseline with these levels, as it could stand in YAML; deeper paths are set last."""
        levels = list(levels)
        changes = [change for level in levels if not level.same for change in level.changes.items()]
        kept = self._kept(levels, dict(changes))
        raw: Any = self.raw
        for path, value in sorted([*changes, *kept.items()], key=lambda change: len(change[0])):
            owner = class_at(path[:-1], raw, self.registry) if path in kept else None
            if not self.dead(path, raw) and (path not in kept or (owner and path[-1] in owner.model_fields)):
                raw = changed(self._with_defaults(raw, path), path, value)
        return raw

    def _kept(self, levels: Iterable[Level], changes: Mapping[Place, Any]) -> dict[Place, Any]:
        """What the baseline's levels say of options that another level would put back to a default of its own.

        With `eps: 1e-5` in the baseline, the arm of another norm has that too, and not the default of that norm.
        """
        same = {path: value for level in levels if level.same for path, value in level.changes.items()}
        inside = {
            path: value
            for path, value in same.items()
            if any(len(outer) < len(path) and path[: len(outer)] == outer for outer in changes)
        }
        if not inside:
            return {}
        set_by_others = self.explicit(changes)
        return {
            path: value
            for path, value in inside.items()
            if not any(overlap(place, other) for place in self.explicit({path: value}) for other in set_by_others)
        }

    def _with_defaults(self, raw: Any, path: Place) -> Any:
        """The tree with the components around a path spelled out where a level left them at their defaults."""
        node = raw
        for length, step in enumerate(path[:-1], 1):
            if not isinstance(node, Mapping):
                break
            if step not in node and isinstance(found := value_at(path[:length], raw, self.registry), Mapping):
                raw, node = changed(raw, path[:length], found), {step: found}
            node = node.get(step)
        return raw

    def dead(self, path: Place, raw: Any) -> bool:
        """Whether a path leads into something that is neutral there, and so has none of its options."""
        node = raw
        for length, step in enumerate(path):
            kind = node.get("kind") if isinstance(node, Mapping) else node
            if length > 1 and isinstance(kind, str) and kind in self._neutral:
                owner = class_at(path[:length], raw, self.registry)
                if owner and issubclass(owner, Component) and owner.neutral == kind and step not in owner.model_fields:
                    return True
            node = node.get(step) if isinstance(node, Mapping) else None
        return False

    def setup(self, levels: Iterable[Level], *, quietly: bool = False) -> Trained | None:
        """The baseline with these levels, or None with the problems noted (unless ``quietly``)."""
        levels = list(levels)
        raw = self.tree(levels)
        try:
            return Trained.model_validate(raw, context={"registry": self.registry})
        except ValidationError as error:
            if quietly:
                return None
            origins = {path: level.origin(path, self.document) for level in levels for path in level.changes}
            for path, origin in list(origins.items()):
                if path[-1] == "kind":  # what is wrong with a kind is said of the whole component
                    origins.setdefault(path[:-1], origin)
            for problem in diagnose(error, self.document, self.registry, data=raw, origins=origins):
                if problem not in self.problems:
                    self.problems.append(problem)
            return None

    def explicit(self, changes: Mapping[Place, Any]) -> set[Place]:
        """Every place that changes speak of: a component's kind and the options that are given, or the path itself."""
        places: set[Place] = set()
        for path, value in changes.items():
            component = class_at(path, self.raw, self.registry) is not None
            if isinstance(value, Mapping):
                places |= self.explicit({(*path, key): item for key, item in value.items()}) or {path}
            else:
                places.add((*path, "kind") if component and isinstance(value, str) else path)
        return places

    def report(
        self,
        code: str,
        message: str,
        place: Place,
        near: str | None = None,
        *,
        key: bool = False,
        otherwise: str | None = None,
    ) -> None:
        """Note a problem; the help is a guess at what was meant, or else ``otherwise``."""
        help = f"did you mean `{near}`?" if near else otherwise
        self.problems.append(self.document.diagnose(code, message, place, key=key, help=help))

    def stop_on_problems(self) -> None:
        """Raise all problems at once, if there are any."""
        if self.problems:
            raise InputError(in_order(self.problems))


def setup_key(setup: Setup) -> str:
    """What equal setups share, and different ones do not."""
    return text(canonical(setup))


def changed(raw: Any, path: Place, value: Any) -> Any:
    """A copy of the tree with the value at ``path`` replaced; a component given by its name becomes a mapping."""
    head, *rest = path
    tree = {"kind": raw} if isinstance(raw, str) else dict(raw) if isinstance(raw, Mapping) else {}
    tree[str(head)] = changed(tree.get(str(head)), tuple(rest), value) if rest else value
    return tree
