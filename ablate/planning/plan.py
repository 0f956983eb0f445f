"""The plan: arms and trials with their identities, as one JSON value that everything after it is made from."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ablate.errors import Diagnostic, InputError
from ablate.experiment import Experiment
from ablate.experiment.arms import Arm
from ablate.experiment.identity import canonical, digest
from ablate.experiment.settings import Setup
from ablate.planning.device import pick_device, resolve_precision
from ablate.planning.ledger import Ledger, ledger
from ablate.planning.provenance import components_of, git_state
from ablate.slots import Data, ImpossibleError, Task


@dataclass(frozen=True)
class Plan:
    """What will be run: every arm, every trial, and what they have in common."""

    experiment: Experiment
    data: Mapping[str, Any]
    """The content of ``plan.json``."""
    warnings: tuple[Diagnostic, ...] = ()
    """What the experiment should know about its design."""

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self.data["name"])

    @property
    def arms(self) -> list[dict[str, Any]]:
        """Every arm, the baseline first."""
        return list(self.data["arms"])

    @property
    def trials(self) -> list[dict[str, Any]]:
        """Every trial, seed by seed."""
        return list(self.data["trials"])

    def __repr__(self) -> str:
        return f"Plan({self.name!r}: {len(self.arms)} arms, {len(self.trials)} trials, {self.data['hash']})"


def make_plan(experiment: Experiment) -> Plan:
    """Resolve every arm: read the data, build each distinct shape once on the meta device, count and identify.

    Raises:
        InputError: the data cannot be used, or the baseline cannot be built.
    """
    settings = experiment.settings
    device = pick_device()
    read = cache(lambda task: _read(task, experiment))
    arms: list[dict[str, Any]] = []
    excluded: list[dict[str, Any]] = []
    setups: list[Setup] = []
    for arm in experiment.grid.arms:
        setup = _resolved(arm.setup, device)
        data = read(setup.task)
        try:
            counted = ledger(setup, data.context, data.vocabulary)
        except ImpossibleError as error:
            if arm.name == "baseline":
                problem = experiment.document.diagnose(
                    "G209", f"the baseline cannot be built: {error}", ("model",), key=True
                )
                raise InputError([problem]) from error
            excluded.append({"name": arm.name, "levels": arm.levels, "why": str(error)})
            continue
        except Exception as error:  # whatever a component's code raises; it is the component's author who can mend it
            raise InputError([_broken(arm, error, experiment)]) from error
        setups.append(setup)
        arms.append(_arm(arm, setup, data, counted, experiment))
    trials = [
        {"id": digest({"arm": arm["id"], "seed": seed}), "arm": arm["id"], "seed": seed}
        for seed in experiment.seeds
        for arm in arms
    ]
    dumped = settings.model_dump(mode="json", include={"objective", "diverged", "budget", "probes"})
    plan = {
        "schema": 1,
        "name": settings.name,
        "question": settings.question,
        "design": settings.design,
        "baseline": arms[0]["id"],
        "factors": [
            {
                "name": axis.name,
                "levels": [level.label for level in axis.levels],
                "baseline": axis.baseline.label,
            }
            for axis in experiment.grid.axes
        ],
        **dumped,
        "units": dict(settings.task.units),
        "seeds": experiment.seeds,
        "arms": arms,
        "trials": trials,
        "excluded": excluded,
        "components": components_of([*setups, settings.executor], experiment.registry),
        "data": arms[0]["data"],
        "vocabulary": read(setups[0].task).vocabulary,
        "device": device,
        "precision": arms[0]["config"]["training"]["precision"],
        "threads": max(arm["config"]["training"]["threads"] for arm in arms),
        "git": git_state(experiment.folder),
        "command": f"ablate run {experiment.document.file}",
        "folder": str(experiment.folder.resolve()),
        "plugins": [str(path) for path in experiment.registry.files],
    }
    identity = {key: plan[key] for key in ("name", "baseline", "objective", "budget", "diverged", "trials")}
    return Plan(experiment, plan | {"hash": digest(identity)}, tuple(_warnings(experiment, excluded)))


def _resolved(setup: Setup, device: str) -> Setup:
    """The setup with ``precision: auto`` made plain, since it is part of a trial's identity."""
    precision = resolve_precision(setup.training.precision, device)
    return setup.model_copy(update={"training": setup.training.model_copy(update={"precision": precision})})


def _read(task: Task, experiment: Experiment) -> Data:
    try:
        return task.load(str(experiment.folder))
    except InputError as error:
        found = [
            experiment.document.diagnose(each.code, each.message, ("task",), help=each.help)
            for each in error.diagnostics
        ]
        raise InputError(found) from error


def _broken(arm: Arm, error: Exception, experiment: Experiment) -> Diagnostic:
    """A component's code fails: which arm, what it says, and the line of the plugin where it does."""
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    frames = traceback.extract_tb(error.__traceback__)
    files = {str(path): path.name for path in experiment.registry.files}
    known = [frame for frame in frames if frame.filename in files] or [frames[-1]]
    last = known[-1]
    help = f"it was raised at {Path(last.filename).name}, line {last.lineno}, in `{last.name}`"
    place = ("model",) if arm.name == "baseline" else ("factors",)
    return experiment.document.diagnose("G210", f"`{arm.name}` cannot be built: {said}", place, key=True, help=help)


def _arm(arm: Arm, setup: Setup, data: Data, counted: Ledger, experiment: Experiment) -> dict[str, Any]:
    settings = experiment.settings
    identity = {
        "setup": canonical(setup),
        "data": data.digest,
        "steps": settings.budget.steps,
        "diverged": canonical(settings.diverged),
    }
    return {
        "id": digest(identity),
        "name": arm.name,
        "aliases": list(arm.aliases),
        "levels": arm.levels,
        "config": setup.model_dump(mode="json"),
        "parameters": {"total": counted.parameters, "non_embedding": counted.non_embedding},
        "flops": counted.flops,
        "tokens": counted.tokens,
        "data": {"hash": data.digest, "facts": dict(data.facts)},
        "components": components_of([setup], experiment.registry),
    }


def _warnings(experiment: Experiment, excluded: list[dict[str, Any]]) -> Iterator[Diagnostic]:
    yield from experiment.document.warnings
    grid, seeds = experiment.grid, experiment.seeds
    if len(seeds) < 6:
        best = 0.5 ** (len(seeds) - 1)
        few = f"{len(seeds)} seeds: the exact sign-flip test cannot go below p = {best:g}"
        yield experiment.document.diagnose(
            "W001",
            few if len(seeds) > 1 else "1 seed: no interval can be computed",
            ("seeds",),
            key=True,
            help="6 seeds or more can reach p < 0.05",
        )
    for arm in grid.arms:
        for alias in arm.aliases:
            yield experiment.document.diagnose(
                "W002", f"`{alias}` and `{arm.name}` are the same arm, which runs once", ("factors",), key=True
            )
    for item in excluded:
        yield experiment.document.diagnose(
            "W003", f"`{item['name']}` is excluded: {item['why']}", ("factors",), key=True
        )
