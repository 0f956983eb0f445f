"""``ablate export``: a trained arm as a folder that gives a module back in two lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from ablate.cli.output import print_json, size
from ablate.cli.show import SHORTEST, find
from ablate.errors import InputError
from ablate.records.finding import EXPERIMENTS, find_study
from ablate.records.layout import StudyFolder, TrialFolder, read_json
from ablate.records.usage import folder_size


def export_trial(
    what: Path, name: str | None, runs: Path, *, seed: int | None, out: Path | None, as_json: bool
) -> None:
    """Write the trained module of a trial, and print how to load it."""
    folder = find_trial(what, name, runs, seed)
    from ablate.training.exporting import export  # torch takes seconds, and a wrong name should not

    out = out or Path(f"{folder.path.parent.parent.resolve().name}-{folder.id[:8]}")
    config = export(folder, out).config
    plugins = _plugins(folder, config)
    lines = ["import ablate", f"model = ablate.load_model({str(out)!r}{plugins})"]
    told = {key: config[key] for key in ("trial", "arm_name", "seed", "metrics")}
    if as_json:
        print_json({"folder": str(out), **told, "python": lines})
        return
    typer.echo(
        f"{config['arm_name']}, seed {config['seed']}, trial {config['trial']}: {out} ({size(folder_size(out))})"
    )
    typer.echo("\n".join(["", *lines]))


def find_trial(what: Path, name: str | None, runs: Path, seed: int | None) -> TrialFolder:
    """The folder of the trial that is meant: by its path, by the beginning of its identity, or by its arm and seed.

    Raises:
        InputError: there is none, or there are several (S116).
    """
    if name is None and seed is None and (found := _alone(what, runs)):
        return found
    study = find_study(what, runs)
    if name is not None and len(name) >= SHORTEST:
        begin = [folder for folder in study.trials() if folder.id.startswith(name)]
        if begin:
            return _only(begin, name)
    return _of_arm(study, name, seed)


def _alone(what: Path, runs: Path) -> TrialFolder | None:
    """The trial that a single word means: its folder, or an identity that any study may have."""
    if (what / "config.json").is_file():
        return TrialFolder(what)
    if what.exists() or what.suffix in EXPERIMENTS or len(what.parts) != 1 or len(what.name) < SHORTEST:
        return None
    studies = [StudyFolder(path) for path in sorted(runs.iterdir())] if runs.is_dir() else []
    begin = [folder for study in studies for folder in study.trials() if folder.id.startswith(what.name)]
    return _only(begin, what.name) if begin else None


def _only(found: list[TrialFolder], name: str) -> TrialFolder:
    if len(found) == 1:
        return found[0]
    named = ", ".join(f"`{folder.id}`" for folder in found[:6])
    more = f" and {len(found) - 6} more" if len(found) > 6 else ""
    raise InputError.one("S116", f"{len(found)} trials begin with `{name}`", help=f"they are {named}{more}")


def _of_arm(study: StudyFolder, name: str | None, seed: int | None) -> TrialFolder:
    from ablate.records.frames import read_plan  # it brings pandas

    plan = read_plan(study.path)
    if name is None:
        names = "; ".join(arm["name"] for arm in plan["arms"][:6])
        raise InputError.one("S116", "say which arm, or which trial", help=f"the arms are {names}")
    arm, trial = find(plan, name, seed)
    own = [each for each in plan["trials"] if each["arm"] == arm["id"]] if trial is None else [trial]
    if len(own) > 1:
        seeds = ", ".join(str(each["seed"]) for each in own[:10]) + (", …" if len(own) > 10 else "")
        raise InputError.one("S116", f"`{name}` has {len(own)} trials: say which", help=f"--seed, one of {seeds}")
    folder = study.trial(own[0]["id"])
    if not folder.path.is_dir():
        why = "its arm is still being tuned" if arm.get("tuning") and "tuned" not in arm else "it has not begun yet"
        help = f"`ablate status {study.path}` says what to do next"
        raise InputError.one("S412", f"trial {folder.id} has no trained model: {why}", help=help)
    return folder


def _plugins(folder: TrialFolder, config: Mapping[str, Any]) -> str:
    """The plugin files to be named when the model is loaded: those that its components came from."""
    origins = {Path(each["origin"]).name for each in config["components"] if each["origin"].endswith(".py")}
    if not origins:
        return ""
    try:
        files = read_json(folder.path.parent.parent / "plan.json").get("plugins", [])
    except (OSError, ValueError):
        files = []
    paths = {Path(file).name: file for file in files}
    return f", plugins={[paths.get(origin, origin) for origin in sorted(origins)]!r}"
