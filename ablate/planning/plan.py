"""The plan: arms and trials with their identities, as one JSON value that everything after it is made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from ablate.errors import Diagnostic, InputError
from ablate.experiment import Experiment
from ablate.experiment.designs import FractionalDesign
from ablate.experiment.factors import Axis
from ablate.experiment.identity import digest
from ablate.experiment.levels import Level
from ablate.experiment.reading import Document, Place
from ablate.planning.device import pick_device
from ablate.planning.price import Price
from ablate.planning.provenance import components_of, git_state, sources
from ablate.planning.resolving import Resolved, resolve
from ablate.planning.tuning import stated
from ablate.planning.warnings import warnings_of
from ablate.registry import kind_of
from ablate.slots import Room


@dataclass(frozen=True)
class Plan:
    """What will be run: every arm, every trial, and what they have in common."""

    experiment: Experiment
    data: Mapping[str, Any]
    """The content of ``plan.json``."""
    warnings: tuple[Diagnostic, ...] = ()
    """What the experiment should know about its design."""
    price: Price | None = None
    """What it will cost; None until it is asked for."""
    room: Room | None = None
    """How many trials run at once here; None until it is asked for."""

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


def make_plan(experiment: Experiment, *, on_arm: Callable[[int, int], None] = lambda done, arms: None) -> Plan:
    """Resolve every arm: read the data, match, build each distinct shape once on the meta device, count and identify.

    Args:
        experiment: the experiment.
        on_arm: told how many arms are done, and of how many.

    Raises:
        InputError: the data cannot be used, a logger's package is missing, an arm cannot be built or matched, or
            computes what the baseline computes.
    """
    settings = experiment.settings
    _check_loggers(experiment)
    device = pick_device()
    resolved = resolve(experiment, device, on_arm)
    arms = [arm.data for arm in resolved.arms]
    trials = [
        {"id": digest(_identity(arm, seed)), "arm": arm["id"], "seed": seed, **_lineage(arm, seed)}
        for seed in experiment.seeds
        for arm in arms
    ]
    dumped = settings.model_dump(mode="json", include={"objective", "diverged", "budget", "probes", "loggers", "match"})
    plan = {
        "schema": 1,
        "name": settings.name,
        "question": settings.question,
        "design": settings.design_name,
        "baseline": arms[0]["id"],
        "factors": [_factor(experiment, axis) for axis in experiment.grid.axes],
        **dumped,
        "units": dict(settings.task.units),
        "seeds": experiment.seeds,
        "arms": arms,
        "trials": trials,
        "excluded": resolved.excluded,
        "tuning": stated(experiment, [arm.candidate.setup for arm in resolved.arms]),
        "expect": _expectations(experiment, resolved),
        "components": components_of([*resolved.setups, settings.executor], experiment.registry),
        "data": arms[0]["data"],
        "vocabulary": arms[0]["data"]["vocabulary"],
        "device": device,
        "precision": arms[0]["config"]["training"]["precision"],
        "threads": max(arm["config"]["training"]["threads"] for arm in arms),
        "git": git_state(experiment.folder),
        "command": experiment.command,
        "sources": sources(experiment.document),
        "folder": str(experiment.folder.resolve()),
        "plugins": [str(path) for path in experiment.registry.files],
    }
    if isinstance(experiment.grid.design, FractionalDesign):
        plan["fraction"] = experiment.grid.design.stated()
    if settings.noise_floor:
        plan["repeats"] = [_repeat(arms[0], experiment.seeds[0])]
    told = ("name", "baseline", "objective", "budget", "diverged", "trials", "tuning", "repeats")
    identity = {key: plan[key] for key in told if key in plan}
    warnings = (*experiment.document.warnings, *experiment.grid.warnings, *resolved.warnings)
    return Plan(experiment, plan | {"hash": digest(identity)}, (*warnings, *warnings_of(experiment, plan)))


def _identity(arm: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """What a trial is; one that is to be tuned is provisional, and not what it would be without."""
    return {"arm": arm["id"], "seed": seed, **({"tuned": None} if arm.get("tuning") else {})}


def _repeat(arm: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """A trial that is another in all but its identity, for the noise floor; it goes on from no shorter one."""
    return {"id": digest({**_identity(arm, seed), "repeat": 1}), "arm": arm["id"], "seed": seed, "repeat": 1}


def _lineage(arm: Mapping[str, Any], seed: int) -> dict[str, str]:
    """What a trial shares with the same trial of other steps: nothing where it is tuned, which depends on the steps."""
    return {"lineage": digest({"arm": arm["lineage"], "seed": seed})} if "lineage" in arm else {}


def _check_loggers(experiment: Experiment) -> None:
    """What a logger imports must be there: found here once, and not by every worker on its own."""
    problems = [
        experiment.document.diagnose(
            "S119",
            f"the logger `{kind_of(type(logger))}` needs the package `{module}`, which is not installed",
            ("loggers", index),
            help=f"pip install '{requirement}'",
        )
        for index, logger in enumerate(experiment.settings.loggers)
        for module, requirement in logger.needs.items()
        if find_spec(module) is None
    ]
    if problems:
        raise InputError(problems)


def _factor(experiment: Experiment, axis: Axis) -> dict[str, Any]:
    """A factor with its levels, what each sets, and where that is written."""
    document = experiment.document
    return {
        "name": axis.name,
        "levels": [level.label for level in axis.levels],
        "baseline": axis.baseline.label,
        "sets": [_sets(document, level) for level in axis.levels],
    } | ({"when": {".".join(map(str, path)): value for path, value in axis.when.items()}} if axis.when else {})


def _sets(document: Document, level: Level) -> list[dict[str, Any]]:
    """What a level sets: the path, where that is written, and which options it gives there."""
    return [
        {
            "path": ".".join(map(str, path)),
            "at": document.located(level.origin(path, document)),
            "gives": [".".join(map(str, place)) for place in _given(path, value)],
        }
        for path, value in level.changes.items()
        if not level.same
    ]


def _given(path: Place, value: Any) -> list[Place]:
    if isinstance(value, Mapping) and value:
        return [place for key, item in value.items() for place in _given((*path, key), item)]
    return [path]


def _expectations(experiment: Experiment, resolved: Resolved) -> list[dict[str, Any]]:
    """The predictions, each with the identity of its arm, or with the factor and level whose main effect is meant."""
    ids = {name: arm.data["id"] for arm in resolved.arms for name in (arm.arm.name, *arm.data["aliases"])}
    told = []
    for each in experiment.grid.expected:
        factor, level = each.level or (None, None)
        arm = ids.get(each.arm.name) if each.arm else None
        if factor or arm:
            about = {"name": each.name, "arm": arm, "factor": factor, "level": level}
            told.append({**about, "effect": each.effect, "source": each.source})
    return told
