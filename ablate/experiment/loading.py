"""Loading an experiment: read, validate, bring in its plugins."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ablate.errors import InputError
from ablate.experiment.arms import Grid, expand
from ablate.experiment.cells import Arm
from ablate.experiment.identity import spelled
from ablate.experiment.layering import read_layered
from ablate.experiment.problems import diagnose
from ablate.experiment.reading import Document, Place, parse
from ablate.experiment.schema import Settings, seed_list
from ablate.experiment.yaml.writing import dump
from ablate.registry import Registry, closest
from ablate.slots import Executor

_PASSWORD = re.compile(r"://[^/@:]*:(.*)@|[?&](?:password|passwd|sslpassword)=([^&]*)")
_VARIABLE = re.compile(r"\$\{\w+\}")


@dataclass(frozen=True)
class Experiment:
    """A validated experiment file."""

    document: Document
    folder: Path
    """Relative paths in the file are relative to this folder."""
    settings: Settings
    registry: Registry
    sets: tuple[str, ...] = ()
    """Settings from the command line, as ``path=value``; the document has them already."""
    plugins: tuple[str, ...] = ()
    """Plugin files from the command line, beside those that the document names."""

    @classmethod
    def of(
        cls, values: Mapping[str, Any], *, folder: str | Path = ".", plugins: Sequence[str | Path] = ()
    ) -> Experiment:
        """Make an experiment of plain values, as a YAML file would hold them; components may stand for themselves.

        Args:
            values: what the file would say: ``{"name": ..., "task": ..., "model": ..., ...}``.
            folder: what relative paths are relative to.
            plugins: plugin files, beside those that the experiment and the environment bring.

        Raises:
            InputError: everything that is wrong with it; places are those in :meth:`to_yaml`'s text.
            RefusedError: the design is too large.
        """
        try:
            text = dump(spelled(values))
        except (TypeError, ValueError, RecursionError):
            raise InputError.one("S103", _unwritten(values), help="give what YAML can hold") from None
        document = parse(text, "experiment")
        if "extends" in document.data:
            help = "give all values here, or load a file"
            problem = document.diagnose("S114", "only a file can extend another", ("extends",), key=True, help=help)
            raise InputError([problem])
        return validate(document, Path(folder), plugins=plugins)

    def to_yaml(self) -> str:
        """The experiment as one file for its folder, with what it extends and what the command line set."""
        data = {key: value for key, value in self.document.data.items() if key != "extends"}
        if self.settings.plugins:
            data["plugins"] = [
                path if self.document.home(place) is self.document else _relative(found, self.folder)
                for place, path, found in _plugins(self.document, self.folder)
            ]
        return dump(data)

    @property
    def command(self) -> str:
        """The command that runs it."""
        given = [*(f"--plugin={each}" for each in self.plugins), *(f"--set={each}" for each in self.sets)]
        return shlex.join(["ablate", "run", self.document.file, *given])

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.settings.name

    @property
    def seeds(self) -> list[int]:
        """The seeds that are reported."""
        return seed_list(self.settings.seeds)

    @cached_property
    def grid(self) -> Grid:
        """The arms, the baseline first."""
        return expand(self.settings, self.document, self.registry)

    def __repr__(self) -> str:
        arms, seeds = len(self.grid.arms), len(self.seeds)
        return f"Experiment({self.name!r}: {arms} arms x {seeds} seeds, {self.settings.design_name})"


def load(path: str | Path, *, plugins: Sequence[str | Path] = (), sets: Sequence[str] = ()) -> Experiment:
    """Read an experiment file and check all of it.

    Args:
        path: the YAML file.
        plugins: further plugin files, beside those that the experiment and the environment bring.
        sets: ``path=value`` settings over what the file says, as ``training.optimizer.lr=3e-3``; values are YAML.

    Raises:
        InputError: everything that is wrong with the file, with its places.
        RefusedError: the design is too large.
    """
    path = Path(path)
    return validate(read_layered(path, sets), path.parent, plugins=plugins, sets=sets)


def executor_of(path: str | Path, sets: Sequence[str] = ()) -> Executor | None:
    """What runs the trials of an experiment's file, ahead of all else in it, so that it can get ready meanwhile.

    None where that cannot be said yet: a plugin file brings it, or :func:`load` will say what is wrong.
    """
    try:
        named = read_layered(Path(path), sets).data.get("executor", Executor.default)
        found = TypeAdapter(Executor).validate_python(named, context={"registry": Registry.installed()})
    except (InputError, ValidationError):
        return None
    return found


def validate(
    document: Document, folder: Path, *, plugins: Sequence[str | Path] = (), sets: Sequence[str] = ()
) -> Experiment:
    """Check all of an experiment that has been read; relative paths in it are relative to ``folder``.

    Raises:
        InputError: everything that is wrong with the document, with its places.
        RefusedError: the design is too large.
    """
    registry = Registry.installed()
    for plugin in plugins:
        registry.add_file(Path(plugin), str(plugin))
    _add_plugins(document, folder, registry)
    try:
        settings = Settings.model_validate(document.data, context={"registry": registry})
    except ValidationError as error:
        raise InputError([*document.warnings, *diagnose(error, document, registry)]) from error
    experiment = Experiment(document, folder, settings, registry, tuple(sets), tuple(map(str, plugins)))
    _check_storage(experiment)
    _check_metrics(experiment)
    for arm in experiment.grid.arms:  # an arm that is no valid setup is an error of the file
        _check_task(experiment, arm)
    return experiment


def _add_plugins(document: Document, folder: Path, registry: Registry) -> None:
    """Bring in the files that the experiment names; a wrong type is left to validation."""
    problems = []
    for place, plugin, path in _plugins(document, folder):
        try:
            registry.add_file(path, plugin)
        except InputError as error:
            problems += [
                document.diagnose(each.code, each.message, place, help=each.help) for each in error.diagnostics
            ]
    if problems:
        raise InputError(problems)


def _plugins(document: Document, folder: Path) -> Iterator[tuple[Place, str, Path]]:
    """The plugin files that are named: where, how, and which; a path is relative to the file that names it."""
    named = document.data.get("plugins")
    for index, plugin in enumerate(named if isinstance(named, list) else []):
        if isinstance(plugin, str):
            place: Place = ("plugins", index)
            home = document.home(place)
            yield place, plugin, (folder if home is document else Path(home.file).parent) / plugin


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _unwritten(value: Any, name: str = "") -> str:
    """What of a value no YAML can hold."""
    inside = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        try:
            dump({key if isinstance(value, Mapping) else "item": spelled(item)})
        except RecursionError:
            return "a value is inside of itself"
        except (TypeError, ValueError) as error:
            within = f"{name}.{key}" if name else str(key)
            return _unwritten(item, within) if isinstance(item, Mapping | list) and item else f"`{within}`: {error}"
    return f"`{name}` cannot be written as YAML" if name else "these values cannot be written as YAML"


def _check_storage(experiment: Experiment) -> None:
    """A password in the file would be in every copy of it, and in the report; nor is its line shown."""
    storage = experiment.settings.storage or ""
    if any(_VARIABLE.sub("", "".join(found)) for found in _PASSWORD.findall(storage)):
        words = "`storage` has a password in it, which every copy of the experiment would have"
        help = "name a variable of the environment: `postgresql+psycopg://USER:${PASSWORD}@HOST/DATABASE`"
        raise InputError([replace(experiment.document.diagnose("S406", words, ("storage",), help=help), source=None)])


def _check_metrics(experiment: Experiment) -> None:
    """Every metric that is named must be one that the task reports."""
    objective, units = experiment.settings.objective, experiment.settings.task.units
    named: list[tuple[Place, str]] = [(("objective", "metric"), objective.metric)]
    named += [(("objective", "secondary", index), metric) for index, metric in enumerate(objective.secondary)]
    problems = []
    for place, metric in named:
        if metric not in units:
            near = closest(metric, units)
            help = f"did you mean `{near}`?" if near else f"there is: {', '.join(units)}"
            problems.append(experiment.document.diagnose("S111", f"the task reports no `{metric}`", place, help=help))
    if problems:
        raise InputError(problems)


def _check_task(experiment: Experiment, arm: Arm) -> None:
    """An arm with a task of its own must report what arms are compared by."""
    metric, units = experiment.settings.objective.metric, arm.setup.task.units
    if metric not in units:
        changed = [level.source for level in arm.chosen.values() if any(path[0] == "task" for path in level.changes)]
        words = f"the task of `{arm.name}` reports no `{metric}`, which arms are compared by"
        help = f"it reports {', '.join(units)}"
        raise InputError([experiment.document.diagnose("S111", words, changed[0] if changed else ("task",), help=help)])
