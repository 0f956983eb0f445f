from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from ablate.errors import RefusedError
from ablate.records.frames import lock_held
from ablate.records.layout import StudyFolder
from ablate.sweep.lock import driving, refusal


def test_the_lock_names_its_holder_and_is_free_afterwards(study: StudyFolder) -> None:
    with driving(study):
        assert json.loads(study.lock.read_text())["pid"] == os.getpid()
        assert lock_held(study.lock)
        with pytest.raises(RefusedError) as refused, driving(study):
            pass
        assert f"is being run by process {os.getpid()} since " in str(refused.value)
        assert refused.value.exit_code == 3
        assert json.loads(study.lock.read_text())["pid"] == os.getpid()
    assert not lock_held(study.lock)
    with driving(study):
        pass


def test_the_refusal_names_another_machine_and_a_command_that_can_be_pasted(tmp_path: Path) -> None:
    study = StudyFolder(tmp_path / "my runs" / "stub")
    with driving(study) as driver:
        assert driver.host == socket.gethostname()
        study.lock.write_text(json.dumps({"pid": 7, "started": "2026-01-02T03:04:05Z", "host": "node3"}))
        assert refusal(study) == (
            f"{study.path} is being run by process 7 on node3 since 2026-01-02T03:04:05Z\n"
            f"  = help: watch it with `ablate status '{study.path}' --watch`"
        )
    assert refusal(study) is None


def test_a_holder_that_has_not_written_yet_is_another_process(study: StudyFolder) -> None:
    with driving(study):
        study.lock.write_text("")
        with pytest.raises(RefusedError, match="is being run by another process"), driving(study):
            pass
