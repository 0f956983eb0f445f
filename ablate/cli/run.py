"""``ablate run``: train what is missing."""

from __future__ import annotations

from pathlib import Path

import typer

from ablate.analysis.code import other_code
from ablate.api import sweep_plan
from ablate.cli.output import print_json, print_warnings
from ablate.cli.progress import Progress
from ablate.cli.status import next_command
from ablate.experiment import load
from ablate.sweep.events import Interrupted


def run_experiment(
    file: Path,
    runs: Path,
    plugins: list[Path],
    *,
    parallel: int | None,
    retry: list[str],
    limit: int | None,
    as_json: bool,
) -> None:
    """Run an experiment with progress on stderr; exit 1 if trials failed, 130 if interrupted."""
    experiment = load(file, plugins=plugins)
    try:
        with Progress() as progress:
            study, made, outcome = sweep_plan(
                experiment,
                runs=runs,
                parallel=parallel,
                retry=retry,
                limit=limit,
                on_event=progress,
                on_plan=lambda plan: print_warnings(plan.warnings),
            )
    except Interrupted as stopped:
        raise typer.Exit(stopped.exit_code) from None
    for note in other_code(made.data, study.path):
        typer.echo(f"note: {note}", err=True)
    counts = outcome.counts
    if as_json:
        print_json(
            {
                "study": str(study.path),
                "planned": counts.planned,
                "complete": counts.complete,
                "diverged": counts.diverged,
                "failed": counts.failed,
                "waiting": counts.waiting,
                "failures": [
                    {"arm": each.arm, "seed": each.seed, "attempt": each.attempt, "error": each.error}
                    for each in outcome.failures
                ],
            }
        )
    else:
        parts = [f"{counts.done} of {counts.planned} trials have a result"]
        parts += [f"{number} {word}" for word in ("diverged", "failed", "waiting") if (number := getattr(counts, word))]
        typer.echo(", ".join(parts) + f": {study.path}")
        typer.echo(f"next: {next_command(file, runs, waiting=counts.waiting, failed=counts.failed)}")
    if outcome.exit_code:
        raise typer.Exit(outcome.exit_code)
