"""How much of its budget a study has used: hours of training and bytes on disk. No torch."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.records.layout import StudyFolder, TrialFolder, read_json
from ablate.records.steps import noted_seconds

_TIMES = (("h", 3600), ("min", 60), ("s", 1))
_SIZES = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1))
"""Units with what they hold, the largest first."""


@dataclass(frozen=True)
class Use:
    """One of the limits of a budget, and how much of it is used."""

    name: str
    """``gpu_hours``, ``wall`` or ``disk``."""
    limit: float
    """In hours, seconds or bytes."""
    used: float
    """In the same unit."""
    started: bool = True
    """Whether the call of which ``wall`` is the limit has made a step."""

    @property
    def reached(self) -> bool:
        """Whether nothing is left."""
        return self.used >= self.limit

    @property
    def text(self) -> str:
        """How it stands: ``gpu_hours: 12.3 h of 30 h``."""
        return f"{self.name}: {self._told(self.used)} of {self._told(self.limit)}"

    @property
    def used_up(self) -> str:
        """That nothing is left."""
        return f"the budget of {self._told(self.limit)} `{self.name}` is used up ({self._told(self.used)})"

    def __str__(self) -> str:
        """That nothing is left, and what to do."""
        again = "the same command goes on" if self.name == "wall" else "raise it in the file and run the same command"
        if not self.started:
            again = "nothing was started: `wall` is shorter than the start; raise it in the file"
        return f"{self.used_up}; {again}"

    def _told(self, value: float) -> str:
        if self.name == "gpu_hours":
            return f"{_digits(value)} h"
        units = _TIMES if self.name == "wall" else _SIZES
        unit, holds = next((each for each in units if value >= each[1]), units[-1])
        return f"{_digits(value / holds)} {unit}"


def uses(study: StudyFolder, budget: Mapping[str, Any]) -> list[Use]:
    """What a study's folder says is used of the limits that its budget has, but for ``wall``, which is of one call."""
    found = []
    if (hours := budget.get("gpu_hours")) is not None:
        found.append(Use("gpu_hours", hours, sum(map(trained_seconds, study.trials())) / 3600))
    if (disk := budget.get("disk")) is not None:
        found.append(Use("disk", disk, folder_size(study.path)))
    return found


def trained_seconds(folder: TrialFolder) -> float:
    """How long a trial has trained: by its record, else by the furthest of its checkpoints; damaged files say 0.

    What a trial of fewer steps had trained that it went on from is that one's; the replay of a diverged trial counts.
    """
    if folder.result.exists():
        with suppress(OSError, ValueError):
            record = read_json(folder.result)
            before = record.get("continued_from")
            own = _seconds(record) - (_seconds(before) if isinstance(before, Mapping) else 0.0)
            return max(0.0, own) + _seconds(record, "replay_seconds")
    return max(map(noted_seconds, folder.attempts()), default=0.0)


def _seconds(told: Mapping[str, Any], key: str = "seconds") -> float:
    seconds = told.get(key)
    return float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < math.inf else 0.0


def folder_size(path: Path) -> int:
    """The bytes in all files below a folder; what vanishes meanwhile counts nothing."""
    total, folders = 0, [str(path)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
    return total


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"
