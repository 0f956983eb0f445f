"""Which study is meant: a path may be its folder, or the file of its experiment."""

from __future__ import annotations

import shlex
from pathlib import Path

from ablate.errors import InputError
from ablate.experiment.layering import read_layered
from ablate.records.layout import StudyFolder

RUNS = Path("runs")
"""Where studies lie unless something else is said: one folder an experiment, in the current folder."""
EXPERIMENTS = (".yaml", ".yml")
"""How the name of an experiment's file ends."""


def find_study(what: str | Path, runs: str | Path = RUNS) -> StudyFolder:
    """The study that a path means: its folder, or the one that an experiment's file has under ``runs``.

    Raises:
        InputError: nothing was run there yet.
    """
    path = Path(what)
    if path.is_dir() or path.suffix not in EXPERIMENTS:
        study = StudyFolder(path)
    else:
        name = read_layered(path).data.get("name")
        if not isinstance(name, str) or not name:
            raise InputError.one("S104", "the experiment has no `name`", file=str(what))
        study = StudyFolder(Path(runs) / name)
    if not study.plan.is_file():
        raise InputError.one("S401", f"there is no study in `{study.path}`", help=_remedy(path, study, Path(runs)))
    return study


def _remedy(path: Path, study: StudyFolder, runs: Path) -> str:
    """What to do where there is no study: one around the path or beside the file is meant, or it was never run."""
    around = next((folder for folder in path.parents if StudyFolder(folder).plan.is_file()), None)
    if path.exists() and around is not None:
        return f"it is inside of a study: give `{around}`"
    if not path.is_file() or path.suffix not in EXPERIMENTS:
        return "give a study's folder or an experiment's file"
    beside = path.parent / RUNS / study.path.name
    if StudyFolder(beside).plan.is_file():
        return f"there is one in `{beside}`: give that folder, or `--runs {path.parent / RUNS}`"
    where = [] if runs == RUNS else ["--runs", str(runs)]
    return f"run it first: {shlex.join(['ablate', 'run', str(path), *where])}"


def changed_since(what: str | Path, study: StudyFolder) -> bool:
    """Whether an experiment's file is no longer what the study was last run with; never for a study's folder."""
    path = Path(what)
    return path.is_file() and study.experiment.is_file() and path.read_bytes() != study.experiment.read_bytes()
