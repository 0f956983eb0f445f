"""What a notebook calls: the stages of an experiment, each from the value that the stage before made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ablate.errors import InputError
from ablate.experiment import Experiment, load
from ablate.experiment.reading import read
from ablate.records.layout import StudyFolder

if TYPE_CHECKING:
    from ablate.analysis.results import Results
    from ablate.planning import Plan
    from ablate.sweep.events import Event, Outcome

__all__ = ["find_study", "load", "plan", "report", "results", "run", "sweep_plan"]

RUNS = Path("runs")
"""Where studies lie unless something else is said: one folder an experiment, in the current folder."""


def plan(experiment: Experiment | str | Path) -> Plan:
    """Resolve an experiment: every arm, its parameters and FLOPs, and every trial with its identity.

    Raises:
        InputError: the experiment, its data or its baseline cannot be used.
        RefusedError: the design is too large.
    """
    from ablate.planning import make_plan

    return make_plan(experiment if isinstance(experiment, Experiment) else load(experiment))


def run(
    what: Plan | Experiment | str | Path,
    *,
    runs: str | Path = RUNS,
    parallel: int | None = None,
    retry: Sequence[str] = (),
    limit: int | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Results:
    """Run the trials that have no result yet; what is sealed is never run again.

    Args:
        what: a plan, an experiment, or the path of its file.
        runs: the folder that holds the studies.
        parallel: how many trials at once, in place of what the experiment says.
        retry: ends to run again: ``failed``.
        limit: how many trials to start at most.
        on_event: told everything that happens (:mod:`ablate.sweep.events`), in this thread.

    Raises:
        InputError: the experiment cannot be used, or no trial has come to an end.
        RefusedError: another process runs this study.
    """
    from ablate.analysis.results import Results

    study, _, _ = sweep_plan(what, runs=runs, parallel=parallel, retry=retry, limit=limit, on_event=on_event)
    return Results(study.path)


def sweep_plan(
    what: Plan | Experiment | str | Path,
    *,
    runs: str | Path = RUNS,
    parallel: int | None = None,
    retry: Sequence[str] = (),
    limit: int | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    on_plan: Callable[[Plan], None] = lambda plan: None,
) -> tuple[StudyFolder, Plan, Outcome]:
    """What :func:`run` does, without reading the results: the study, the plan, and how the sweep stands."""
    from ablate.planning import Plan
    from ablate.sweep.driver import sweep

    experiment = what.experiment if isinstance(what, Plan) else what if isinstance(what, Experiment) else load(what)
    executor = experiment.settings.executor
    if parallel is not None:
        executor = type(executor).model_validate(executor.model_dump() | {"parallel": parallel})
    # The executor is opened first, so that what trials must import is imported while the plan is made.
    with closing(executor.open()) as pool:
        made = what if isinstance(what, Plan) else plan(experiment)
        on_plan(made)
        study = StudyFolder(Path(runs) / made.name)
        outcome = sweep(
            study,
            made.data,
            pool,
            source=experiment.document.text,
            on_event=on_event,
            retry=frozenset(retry),
            limit=limit,
        )
    return study, made, outcome


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


def report(what: Results | str | Path, *, runs: str | Path = RUNS, out: str | Path | None = None) -> Path:
    """Write report.html with its tables beside it, and give the report's path.

    Args:
        what: results, a study's folder, or the experiment's file.
        runs: the folder that holds the studies, where ``what`` is a file.
        out: the folder to write to; by default the study's.

    Raises:
        InputError: there is no such study, or none of its trials has ended.
    """
    from ablate.registry import Registry
    from ablate.reporting import write
    from ablate.slots import Section

    found = results(what, runs=runs) if isinstance(what, (str, Path)) else what
    sections = [made for section in Registry.installed().all("section") if isinstance(made := section(), Section)]
    return write(found, sections, Path(out) if out is not None else None)


def find_study(what: str | Path, runs: str | Path = RUNS) -> StudyFolder:
    """The study that a path means: its folder, or the one that an experiment's file has under ``runs``.

    Raises:
        InputError: nothing was run there yet.
    """
    path = Path(what)
    if path.is_dir() or path.suffix not in (".yaml", ".yml"):
        study = StudyFolder(path)
    else:
        name = read(path).data.get("name")
        if not isinstance(name, str) or not name:
            raise InputError.one("S104", "the experiment has no `name`", file=str(what))
        study = StudyFolder(Path(runs) / name)
    if not study.plan.is_file():
        raise InputError.one("S401", f"there is no study in `{study.path}`", help=_remedy(path, study))
    return study


def _remedy(path: Path, study: StudyFolder) -> str:
    """What to do where there is no study: the one beside the experiment's file is meant, or it was never run."""
    if not path.is_file():
        return "give a study's folder or an experiment's file"
    beside = path.parent / RUNS / study.path.name
    if StudyFolder(beside).plan.is_file():
        return f"there is one in `{beside}`: give that folder, or `--runs {path.parent / RUNS}`"
    return f"run it first: ablate run {path}"


def changed_since(what: str | Path, study: StudyFolder) -> bool:
    """Whether an experiment's file is no longer what the study was last run with; never for a study's folder."""
    path = Path(what)
    return path.is_file() and study.experiment.is_file() and path.read_bytes() != study.experiment.read_bytes()
