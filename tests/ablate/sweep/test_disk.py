from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from optuna.exceptions import StorageInternalError

from ablate.errors import AblateError
from ablate.records.layout import StudyFolder, TrialFolder
from ablate.sweep import backlog
from ablate.sweep.bookkeeping.index import Index
from ablate.sweep.disk import telling, told_of_trial
from ablate.sweep.driver import sweep
from ablate.sweep.events import Event, TrialEnded
from ablate.sweep.preparing import write_config
from ablate_plugins.executor import Local
from tests.ablate.sweep.stub_study import STUB, Run, assert_exactly_once, environment, make_plan


def sqlite_error(code: int, text: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


def test_a_full_disk_is_told_and_the_same_call_goes_on(study: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    study = StudyFolder(study.path.parent / "in two words" / "stub")
    plan = make_plan([{}] * 4) | {"command": "ablate run x.yaml"}
    written: list[TrialFolder] = []

    def full(folder: TrialFolder, value: Mapping[str, Any]) -> None:
        if len(written) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder.config))
        written.append(folder)
        write_config(folder, value)

    with monkeypatch.context() as patch:
        patch.setattr(backlog, "write_config", full)
        with pytest.raises(AblateError) as raised:
            Run(study, plan)
    assert str(raised.value) == (
        f"the disk is full: cannot write `{study.trial('t002').config}` (No space left on device)\n"
        "  = help: nothing is lost: results and checkpoints stay as they are; free some space,\n"
        f"          then go on with `ablate run x.yaml --runs '{study.path.parent}'`"
    )
    Run(study, plan)
    assert_exactly_once(study, plan)


@pytest.mark.parametrize(
    ("code", "said", "what"),
    [
        (sqlite3.SQLITE_FULL, "database or disk is full", "the disk is full"),
        (sqlite3.SQLITE_READONLY, "attempt to write a readonly database", "the study's index may not be written"),
        (
            sqlite3.SQLITE_IOERR | 3 << 8,
            "disk I/O error",
            "the disk does not take what is written to the study's index",
        ),
    ],
)
def test_what_sqlite_says_of_the_disk_is_told_through_its_wrappers(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch, code: int, said: str, what: str
) -> None:
    plan = make_plan([{}] * 2)

    def full(self: Index, record: Any) -> None:
        try:
            raise sqlite_error(code, said)
        except sqlite3.OperationalError as error:
            raise StorageInternalError("An exception is raised during the commit.") from error

    with monkeypatch.context() as patch:
        patch.setattr(Index, "sealed", full)
        with pytest.raises(AblateError) as raised:
            Run(study, plan)
    assert str(raised.value).startswith(f"{what}: cannot write `{study.path}` ({said})\n  = help: nothing is lost")
    Run(study, plan)
    assert_exactly_once(study, plan)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOENT, "gone"),
        BrokenPipeError(errno.EPIPE, "the reader has left"),
        sqlite_error(sqlite3.SQLITE_BUSY, "database is locked"),
        ValueError("no disk"),
        AblateError("told already"),
    ],
)
def test_what_is_not_about_the_disk_passes_as_it_is(study: StudyFolder, error: Exception) -> None:
    def fails() -> None:
        with telling(study, {}):
            raise error

    with pytest.raises(type(error)) as raised:
        fails()
    assert raised.value is error


@pytest.mark.parametrize("checkpoint", [5, 100], ids=["in a checkpoint", "in the result"])
def test_a_worker_that_may_write_no_more_stops_the_sweep_and_fails_no_trial(
    study: StudyFolder, checkpoint: int
) -> None:
    does = {"file_limit": 4, "attempts": [1], "checkpoint": checkpoint}
    plan = make_plan([does, {"seconds": 0.02}, {}])
    events: list[Event] = []
    with pytest.raises(AblateError) as raised:
        sweep(study, plan, Local(parallel=2), on_event=events.append, trainer=STUB)
    assert str(raised.value) == (
        f"a file has reached the largest size that is allowed here: cannot write `{study.trial('t000').path}` "
        "(File too large)\n"
        "  = help: nothing is lost: results and checkpoints stay as they are; raise that limit (`ulimit -f`),\n"
        "          then go on with the same command"
    )
    assert not [event for event in events if isinstance(event, TrialEnded) and event.failure]
    assert not list(study.path.glob("trials/*/*/end.json")) and not list(study.path.glob("trials/**/.*.tmp"))
    Run(study, plan)
    assert_exactly_once(study, plan)


@pytest.mark.parametrize(
    ("error", "mine"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.ENOSPC, "No space left on device", "/elsewhere/cache"), True),
        (OSError(errno.EACCES, "Permission denied", "/studies/x/trials/t/a001/log.txt"), True),
        (OSError(errno.EACCES, "Permission denied", "/elsewhere/data.csv"), False),
        (OSError(errno.ENOENT, "No such file or directory", "/studies/x/trials/t/a001/log.txt"), False),
        (RuntimeError("no disk"), False),
    ],
)
def test_what_a_component_does_elsewhere_is_its_own_fault(error: Exception, mine: bool) -> None:
    assert (told_of_trial(error, TrialFolder(Path("/studies/x/trials/t"))) is not None) is mine


def test_a_limit_on_files_is_one_clear_error_and_no_result_is_lost(study: StudyFolder, tmp_path: Path) -> None:
    """A real refusal of the system: the driver may write no file of more than a few kilobytes."""
    small, large = make_plan([{}] * 3), make_plan([{"pad": "x" * 20_000}] * 3)
    Run(study, small)
    before = {folder.id: folder.result.read_bytes() for folder in study.trials()}
    large["trials"] = [trial | {"id": f"u{trial['id']}"} for trial in large["trials"]]
    code = (
        "import json, resource, sys; from pathlib import Path\n"
        "from ablate.errors import AblateError; from ablate.records.layout import StudyFolder\n"
        "from tests.ablate.sweep.stub_study import Run\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        "plan = json.loads(Path(sys.argv[2]).read_text())\n"
        "try: Run(StudyFolder(Path(sys.argv[1])), plan, extend=True)\n"
        "except AblateError as error: print(error)\n"
    )
    path = tmp_path / "large.json"
    path.write_text(json.dumps(large))
    shown = subprocess.run(
        [sys.executable, "-c", code, study.path, path], env=environment(), capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("a file has reached the largest size that is allowed here: cannot write ")
    assert {folder.id: folder.result.read_bytes() for folder in study.trials()} == before
    assert Run(study, small).outcome.counts.complete == 3
