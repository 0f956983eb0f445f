"""Loading an experiment: read, validate, bring in its plugins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from ablate.errors import InputError
from ablate.experiment.arms import Grid, expand
from ablate.experiment.problems import Place, diagnose
from ablate.experiment.reading import Document, read
from ablate.experiment.schema import Settings, seed_list
from ablate.registry import Registry, closest


@dataclass(frozen=True)
class Experiment:
    """A validated experiment file."""

    document: Document
    folder: Path
    """Relative paths in the file are relative to this folder."""
    settings: Settings
    registry: Registry

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
        return f"Experiment({self.name!r}: {arms} arms x {seeds} seeds, {self.settings.design})"


def load(path: str | Path, *, plugins: Sequence[str | Path] = ()) -> Experiment:
    """Read an experiment file and check all of it.

    Args:
        path: the YAML file.
        plugins: further plugin files, beside those that the experiment and the environment bring.

    Raises:
        InputError: everything that is wrong with the file, with its places.
    """
    path = Path(path)
    document = read(path)
    registry = Registry.installed()
    for plugin in plugins:
        registry.add_file(Path(plugin), str(plugin))
    _add_plugins(document, path.parent, registry)
    try:
        settings = Settings.model_validate(document.data, context={"registry": registry})
    except ValidationError as error:
        raise InputError([*document.warnings, *diagnose(error, document, registry)]) from error
    experiment = Experiment(document, path.parent, settings, registry)
    _check_metrics(experiment)
    experiment.grid  # noqa: B018  # an arm that is no valid setup is an error of the file
    return experiment


def _add_plugins(document: Document, folder: Path, registry: Registry) -> None:
    """Bring in the files that the experiment names; a wrong type is left to validation."""
    named = document.data.get("plugins")
    problems = []
    for index, plugin in enumerate(named if isinstance(named, list) else []):
        if isinstance(plugin, str):
            try:
                registry.add_file(folder / plugin, plugin)
            except InputError as error:
                problems += [
                    document.diagnose(each.code, each.message, ("plugins", index), help=each.help)
                    for each in error.diagnostics
                ]
    if problems:
        raise InputError(problems)


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
