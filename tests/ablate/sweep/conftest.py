from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ablate.records.layout import StudyFolder
from tests.ablate.sweep.postgres import Postgres, programs, running
from tests.ablate.sweep.stub_study import environment

StartDriver = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    return StudyFolder(tmp_path / "stub")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL; where CI runs, it must be there."""
    found = programs()
    if found is None:
        missing = "there is no PostgreSQL here, and these tests need a real one: apt-get install postgresql"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with running(found) as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> str:
    """The URL of a new database, with a password in it."""
    return postgres.database()


@pytest.fixture
def start_driver(study: StudyFolder, tmp_path: Path) -> Iterator[StartDriver]:
    """Starts a driver in a process of its own, in a group of its own as a shell would."""
    started: list[subprocess.Popen[str]] = []

    def start(
        plan: Mapping[str, Any], parallel: int = 2, patience: float = 8.0, storage: str = ""
    ) -> subprocess.Popen[str]:
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(plan))
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.ablate.sweep.stub_driver",
                study.path,
                path,
                str(parallel),
                str(patience),
                storage,
            ],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
            process_group=0,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
