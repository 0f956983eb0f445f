"""Narrow moments in which a test wants to kill a process: the test arms one, and a process that enters it waits there.

A process that waits inside has a mark there.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

FOLDER = "ABLATE_TEST_WINDOWS"
"""The environment variable that names the folder of marks to the processes of a study."""
PATIENCE = 60.0
"""Seconds that a process waits to be killed."""


class Windows:
    """The windows of one study; at most one is armed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._armed = folder / "armed"
        folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of_environment(cls) -> Windows:
        return cls(Path(os.environ[FOLDER]))

    def arm(self, name: str) -> None:
        """Whoever comes to this moment from now on waits there."""
        partial = self._folder / "arming"
        partial.write_text(name)
        partial.rename(self._armed)

    def disarm(self) -> None:
        """Let go whoever waits, and forget who was ended there."""
        self._armed.unlink(missing_ok=True)
        for mark in self._folder.glob("*.mark"):
            mark.unlink(missing_ok=True)

    def armed(self) -> str | None:
        try:
            return self._armed.read_text()
        except FileNotFoundError:
            return None

    def pause(self, name: str) -> None:
        """Wait to be killed, if this is the moment that is armed."""
        if self.armed() != name:
            return
        mark = self._folder / f"{name}.{os.getpid()}.{time.monotonic_ns()}.mark"
        mark.touch()
        deadline = time.monotonic() + PATIENCE
        while self.armed() == name and time.monotonic() < deadline:
            time.sleep(0.002)
        mark.unlink(missing_ok=True)

    def inside(self, name: str) -> list[int]:
        """The processes that have come to this moment and have not left it."""
        return [int(path.name.split(".")[1]) for path in self._folder.glob(f"{name}.*.mark")]

    def note(self) -> None:
        """Say that this process has begun a trial."""
        with (self._folder / "processes").open("a") as file:
            file.write(f"{os.getpid()}\n")

    def noted(self) -> list[int]:
        """Every process that has begun a trial."""
        path = self._folder / "processes"
        return [int(line) for line in path.read_text().split()] if path.exists() else []
