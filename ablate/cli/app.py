"""The verbs; each is a few lines here and imports what it needs when it is called."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="ablate",
    help="Architecture ablations for Transformers: declare a grid, launch it, read which choices help and why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
plugins = typer.Typer(help="The components that can be named, and where they come from.", no_args_is_help=True)
app.add_typer(plugins, name="plugins")

File = Annotated[Path, typer.Argument(metavar="X.yaml", help="An experiment file.", show_default=False)]
Study = Annotated[
    Path, typer.Argument(metavar="X", help="An experiment file, or a study's folder.", show_default=False)
]
Runs = Annotated[Path, typer.Option("--runs", metavar="DIR", help="The folder that holds the studies.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for tools.")]
Plugin = Annotated[list[Path] | None, typer.Option("--plugin", metavar="FILE", help="A plugin file; may be repeated.")]
RUNS = Path("runs")


class Retry(StrEnum):
    """Ends that can be run again."""

    failed = "failed"


@app.command()
def plan(file: File, plugin: Plugin = None, as_json: AsJson = False) -> None:
    """Validate, expand and count: arms, parameters against the baseline, trials, warnings."""
    from ablate.cli.plan import show_plan

    show_plan(file, plugin or [], as_json=as_json)


@app.command()
def run(
    file: File,
    runs: Runs = RUNS,
    plugin: Plugin = None,
    parallel: Annotated[int | None, typer.Option(min=1, help="Trials at once.", show_default=False)] = None,
    retry: Annotated[list[Retry] | None, typer.Option(help="Run trials with this end again.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Start at most so many trials.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Run what is missing; the same command goes on after an interruption."""
    from ablate.cli.run import run_experiment

    run_experiment(file, runs, plugin or [], parallel=parallel, retry=list(retry or []), limit=limit, as_json=as_json)


@app.command()
def status(study: Study, runs: Runs = RUNS, as_json: AsJson = False) -> None:
    """How far an experiment is, arm by arm, and what to do next."""
    from ablate.cli.status import show_status

    show_status(study, runs, as_json=as_json)


@app.command()
def report(
    study: Study,
    runs: Runs = RUNS,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to write; by default the study's folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write report.html with its tables, and print the verdicts."""
    from ablate.cli.report import write_report

    write_report(study, runs, out, as_json=as_json)


@plugins.command("list")
def plugins_list(plugin: Plugin = None, as_json: AsJson = False) -> None:
    """Every component: slot, name, origin, what it is; and plugins that could not be used."""
    from ablate.cli.plugins import list_plugins

    list_plugins(plugin or [], as_json=as_json)


@app.command()
def schema(
    plugin: Plugin = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write here rather than to stdout.")] = None,
) -> None:
    """The JSON Schema of an experiment file with the components that are installed, for editors."""
    from ablate.cli.schema import write_schema

    write_schema(plugin or [], out)
