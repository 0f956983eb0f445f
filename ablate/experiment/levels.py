"""Levels: what one value of a factor sets, what it is called, and the setup that levels make of the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ablate.errors import Diagnostic, InputError
from ablate.experiment.identity import at_default, canonical, text
from ablate.experiment.problems import Place, diagnose, in_order
from ablate.experiment.reading import Document
from ablate.experiment.schema import Settings
from ablate.experiment.settings import Setup
from ablate.registry import Registry
from ablate.slots import Options


@dataclass(frozen=True)
class Level:
    """One value of a factor: its label, and what it sets."""

    label: Any
    """A scalar as it is written, the name of a bundle, on or off; anything else as compact text."""
    changes: Mapping[Place, Any]
    """What is set, by path."""
    source: Place
    """Where in the document it stands."""


def spelled(value: Any) -> Any:
    """A value as it could stand in YAML: every component with its kind, and the options that are not at their default.

    Options at their default are left out so that a level can set one of two options that exclude each other.
    """
    if not isinstance(value, Options):
        return value
    options = {name: getattr(value, name) for name in type(value).model_fields}
    return {
        name: spelled(option)
        for name, option in options.items()
        if name == "kind" or isinstance(option, Options) or not at_default(value, name)
    }


def label(value: Any) -> Any:
    """What a level is called: scalars as they are, anything else as compact text, so that tables can group by it."""
    if isinstance(value, Mapping):
        options = [f"{key}={label(item)}" for key, item in value.items() if key != "kind"]
        kind = value.get("kind")
        return f"{kind}({', '.join(options)})" if kind else f"{{{', '.join(options)}}}"
    if isinstance(value, list):
        return f"[{', '.join(str(label(item)) for item in value)}]"
    return value


def shown(value: Any) -> str:
    """A label as text, in the words of YAML."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


class Bench:
    """An experiment being worked out: its baseline, and the problems that were found so far."""

    def __init__(self, settings: Settings, document: Document, registry: Registry) -> None:
        self.settings = settings
        self.document = document
        self.registry = registry
        self.base = Setup(model=settings.model, task=settings.task, training=settings.training)
        self.raw = spelled(self.base)
        self.problems: list[Diagnostic] = []

    def setup(self, levels: Iterable[Level]) -> Setup | None:
        """The baseline with these levels, or None with the problems noted."""
        changes = [(path, value, level) for level in levels for path, value in level.changes.items()]
        raw: Any = self.raw
        origins: dict[Place, Place] = {}
        for path, value, level in sorted(changes, key=lambda change: len(change[0])):
            raw = _changed(raw, path, value)
            bundle = (*level.source, ".".join(map(str, path)))
            origins[path] = bundle if bundle in self.document.values else level.source
        try:
            return Setup.model_validate(raw, context={"registry": self.registry})
        except ValidationError as error:
            for problem in diagnose(error, self.document, self.registry, data=raw, origins=origins):
                if problem not in self.problems:
                    self.problems.append(problem)
            return None

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


def _changed(raw: Any, path: Place, value: Any) -> Any:
    """A copy of the tree with the value at ``path`` replaced; a component given by its name becomes a mapping."""
    head, *rest = path
    tree = {"kind": raw} if isinstance(raw, str) else dict(raw or {})
    tree[str(head)] = _changed(tree.get(str(head)), tuple(rest), value) if rest else value
    return tree
