"""Resolving: each arm with its data, matched, built once a distinct shape, counted, identified and guarded."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ablate.errors import Diagnostic, InputError
from ablate.experiment import Experiment
from ablate.experiment.cells import Arm
from ablate.experiment.identity import canonical, digest, text
from ablate.experiment.reading import Place
from ablate.experiment.settings import Setup
from ablate.planning.device import resolve_precision
from ablate.planning.guard import GuardError, fingerprint, sees_ahead
from ablate.planning.ledger import Ledger, ledger
from ablate.planning.matching import Candidate, UnmatchedError, check, match
from ablate.planning.provenance import components_of, notes_of
from ablate.planning.tuning import tuned_options, without_options
from ablate.slots import Data, ImpossibleError, Task, named

BASELINE = "baseline"


@dataclass(frozen=True)
class ResolvedArm:
    """An arm as it will be run, and as ``plan.json`` has it."""

    arm: Arm
    candidate: Candidate
    data: dict[str, Any]


@dataclass
class Resolved:
    """All arms of an experiment, and what was found on the way."""

    arms: list[ResolvedArm] = field(default_factory=list)
    excluded: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)

    @property
    def setups(self) -> list[Setup]:
        """What each arm is."""
        return [arm.candidate.setup for arm in self.arms]


def resolve(
    experiment: Experiment, device: str, on_arm: Callable[[int, int], None] = lambda done, arms: None
) -> Resolved:
    """Resolve every arm for trials on this device.

    Args:
        experiment: the experiment.
        device: what trials run on.
        on_arm: told how many arms are done, and of how many; half of an arm's work is to build and count it, the other
            half to check that it does something.

    Raises:
        InputError: the data cannot be used, an arm cannot be built or matched, or computes what the baseline computes.
    """
    arms = len(experiment.grid.arms)
    halves = itertools.count()

    def half() -> None:
        on_arm(next(halves) // 2, arms)

    found = _Resolving(experiment, device)(half)
    problems = list(_guard(experiment, found, half))
    on_arm(arms, arms)  # those that fell together or were not checked are done too
    if problems:
        raise InputError(problems)
    return found


class _Resolving:
    def __init__(self, experiment: Experiment, device: str) -> None:
        self._experiment = experiment
        self._settings = experiment.settings
        self._device = device
        self._data: dict[str, Data] = {}
        self._found = Resolved()

    def __call__(self, on_arm: Callable[[], None]) -> Resolved:
        for cell in self._experiment.grid.excluded:
            entry = {"name": cell.name, "levels": {name: level.label for name, level in cell.chosen.items()}}
            if cell.trained is not None:
                entry["id"] = self._identity(self._candidate(cell.trained.setup, cell.trained.budget.steps))
            self._found.excluded.append({**entry, "why": cell.why, "rule": cell.rule})
        known: dict[str, int] = {}
        problems: list[Diagnostic] = []
        for arm in self._experiment.grid.arms:
            on_arm()
            try:
                resolved = self._arm(arm)
            except UnmatchedError as error:
                words = f"`{arm.name}` cannot be matched: {error}"
                problems.append(self._experiment.document.diagnose("G215", words, ("match",), key=True))
                continue
            if resolved is None:
                continue
            id = resolved.data["id"]
            if id in known:  # matching has made them one
                first = self._found.arms[known[id]]
                first.data["aliases"] = [*first.data["aliases"], arm.name]
                first.data["also"] = [*first.data["also"], arm.levels]
            else:
                known[id] = len(self._found.arms)
                self._found.arms.append(resolved)
        if problems:
            raise InputError(problems)
        return self._found

    def _arm(self, arm: Arm) -> ResolvedArm | None:
        """The arm, or None with its reason noted where its components say that it is impossible."""
        try:
            candidate = self._candidate(arm.setup, arm.steps)
            _check_form(candidate)
            candidate = self._matched(candidate, arm)
            counted = ledger(candidate.setup, candidate.data.interface)
            return ResolvedArm(arm, candidate, self._entry(arm, candidate, counted))
        except ImpossibleError as error:
            if arm.name == BASELINE:
                words = f"the baseline cannot be built: {error}"
                raise InputError([self._experiment.document.diagnose("G209", words, ("model",), key=True)]) from error
            self._found.excluded.append({"name": arm.name, "levels": arm.levels, "why": str(error), "rule": None})
            return None
        except (InputError, UnmatchedError):
            raise
        except (Exception, SystemExit) as error:  # whatever a component's code raises; its author can mend it
            raise InputError([_broken(arm, error, self._experiment)]) from error

    def _candidate(self, setup: Setup, steps: int) -> Candidate:
        precision = resolve_precision(setup.training.precision, self._device)  # it is part of a trial's identity
        setup = setup.model_copy(update={"training": setup.training.model_copy(update={"precision": precision})})
        return Candidate(setup, steps, self._read(setup.task))

    def _matched(self, candidate: Candidate, arm: Arm) -> Candidate:
        matching = self._settings.match
        if matching is None or arm.name == BASELINE:
            return candidate
        baseline = self._found.arms[0].candidate
        targets = {name: target for name in ("params", "train_flops") if (target := getattr(matching, name))}
        for name, target in targets.items():
            candidate = match(candidate, name, target, baseline, self._experiment.registry)
        for name, target in targets.items():  # what was solved last may have undone what was solved first
            check(candidate, name, target, baseline)
        return candidate

    def _read(self, task: Task) -> Data:
        key = text(canonical(task))
        if key not in self._data:
            try:
                self._data[key] = task.load(str(self._experiment.folder))
            except InputError as error:
                document = self._experiment.document
                # What is set beside the file, as by `--set`, is what the user has just changed.
                place = next((place for place in document.elsewhere if place[:1] == ("task",)), ("task",))
                raise InputError(
                    [document.diagnose(each.code, each.message, place, help=each.help) for each in error.diagnostics]
                ) from error
        return self._data[key]

    def _tuned(self, candidate: Candidate) -> dict[str, Any]:
        """What is tuned of the arm, and what it is without that."""
        tune = self._settings.tune
        params = tuned_options(candidate.setup, tune.params) if tune else []
        return {"tuning": {"params": params, "identity": self._identity(candidate, params)}} if params else {}

    def _identity(self, candidate: Candidate, without: Sequence[str] = ()) -> str:
        return digest({**self._course(candidate, without), "steps": candidate.steps})

    def _course(self, candidate: Candidate, without: Sequence[str] = ()) -> dict[str, Any]:
        """What makes an arm what it is, but for how long it is trained."""
        return {
            "setup": without_options(canonical(candidate.setup), without),
            "data": candidate.data.digest,
            "diverged": canonical(self._settings.diverged),
        }

    def _units(self, task: Task) -> dict[str, Any]:
        """The units of an arm's metrics, where they are not the baseline's."""
        units = dict(task.units)
        return {} if units == dict(self._settings.task.units) else {"units": units}

    def _entry(self, arm: Arm, candidate: Candidate, counted: Ledger) -> dict[str, Any]:
        """The arm in ``plan.json``."""
        data, tuned = candidate.data, self._tuned(candidate)
        return {
            "id": self._identity(candidate),
            **(tuned or {"lineage": digest(self._course(candidate))}),
            "name": arm.name,
            "aliases": list(arm.aliases),
            "levels": arm.levels,
            "also": [{factor: level.label for factor, level in part.items()} for part in arm.also],
            "config": candidate.setup.model_dump(mode="json"),
            **self._units(candidate.setup.task),
            "steps": candidate.steps,
            "matched": dict(candidate.matched),
            "parameters": {
                "total": counted.parameters,
                "non_embedding": counted.non_embedding,
                "parts": dict(counted.parts),
            },
            "flops": counted.flops,
            "tokens": counted.tokens,
            "activations": counted.activations,
            "data": {"hash": data.digest, "facts": dict(data.facts), "vocabulary": data.interface.vocabulary},
            "components": components_of([candidate.setup], self._experiment.registry),
            "notes": notes_of(candidate.setup, data.interface),
        }


def _check_form(candidate: Candidate) -> None:
    """Hold the model against what the task asks of one."""
    model, task, form = candidate.setup.model, candidate.setup.task, candidate.data.interface.form
    if form not in model.forms:
        asked = form.replace("_", " ")
        meant = " or ".join(sorted(each.replace("_", " ") for each in model.forms))
        raise ImpossibleError(f"{named(model)} is for {meant}, and {named(task)} is {asked}")


def _guard(experiment: Experiment, found: Resolved, on_arm: Callable[[], None]) -> Iterator[Diagnostic]:
    """Arms whose model computes what the baseline's computes; two others that agree are worth a warning."""
    baseline = found.arms[0]
    prints: dict[str, ResolvedArm] = {}
    models: dict[str, str] = {}
    for resolved in found.arms:
        on_arm()
        candidate = resolved.candidate
        data = candidate.data
        model = text([canonical(candidate.setup.model), canonical(candidate.setup.task)])
        if model in models or len(found.arms) == 1:
            continue
        try:
            models[model] = fingerprint(candidate.setup, data.interface)
        except GuardError as error:
            models[model] = ""
            if resolved is baseline:
                words, help = f"no arm was checked for having no effect: of the baseline, {error}", None
            else:
                words, help = f"`{resolved.arm.name}` was not checked for having no effect: {error}", None
            found.warnings.append(experiment.document.diagnose("W008", words, _source(resolved.arm), help=help))
            if resolved is baseline:
                return
            continue
        if sees_ahead(candidate.setup, data.interface) and candidate.setup.model.traits().causal:
            yield experiment.document.diagnose(
                "G220",
                f"`{resolved.arm.name}` sees later tokens, which it would not have when it writes",
                _source(resolved.arm),
                help="mend the component (`ablate plugins check` shows it), or declare it: `Traits(causal=False)`",
            )
        same = prints.setdefault(models[model], resolved)
        if same is resolved:
            continue
        name, other = resolved.arm.name, same.arm.name
        if same is not baseline or experiment.settings.allow_noop:
            words = f"`{name}` computes what `{other}` computes"
            found.warnings.append(experiment.document.diagnose("W007", words, _source(resolved.arm)))
            continue
        varied = [f"`{factor}`" for factor in _differing(resolved.arm, same.arm)]
        has = "has" if len(varied) == 1 else "have"
        yield experiment.document.diagnose(
            "G216",
            f"{' and '.join(varied)} {has} no effect in `{name}`: it computes what the baseline computes",
            _source(resolved.arm),
            help="mend the component, or say `allow_noop: true` where this is meant",
        )


def _differing(arm: Arm, other: Arm) -> list[str]:
    return [name for name, level in arm.chosen.items() if other.chosen.get(name) is not level]


def _source(arm: Arm) -> Place:
    """Where the level stands that makes the arm what it is."""
    changed = [level for level in arm.chosen.values() if not level.same]
    return changed[0].source if changed else ("model",)


def _broken(arm: Arm, error: BaseException, experiment: Experiment) -> Diagnostic:
    """A component's code fails: which arm, what it says, and the line of the plugin where it does."""
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    frames = traceback.extract_tb(error.__traceback__)
    files = {str(path): path.name for path in experiment.registry.files}
    known = [frame for frame in frames if frame.filename in files] or [frames[-1]]
    last = known[-1]
    help = f"it was raised at {Path(last.filename).name}, line {last.lineno}, in `{last.name}`"
    place = ("model",) if arm.name == BASELINE else ("factors",)
    return experiment.document.diagnose("G210", f"`{arm.name}` cannot be built: {said}", place, key=True, help=help)
