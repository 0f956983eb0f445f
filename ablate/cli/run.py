"""``ablate run``: train what is missing."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ablate.analysis.code import other_code
from ablate.api import dry_run, sweep_plan
from ablate.cli.event_output import EventOutput
from ablate.cli.output import Planning, console, print_json, print_table, print_warnings
from ablate.cli.progress import Progress
from ablate.cli.status import next_command
from ablate.experiment import load
from ablate.sweep.events import Interrupted

if TYPE_CHECKING:
    from ablate.sweep.preview import Preview, Tally

COLUMNS = {
    "results": "have a result",
    "resume": "from a checkpoint",
    "grown": "from fewer steps",
    "anew": "from the first step",
    "failed": "wait for --retry failed",
    "oom": "wait for --retry oom",
    "timed_out": "wait for --retry timeout",
    "pruned": "pruned in tuning",
    "held": "not now",
    "later": "after tuning",
    "new": "new in the plan",
}
"""The title of each of a preview's tallies."""


def run_experiment(
    file: Path,
    runs: Path,
    plugins: list[Path],
    *,
    sets: list[str],
    parallel: int | None,
    retry: list[str],
    limit: int | None,
    only: list[str],
    seeds: str | None,
    extend: bool,
    storage: str | None,
    as_json: bool,
) -> None:
    """Run an experiment, showing it on stderr; exit 1 if trials failed, 3 by the budget, 130 if interrupted."""
    view = EventOutput() if as_json else Progress()
    try:
        with view, nullcontext(_say_nothing) if as_json else Planning() as planning:
            study, made, outcome = sweep_plan(
                file,
                runs=runs,
                parallel=parallel,
                retry=retry,
                limit=limit,
                only=only,
                seeds=seeds,
                extend=extend,
                storage=storage,
                on_event=view,
                on_arm=planning,
                on_plan=lambda plan: view.warn(plan.warnings),
                plugins=plugins,
                sets=sets,
            )
    except Interrupted as stopped:
        if not view.ended:
            view.note(str(stopped))
        raise typer.Exit(stopped.exit_code) from None
    for note in other_code(made.data, study.path):
        view.note(note)
    counts, used_up = outcome.counts, outcome.exhausted
    if as_json:
        print_json(
            {
                "study": str(study.path),
                "planned": counts.planned,
                "complete": counts.complete,
                "diverged": counts.diverged,
                "failed": counts.failed,
                "oom": counts.oom,
                "timed_out": counts.timed_out,
                "waiting": counts.waiting,
                "exhausted": asdict(used_up) if used_up else None,
                "failures": [
                    {key: getattr(each, key) for key in ("arm", "seed", "attempt", "end", "cause", "error")}
                    for each in outcome.failures
                ],
            }
        )
    else:
        parts = [f"{counts.complete + counts.diverged} of {counts.planned} trials have a result"]
        words = ("diverged", "pruned", "failed", "timed_out", "waiting")
        parts += [f"{number} {word.replace('_', ' ')}" for word in words if (number := getattr(counts, word))]
        typer.echo(", ".join(parts) + f": {study.path}")
        command, left = shlex.split(made.experiment.command), asdict(counts)
        if made.data.get("tuning") and outcome.failures:
            left["waiting"] = 0  # arms may wait for their tuning, which waits for a retry: that runs the others too
        typer.echo(f"next: {next_command(command, file, study, runs, left)}")
    if outcome.exit_code:
        raise typer.Exit(outcome.exit_code)


def _say_nothing(done: int, arms: int) -> None:
    """How far a plan is, for tools: they wait, and read one object a line."""


def preview_experiment(
    file: Path,
    runs: Path,
    plugins: list[Path],
    *,
    sets: list[str],
    retry: list[str],
    limit: int | None,
    only: list[str],
    seeds: str | None,
    extend: bool,
    as_json: bool,
) -> None:
    """Print what a run would do; nothing is started or written. Exit 3 if the run would be refused."""
    experiment = load(file, plugins=plugins, sets=sets)
    with Planning() as planning:
        seen = dry_run(
            experiment,
            runs=runs,
            retry=retry,
            limit=limit,
            only=only,
            seeds=seeds,
            extend=extend,
            on_arm=planning,
            on_plan=lambda plan: print_warnings(plan.warnings),
        )
    if as_json:
        arms = {id: {"name": name, **_tallied(tally)} for id, name, tally in seen.arms}
        print_json(
            {
                "study": str(seen.study.path),
                **_tallied(seen.total),
                "growth": seen.growth,
                "arms": arms,
                "refused": seen.refusal,
            }
        )
    else:
        _print_preview(seen)
    if seen.refusal:
        raise typer.Exit(3)


def _tallied(tally: Tally) -> dict[str, int]:
    return {"planned": tally.planned, "to_run": tally.to_run, **{name: getattr(tally, name) for name in COLUMNS}}


def _print_preview(seen: Preview) -> None:
    shown = [name for name in COLUMNS if getattr(seen.total, name)]
    columns = [("arm", False), *((COLUMNS[name], True) for name in shown), ("planned", True)]
    tallies = [*((name, tally) for _, name, tally in seen.arms), ("all", seen.total)]
    rows = [
        [title, *(str(getattr(tally, name) or "") for name in shown), str(tally.planned)] for title, tally in tallies
    ]
    print_table(columns, rows)
    for growth in seen.growth:
        console().print(growth)
    if seen.refusal:
        console().print(seen.refusal)
    else:
        console().print(f"dry run: {seen.total.to_run} of {seen.total.planned} trials would run: {seen.study.path}")
