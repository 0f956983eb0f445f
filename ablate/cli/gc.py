"""``ablate gc``: what a study's folder has that nothing needs any more."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from ablate.cli.output import print_json, print_table, size
from ablate.records.finding import RUNS, find_study
from ablate.sweep.collecting import KINDS, Waste, collect, waste


def collect_garbage(what: Path, runs: Path, *, checkpoints: bool, orphans: bool, yes: bool, as_json: bool) -> None:
    """Print what could be removed, and remove it if the user has said so."""
    study = find_study(what, runs)
    wanted = [name for name, given in (("checkpoints", checkpoints), ("orphans", orphans)) if given]
    found = collect(study, wanted) if yes else waste(study, wanted)
    if as_json:
        kinds = {
            each.kind: {"count": each.count, "bytes": each.bytes, "removed": yes, "wanted": each.wanted}
            for each in found
        }
        print_json({"study": str(study.path), "removed": yes, "kinds": kinds})
        return
    rows = [[KINDS[each.kind], f"{each.count:,}", size(each.bytes), _flag(each)] for each in found if each.paths]
    if rows:
        print_table([("what", False), ("count", True), ("size", True), ("", False)], rows)
    here = [each for each in found if each.wanted]
    total = f"{sum(each.count for each in here):,} ({size(sum(each.bytes for each in here))})"
    if yes:
        typer.echo(f"removed: {total}: {study.path}")
    elif any(each.paths for each in here):
        where = [] if runs == RUNS else ["--runs", str(runs)]
        command = shlex.join(["ablate", "gc", str(what), *where, *(f"--{name}" for name in wanted), "--yes"])
        typer.echo(f"nothing was removed; this removes {total}: {command}")
    else:
        typer.echo("there is nothing to remove" + (" unless it is asked for" if rows else ""))


def _flag(each: Waste) -> str:
    return "" if each.wanted or not each.paths else f"only with --{each.kind}"
