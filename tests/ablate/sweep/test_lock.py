from __future__ import annotations

import json
import os

import pytest

from ablate.errors import RefusedError
from ablate.records.frames import lock_held
from ablate.records.layout import StudyFolder
from ablate.sweep.lock import driving


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


def test_a_holder_that_has_not_written_yet_is_another_process(study: StudyFolder) -> None:
    with driving(study):
        study.lock.write_text("")
        with pytest.raises(RefusedError, match="is being run by another process"), driving(study):
            pass
