"""What a notebook calls: the stages of an experiment, each from the value that the stage before made."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ablate.errors import InputError, RefusedError
from ablate.experiment import Experiment, executor_of, load
from ablate.records.finding import RUNS, find_study
from ablate.records.layout import StudyFolder
from ablate.records.needs import need_of
from ablate.slots import named

if TYPE_CHECKING:
    from torch import nn

    from ablate.analysis.comparing import Comparison
    from ablate.analysis.results import Results
    from ablate.planning import Plan
    from ablate.slots import Executor
    from ablate.sweep.events import Event, Outcome
    from ablate.sweep.preview import Preview

__all__ = [
    "Experiment", "compare", "dry_run", "load", "load_model", "network", "plan", "report", "results", "run",
    "sweep_plan",
]  # fmt: skip


def plan(
    experiment: Experiment | str | Path,
    *,
    sets: Sequence[str] = (),
    calibrate: bool = False,
    runs: str | Path = RUNS,
    on_arm: Callable[[int, int], None] = lambda done, arms: None,
) -> Plan:
    """Resolve an experiment: every arm, its parameters and FLOPs, every trial with its identity, and what it costs.

    Args:
        experiment: an experiment, or the path of its file.
        sets: ``path=value`` settings over what the file says.
        calibrate: measure the price by training 20 steps of each distinct shape, rather than guess it roughly.
        runs: the folder that holds the studies; results that a rule would hide are looked for there.
        on_arm: told how many arms are resolved, and of how many; with many of them that takes minutes.

    Raises:
        InputError: the experiment, its data or an arm cannot be used.
        RefusedError: the design is too large.
    """
    from ablate.planning.price import price, price_warnings

    loaded = experiment if isinstance(experiment, Experiment) else load(experiment, sets=sets)
    made = _plan(loaded, runs, on_arm)
    executor = loaded.settings.executor
    measured = None
    if calibrate:
        from ablate.sweep.calibrating import calibrate as measure

        with closing(executor.open()) as pool:
            measured = measure(made.data, pool)
    room = executor.room(need_of(made.data))
    cost = price(made.data, room.places, measured)
    return replace(made, price=cost, room=room, warnings=(*made.warnings, *price_warnings(loaded, made.data, cost)))


def network(what: Plan | Experiment | str | Path, arm: str = "baseline", *, seed: int = 0) -> nn.Module:
    """The network of an arm of a plan, on the CPU, with the initial values that a trial of this seed begins with.

    Raises:
        InputError: there is no such arm, the seed is none, or the experiment cannot be planned.
    """
    from ablate.planning import Plan
    from ablate.planning.network import network_of

    return network_of(what if isinstance(what, Plan) else plan(what), arm, seed)


def load_model(what: str | Path, *, plugins: Iterable[str | Path] = ()) -> nn.Module:
    """The trained network of an arm, on the CPU and in evaluation mode.

    Args:
        what: a folder that ``ablate export`` wrote, or a complete trial's folder in a study's ``trials``.
        plugins: plugin files that the model's components come from; no other file's code is run.

    Raises:
        InputError: there is no trained model there (S411 to S414), a component is missing (S415), or its code is no
            longer that which was trained (S416).
    """
    from ablate.training.exporting import load_model as load_trained

    return load_trained(what, plugins=plugins)


def _plan(experiment: Experiment, runs: str | Path, on_arm: Callable[[int, int], None]) -> Plan:
    """The plan without its price."""
    from ablate.planning import make_plan
    from ablate.planning.warnings import hidden_results

    with redirect_stdout(sys.stderr):  # what a component prints while it is built: stdout is for results
        made = make_plan(experiment, on_arm=on_arm)
    hidden = hidden_results(experiment, made.data, StudyFolder(Path(runs) / made.name))
    return replace(made, warnings=(*made.warnings, *hidden))


def run(
    what: Plan | Experiment | str | Path,
    *,
    runs: str | Path = RUNS,
    parallel: int | None = None,
    retry: str | Iterable[str] = (),
    limit: int | None = None,
    only: str | Sequence[str] | Mapping[str, Any] = (),
    seeds: str | Iterable[int] | None = None,
    extend: bool = False,
    storage: str | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Results:
    """Run the trials that have no result yet; what is sealed is never run again.

    Args:
        what: a plan, an experiment, or the path of its file.
        runs: the folder that holds the studies.
        parallel: how many trials at once, in place of what the experiment says.
        retry: ends to run again: ``failed``, ``oom`` (those failures that ran out of memory), ``timeout``.
        limit: how many trials to start at most.
        only: start only trials of arms with these levels, as ``{"placement": "post"}`` or ``"placement=post"``, of
            which several for one factor mean any of them; and of arms that are named, as ``"baseline"``. The others
            wait.
        seeds: start only trials of these seeds, as ``[0, 3]`` or ``"0-2"``, which is 0, 1 and 2. The others wait.
        extend: run a changed plan though it leaves out results that the study has; they stay on disk.
        storage: a database's URL for the Optuna study, in place of what the experiment says.
        on_event: told everything that happens (:mod:`ablate.sweep.events`), in this thread.

    Raises:
        InputError: the experiment cannot be used, no trial has come to an end, or ``retry``, ``only`` or ``seeds`` name
            what is not there (S115).
        RefusedError: another process runs this study, the plan has changed and leaves results out, or a limit of the
            budget is reached before all trials have run; :func:`results` reads what there is.
    """
    from ablate.analysis.results import Results

    study, _, outcome = sweep_plan(
        what,
        runs=runs,
        parallel=parallel,
        retry=retry,
        limit=limit,
        only=only,
        seeds=seeds,
        extend=extend,
        storage=storage,
        on_event=on_event,
    )
    if outcome.exhausted:
        raise RefusedError(f"stopped: {outcome.exhausted}")
    return Results(study.path)


def sweep_plan(
    what: Plan | Experiment | str | Path,
    *,
    runs: str | Path = RUNS,
    parallel: int | None = None,
    retry: str | Iterable[str] = (),
    limit: int | None = None,
    only: str | Sequence[str] | Mapping[str, Any] = (),
    seeds: str | Iterable[int] | None = None,
    extend: bool = False,
    storage: str | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    on_arm: Callable[[int, int], None] = lambda done, arms: None,
    on_plan: Callable[[Plan], None] = lambda plan: None,
    plugins: Sequence[Path] = (),
    sets: Sequence[str] = (),
) -> tuple[StudyFolder, Plan, Outcome]:
    """What :func:`run` does, without reading the results: the study, the plan, and how the sweep stands.

    A file may come with ``plugins`` and ``sets``, as :func:`load` takes them.
    """
    from ablate.sweep.lock import refusal
    from ablate.sweep.signals import giving_up

    began = time.monotonic()
    # The executor is opened first, so that what trials must import is imported while the experiment is read and
    # planned, and what the plan and the driver need while trials' imports are under way.
    with giving_up(), ExitStack() as stack:
        early = executor_of(what, sets) if isinstance(what, str | Path) else None
        pool = stack.enter_context(closing(_widened(early, parallel).open())) if early else None
        if isinstance(what, str | Path):
            what = load(what, plugins=plugins, sets=sets)
        experiment = what if isinstance(what, Experiment) else what.experiment
        study = StudyFolder(Path(runs) / experiment.name)
        if others := refusal(study):  # asked before it is planned too, which may take long
            raise RefusedError(others)
        if pool is None:
            pool = stack.enter_context(closing(_widened(experiment.settings.executor, parallel).open()))
        from ablate.sweep.driver import sweep

        made = _plan(what, runs, on_arm) if isinstance(what, Experiment) else what
        on_plan(made)
        outcome = sweep(
            study,
            made.data,
            pool,
            source=experiment.document.text,
            extended=experiment.document.extended,
            on_event=on_event,
            retry=retry,
            limit=limit,
            only=only,
            seeds=seeds,
            extend=extend,
            began=began,
            storage=experiment.settings.storage if storage is None else storage,
            repeat_storage=storage is not None,
        )
    return study, made, outcome


def _widened(executor: Executor, parallel: int | None) -> Executor:
    """The executor for so many trials at once; itself, where nobody says how many."""
    if parallel is None:
        return executor
    if "parallel" not in type(executor).model_fields:
        help = "say in its own options how many trials run at once"
        raise InputError.one("S115", f"`parallel` is not for {named(executor)}, which has no such option", help=help)
    return type(executor).model_validate(executor.model_dump() | {"parallel": parallel})


def dry_run(
    what: Plan | Experiment | str | Path,
    *,
    runs: str | Path = RUNS,
    retry: str | Iterable[str] = (),
    limit: int | None = None,
    only: str | Sequence[str] | Mapping[str, Any] = (),
    seeds: str | Iterable[int] | None = None,
    extend: bool = False,
    on_arm: Callable[[int, int], None] = lambda done, arms: None,
    on_plan: Callable[[Plan], None] = lambda plan: None,
) -> Preview:
    """What :func:`run` would do with the same arguments, arm by arm; nothing is started and nothing written.

    Raises:
        InputError: the experiment cannot be used, or ``retry``, ``only`` or ``seeds`` name what is not there (S115).
        RefusedError: the design is too large. A plan that leaves results out is no error here, but said in the preview.
    """
    from ablate.planning import Plan
    from ablate.sweep.preview import preview

    experiment = what.experiment if isinstance(what, Plan) else what if isinstance(what, Experiment) else load(what)
    made = what if isinstance(what, Plan) else _plan(experiment, runs, on_arm)
    on_plan(made)
    study = StudyFolder(Path(runs) / made.name)
    return preview(study, made.data, retry=retry, limit=limit, only=only, seeds=seeds, extend=extend)


def results(what: str | Path, *, runs: str | Path = RUNS) -> Results:
    """The records of an experiment as pandas frames, with effects and verdicts; needs no torch.

    Args:
        what: a study's folder, or the experiment's file.
        runs: the folder that holds the studies, where ``what`` is a file.

    Raises:
        InputError: there is no such study, or none of its trials has ended.
    """
    from ablate.analysis.results import Results

    return Results(find_study(what, runs).path)


def report(
    what: Results | str | Path,
    *,
    runs: str | Path = RUNS,
    out: str | Path | None = None,
    plugins: Iterable[str | Path] = (),
) -> Path:
    """Write report.html with its tables beside it, and give the report's path.

    Args:
        what: results, a study's folder, or the experiment's file.
        runs: the folder that holds the studies, where ``what`` is a file.
        out: the folder to write to; by default the study's.
        plugins: plugin files with sections for it, beside those that the study was run with.

    Raises:
        InputError: there is no such study, none of its trials has ended, or a plugin file cannot be used.
    """
    from ablate.reporting import write
    from ablate.reporting.sections import sections_of

    found = results(what, runs=runs) if isinstance(what, (str, Path)) else what
    sections, notes = sections_of(found.plan, plugins)
    return write(found, sections, Path(out) if out is not None else None, notes)


def compare(a: Results | str | Path, b: Results | str | Path, *, runs: str | Path = RUNS) -> Comparison:
    """Study B against study A: what differs in their configuration, in their arms' values, and in their verdicts.

    Args:
        a: results, a study's folder, or the experiment's file: what B is held against.
        b: the same of the other study.
        runs: the folder that holds the studies, where a file is given.

    Raises:
        InputError: there is no such study, or none of its trials has ended.
        RefusedError: the two cannot be paired: they are one study, or have no arm, seed, metric or data in common.
    """
    from ablate.analysis.comparing import Comparison

    one, other = (results(each, runs=runs) if isinstance(each, (str, Path)) else each for each in (a, b))
    return Comparison(one, other)
