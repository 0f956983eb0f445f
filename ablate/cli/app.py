"""The verbs; each is a few lines here and imports what it needs when it is called."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="ablate",
    help="Architecture ablations for Transformers: declare a grid, launch it, read which choices help and why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
plugins = typer.Typer(help="Components: list them, show one, check them, begin a new one.", no_args_is_help=True)
app.add_typer(plugins, name="plugins")

File = Annotated[Path, typer.Argument(metavar="X.yaml", help="An experiment file.", show_default=False)]
Study = Annotated[
    Path, typer.Argument(metavar="X", help="An experiment file, or a study's folder.", show_default=False)
]
Runs = Annotated[Path, typer.Option("--runs", metavar="DIR", help="The folder that holds the studies.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for tools.")]
Plugin = Annotated[list[Path] | None, typer.Option("--plugin", metavar="FILE", help="A plugin file; may be repeated.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Over what the file says, as training.batch=16; may be repeated."),
]
RUNS = Path("runs")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"ablate {version('ablate-arch')}")
        raise typer.Exit


class FailOn(StrEnum):
    """What a comparison can fail on."""

    worse = "worse"
    flip = "flip"


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Architecture ablations for Transformers: declare a grid, launch it, read which choices help and why."""


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder; made if need be.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Write a first experiment that runs as it is.

    Beside it a plugin with a norm of its own, and the editor's schema. Nothing that is there is overwritten.
    """
    from ablate.cli.init import start

    start(folder, as_json=as_json)


@app.command()
def plan(
    file: File,
    runs: Runs = RUNS,
    plugin: Plugin = None,
    sets: Sets = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure the price: 20 steps of each distinct shape.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what would run, and what it costs.

    Validates, expands, matches and prices: arms, parameters against the baseline, trials, time, memory, warnings.
    """
    from ablate.cli.plan import show_plan

    show_plan(file, plugin or [], sets=sets or [], calibrate=calibrate, runs=runs, as_json=as_json)


@app.command()
def run(
    file: File,
    runs: Runs = RUNS,
    plugin: Plugin = None,
    sets: Sets = None,
    parallel: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Trials at once; by default what `executor` says.", show_default=False),
    ] = None,
    retry: Annotated[
        list[str] | None,
        typer.Option(metavar="failed|oom|timeout", help="Run trials with this end again; may be repeated."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Start at most so many trials.", show_default=False)
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FACTOR=LEVEL",
            help="Only arms with this level, or `baseline`; repeated for one factor, with any of them.",
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="SEEDS", help="Only these seeds, as 0-2 or 0,3,5.", show_default=False)
    ] = None,
    extend: Annotated[
        bool, typer.Option("--extend", help="Take a changed plan that leaves results out; they stay on disk.")
    ] = False,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="A database for the Optuna study: postgresql+psycopg://...", show_default=False
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run, and run nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run what is missing.

    The same command goes on after an interruption, a crash, or when the file has grown.
    """
    from ablate.cli import run as verb
    from ablate.sweep.choosing import retried

    retried(retry or [])  # a wrong word is told before anything is planned
    which: dict[str, Any] = {
        "sets": sets or [],
        "retry": retry or [],
        "limit": limit,
        "only": only or [],
        "seeds": seeds,
        "extend": extend,
    }
    if dry_run:
        verb.preview_experiment(file, runs, plugin or [], **which, as_json=as_json)
    else:
        verb.run_experiment(file, runs, plugin or [], parallel=parallel, storage=storage, **which, as_json=as_json)


@app.command()
def status(
    study: Study,
    runs: Runs = RUNS,
    watch: Annotated[
        bool, typer.Option("--watch", help="Follow it while another process runs it; Ctrl-C harms nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say how far it is, and what to do next."""
    from ablate.cli.status import show_status

    if watch:
        from ablate.cli.watch import follow

        follow(study, runs)
    show_status(study, runs, as_json=as_json)


@app.command()
def report(
    study: Study,
    runs: Runs = RUNS,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to write; by default the study's folder.")
    ] = None,
    plugin: Plugin = None,
    as_json: AsJson = False,
) -> None:
    """Write the report, and print the verdicts.

    Beside report.html lie trials.csv, effects.csv, effects.tex, effects.md and report.json, all with the same numbers.
    """
    from ablate.cli.report import write_report

    write_report(study, runs, out, plugin or [], as_json=as_json)


@app.command()
def compare(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="An experiment file, or a study's folder.", show_default=False)
    ],
    b: Annotated[Path, typer.Argument(metavar="B", help="The same, to hold against A.", show_default=False)],
    runs: Runs = RUNS,
    fail_on: Annotated[
        list[FailOn] | None,
        typer.Option(metavar="worse|flip", help="Exit 1 if any arm is worse, or any verdict flips; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Hold a study against another.

    What differs in the configuration, then each arm's effect, B minus A on common seeds, then which verdicts flipped
    and why. Worse is an arm whose verdict is so, its size uncertain or not, or that diverged in more of those seeds.
    """
    from ablate.cli.compare import compare_studies

    compare_studies(a, b, runs, fail_on=[str(each) for each in fail_on or []], as_json=as_json)


@app.command()
def show(
    study: Study,
    name: Annotated[
        str | None,
        typer.Argument(metavar="ARM|TRIAL", help="An arm's name, or the beginning of an identity.", show_default=False),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The arm's trial with this seed.", show_default=False)] = None,
    runs: Runs = RUNS,
    plugin: Plugin = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Show one arm or trial, value by value.

    Each value has the file and line that it comes from; a trial has its end and its log. Without a name: all arms.
    """
    from ablate.cli.show import show as verb

    verb(study, name, runs, plugin or [], seed=seed, sets=sets or [], as_json=as_json)


@app.command()
def export(
    study: Annotated[
        Path,
        typer.Argument(metavar="X|TRIAL", help="An experiment file, a study's folder, or a trial.", show_default=False),
    ],
    name: Annotated[
        str | None,
        typer.Argument(metavar="ARM|TRIAL", help="An arm's name, or the beginning of an identity.", show_default=False),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The arm's trial with this seed.", show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder to write, which is made.", show_default=False)
    ] = None,
    runs: Runs = RUNS,
    as_json: AsJson = False,
) -> None:
    """Write a trained arm to a folder.

    With its weights and its resolved configuration; prints the two lines of Python that give the module back.
    """
    from ablate.cli.export import export_trial

    export_trial(study, name, runs, seed=seed, out=out, as_json=as_json)


@app.command()
def gc(
    study: Study,
    runs: Runs = RUNS,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Also the last checkpoints of complete trials.")
    ] = False,
    orphans: Annotated[bool, typer.Option("--orphans", help="Also trials that the plan no longer has.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what nothing needs any more, or remove it.

    Superseded checkpoints, half-written files, damaged records that were set aside: how many, and how many bytes.
    """
    from ablate.cli.gc import collect_garbage

    collect_garbage(study, runs, checkpoints=checkpoints, orphans=orphans, yes=yes, as_json=as_json)


@plugins.command("list")
def plugins_list(
    plugin: Plugin = None,
    slot: Annotated[str | None, typer.Option(metavar="SLOT", help="Only this slot's.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Every component, and plugins that could not be used.

    Slot, kind, origin, version, status (ok, the default of its slot, neutral: what `off` puts there), description.
    """
    from ablate.cli.plugins.listing import list_plugins

    list_plugins(plugin or [], slot=slot, as_json=as_json)


@plugins.command("show")
def plugins_show(
    name: Annotated[
        str, typer.Argument(metavar="KIND|SLOT.KIND", help="As rms, norm.rms or norm:rms.", show_default=False)
    ],
    plugin: Plugin = None,
    as_json: AsJson = False,
) -> None:
    """One component: what it is, its options, how to name it.

    With its paper, origin, version and source, what it declares, every option's type, default and bounds, and YAML.
    """
    from ablate.cli.plugins.showing import show_plugin

    show_plugin(name, plugin or [], as_json=as_json)


@plugins.command("check")
def plugins_check(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME|FILE...", help="Components, slots, distributions or plugin files.", show_default=False
        ),
    ],
    plugin: Plugin = None,
    as_json: AsJson = False,
) -> None:
    """Hold components against the contract of their slot.

    A line for each that passes; for each check that fails what was expected, what was got, file and line. Exits 1 then.
    """
    from ablate.cli.plugins.checking import check_plugins

    check_plugins(names, plugin or [], as_json=as_json)


@plugins.command("new")
def plugins_new(
    slot: Annotated[str, typer.Argument(metavar="SLOT", help="As norm or feed_forward.", show_default=False)],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What it is called in YAML: small letters and _.", show_default=False)
    ],
    package: Annotated[bool, typer.Option("--package", help="Write a distribution that can be installed.")] = False,
    into: Annotated[Path, typer.Option("--into", metavar="DIR", help="The folder; made if need be.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Write a component that works, to be changed as you like.

    With a test of its contract and an experiment that uses it. Nothing that is there is overwritten.
    """
    from ablate.cli.plugins.starting import start_plugin

    start_plugin(slot, name, into, package=package, as_json=as_json)


@app.command()
def explain(
    code: Annotated[str | None, typer.Argument(metavar="CODE", help="As in S101.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Say more about an error or a warning.

    What is wrong, why, and an example; without a code, every code.
    """
    from ablate.cli.explain import show_explanation

    show_explanation(code, as_json=as_json)


@app.command()
def schema(
    plugin: Plugin = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write here rather than to stdout.")] = None,
) -> None:
    """Write the JSON Schema of experiments.

    With the components that are installed, for editors to complete and check by.
    """
    from ablate.cli.schema import write_schema

    write_schema(plugin or [], out)
