"""What lies in a study's folder that nothing needs any more, and removing it: ``ablate gc``."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.errors import InputError, RefusedError
from ablate.records.beside import beside
from ablate.records.layout import AttemptFolder, StudyFolder, TrialFolder, read_json
from ablate.records.shapes import plan_fault
from ablate.records.usage import folder_size
from ablate.sweep.growing import Lineages
from ablate.sweep.lock import driving, refusal
from ablate.sweep.survey import survey

KINDS: Mapping[str, str] = {
    "superseded": "checkpoints of trials that have a result, but for the last of each complete one",
    "temporary": "files that a killed process left half written",
    "damaged": "records and indexes that were damaged and set aside",
    "checkpoints": "last checkpoints of complete trials, which `ablate export` and more steps need",
    "orphans": "folders of trials that the plan no longer has, with their results",
}
"""What can be removed, with what it is. The last two are removed only where they are asked for."""
ASKED = ("checkpoints", "orphans")
_TEMPORARY = re.compile(r"\..+\.(\d+)\.tmp")


@dataclass(frozen=True)
class Waste:
    """What of one kind can be removed."""

    kind: str
    """One of :data:`KINDS`."""
    paths: tuple[Path, ...]
    """Files, and folders of trials."""
    bytes: int
    wanted: bool
    """Whether it is removed by default, or was asked for."""

    @property
    def count(self) -> int:
        """How many files, or trials."""
        return sum(path.name != "checkpoint.json" for path in self.paths)


def waste(study: StudyFolder, wanted: Collection[str] = ()) -> list[Waste]:
    """Look what could be removed; nothing is. Links are not followed, and never removed.

    Args:
        study: the study.
        wanted: what to remove beside the rest: ``checkpoints``, ``orphans``.

    Raises:
        RefusedError: the study is being run.
        InputError: its plan cannot be read (S403).
    """
    if why := refusal(study):
        raise RefusedError(why)
    return _waste(study, wanted)


def collect(study: StudyFolder, wanted: Collection[str] = ()) -> list[Waste]:
    """Remove what :func:`waste` finds, and give what was removed; raises as it does.

    A result of a trial that the plan has is never removed.
    """
    with driving(study):  # nobody begins meanwhile, and nothing has changed since it was looked at
        found = [each for each in _waste(study, wanted) if each.wanted]
        for each in found:
            for path in each.paths:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        return found


def _waste(study: StudyFolder, wanted: Collection[str]) -> list[Waste]:
    plan = _plan(study)
    planned = {trial["id"] for trial in (*plan["trials"], *beside(plan))}
    tuned = {arm["tuning"]["identity"] for arm in plan["arms"] if arm.get("tuning") and "tuned" not in arm}
    records = survey(study, mend=False).records
    needed = {each.trial for each in Lineages(plan).shorter(study, records).values()}
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    found["temporary"] += _half_written(study.path)
    found["damaged"] += [path for path in _files(study.path) if path.name.startswith("study.old.db")]
    for folder in _trials(study):
        if folder.id not in planned | needed and _untuned(folder) not in tuned:
            found["orphans"].append(folder.path)
            if "orphans" in wanted:
                continue  # all that is in it goes with it
        found["temporary"] += _half_written(folder.path)
        found["damaged"] += [path for path in _files(folder.path) if path.name == "result.damaged.json"]
        record = records.get(folder.id)
        for attempt in _attempts(folder):
            found["temporary"] += _half_written(attempt.path)
            if record is None:
                continue
            last = record["end"] == "complete" and record["attempt"] == attempt.number
            if last and folder.id in needed:
                continue
            files = (attempt.checkpoint, attempt.checkpoint_step)
            found["checkpoints" if last else "superseded"] += [path for path in files if _is_file(path)]
    return [
        Waste(kind, tuple(paths), sum(map(_size, paths)), kind not in ASKED or kind in wanted)
        for kind, paths in found.items()
    ]


def _untuned(folder: TrialFolder) -> str | None:
    """What a tuned trial is without its tuned values: a plan whose search is not through yet may come to them again."""
    try:
        untuned = read_json(folder.config).get("untuned")
    except (OSError, ValueError):
        return None
    return untuned if isinstance(untuned, str) else None


def _plan(study: StudyFolder) -> dict[str, Any]:
    """The plan, without which nobody knows what it no longer has."""
    try:
        plan = read_json(study.plan)
        fault = plan_fault(plan)
    except (OSError, ValueError) as error:
        plan, fault = {}, str(error)
    if fault:
        raise InputError.one(
            "S403", f"`plan.json` cannot be read: {fault}", file=str(study.plan),
            help="run the experiment again, which writes it anew",
        )  # fmt: skip
    return plan


# --- looking, without following links -------------------------------------------------------------------------------


def _trials(study: StudyFolder) -> Iterator[TrialFolder]:
    if not study.trials_folder.is_symlink():
        yield from (folder for folder in study.trials() if not folder.path.is_symlink())


def _attempts(folder: TrialFolder) -> Iterator[AttemptFolder]:
    yield from (each for each in folder.attempts() if each.path.is_dir() and not each.path.is_symlink())


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in sorted(folder.iterdir()) if _is_file(path))


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _half_written(folder: Path) -> list[Path]:
    """Temporary files whose writer is no more."""
    found = [(path, _TEMPORARY.fullmatch(path.name)) for path in _files(folder)]
    return [path for path, match in found if match and not _alive(int(match[1]))]


def _alive(process: int) -> bool:
    with contextlib.suppress(ProcessLookupError, OverflowError):
        try:
            os.kill(process, 0)
        except PermissionError:  # somebody else's
            return True
        return process > 0
    return False


def _size(path: Path) -> int:
    return folder_size(path) if path.is_dir() else path.lstat().st_size
