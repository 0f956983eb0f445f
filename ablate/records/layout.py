"""Where everything of a study lies on disk; the one place that knows a file name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class TrialFolder:
    """The folder of one trial: its configuration, its attempts and, once sealed, its result."""

    path: Path

    @property
    def id(self) -> str:
        """The trial's identity, which is the folder's name."""
        return self.path.name

    @property
    def config(self) -> Path:
        """What is to be trained, written before the first attempt starts."""
        return self.path / "config.json"

    @property
    def result(self) -> Path:
        """The sealed record; it exists only when the trial has ended for good."""
        return self.path / "result.json"

    def attempt(self, number: int) -> AttemptFolder:
        """The folder of attempt ``number``, counted from 1."""
        return AttemptFolder(self.path / f"a{number:03d}")

    def attempts(self) -> list[AttemptFolder]:
        """All attempts so far, oldest first."""
        try:
            names = os.listdir(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = [AttemptFolder(self.path / name) for name in names if name[0] == "a" and name[1:].isdecimal()]
        return sorted(found, key=lambda attempt: attempt.number)


@dataclass(frozen=True)
class AttemptFolder:
    """What one attempt wrote; no other attempt ever writes here."""

    path: Path

    @property
    def number(self) -> int:
        """The attempt's number, counted from 1."""
        return int(self.path.name[1:])

    @property
    def checkpoint(self) -> Path:
        """Everything that is needed to go on."""
        return self.path / "checkpoint.pt"

    @property
    def checkpoint_step(self) -> Path:
        """How far the checkpoint has come: its step, and the seconds of training in it."""
        return self.path / "checkpoint.json"

    @property
    def log(self) -> Path:
        """What the attempt printed."""
        return self.path / "log.txt"

    @property
    def curves(self) -> Path:
        """Arrow stream: step, metric, value."""
        return self.path / "curves.arrow"

    @property
    def probes(self) -> Path:
        """Arrow stream: step, metric, layer, role, name, value."""
        return self.path / "probes.arrow"

    @property
    def rung(self) -> Path:
        """The rung at which an attempt of a tuning trial paused, and the objective's value there."""
        return self.path / "rung.json"

    @property
    def end(self) -> Path:
        """How an attempt ended that gave no result."""
        return self.path / "end.json"


@dataclass(frozen=True)
class StudyFolder:
    """The folder of one experiment's runs."""

    path: Path

    @property
    def experiment(self) -> Path:
        """The YAML as the user wrote it."""
        return self.path / "experiment.yaml"

    @property
    def extended(self) -> Path:
        """The YAML that :attr:`experiment` extends, where it extends a file."""
        return self.path / "extended.yaml"

    @property
    def plan(self) -> Path:
        """The resolved plan."""
        return self.path / "plan.json"

    @property
    def storage(self) -> Path:
        """Optuna's SQLite file, an index of what the trials' folders say."""
        return self.path / "study.db"

    @property
    def database(self) -> Path:
        """The database that the last run was told to use in place of the experiment's, without its password.

        It is there only where a run was told so.
        """
        return self.path / "storage.json"

    @property
    def owner(self) -> Path:
        """An identity of this folder, by which a database knows whose a study in it is."""
        return self.path / "study.id"

    @property
    def lock(self) -> Path:
        """Held by the one driver that runs this study."""
        return self.path / "lock"

    @property
    def progress(self) -> Path:
        """Where the sweep stands that runs, or ran last; written anew about once a second."""
        return self.path / "progress.json"

    @property
    def trials_folder(self) -> Path:
        """The folder that holds one folder a trial."""
        return self.path / "trials"

    def trial(self, id: str) -> TrialFolder:
        """The folder of the trial with this identity, whether or not it exists."""
        return TrialFolder(self.trials_folder / id)

    def trials(self) -> Iterator[TrialFolder]:
        """Every trial that has a folder, in the order of their identities."""
        if self.trials_folder.is_dir():
            for path in sorted(self.trials_folder.iterdir()):
                if path.is_dir():
                    yield TrialFolder(path)


def read_json(path: Path) -> dict[str, Any]:
    """One JSON object from a file.

    Raises:
        ValueError: the file holds something else.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError(f"{path.name} is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path.name} holds no JSON object")
    return value
