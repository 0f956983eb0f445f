"""The command line as a user runs it: a process of its own in a folder of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ABLATE = Path(sys.executable).with_name("ablate")
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def ablate(tmp_path: Path) -> Command:
    def run(*arguments: str, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        command = [str(ABLATE), *arguments]
        return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=300)

    return run
