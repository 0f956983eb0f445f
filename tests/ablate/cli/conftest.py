"""The command line as a user runs it: a process of its own in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from ablate.sweep.workers.starting import SINGLE_THREAD

ABLATE = Path(sys.executable).with_name("ablate")
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def preloaded() -> Iterator[tuple[IO[str], IO[str]]]:
    """A process that forks one for each command: what a command imports is imported once."""
    command = [sys.executable, "-m", "tests.ablate.cli.preloaded"]
    root = Path(__file__).parents[3]
    environment = {**os.environ, **SINGLE_THREAD}  # a process of several threads cannot be forked
    with subprocess.Popen(
        command, cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        yield process.stdin, process.stdout
        process.stdin.close()


@pytest.fixture(scope="session")
def ablate_in(preloaded: tuple[IO[str], IO[str]], tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Runs a command in a folder: the folder, then the command's words."""
    aside = tmp_path_factory.mktemp("streams")

    def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        stdin, stdout = preloaded
        streams = {name: aside / name for name in ("stdout", "stderr")}
        paths = {name: str(path) for name, path in streams.items()}
        print(json.dumps({"arguments": list(arguments), "folder": str(folder), **paths}), file=stdin, flush=True)
        code = int(stdout.readline())
        told = {name: path.read_text(encoding="utf-8") for name, path in streams.items()}
        return subprocess.CompletedProcess([str(ABLATE), *arguments], code, **told)

    return run


@pytest.fixture
def ablate(ablate_in: Command, tmp_path: Path) -> Command:
    """Runs a command in the test's own folder, or in another."""

    def run(*arguments: str, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return ablate_in(folder, *arguments)

    return run
