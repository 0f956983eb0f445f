from __future__ import annotations

from pathlib import Path

import pytest

from ablate.records.layout import TrialFolder
from ablate.records.steps import furthest_step, note_step, noted_step


@pytest.fixture
def folder(tmp_path: Path) -> TrialFolder:
    made = TrialFolder(tmp_path)
    for number, step in [(1, 40), (2, 70), (3, 60)]:
        made.attempt(number).path.mkdir()
        made.attempt(number).checkpoint.write_bytes(b"anything")
        note_step(made.attempt(number), step)
    return made


def test_the_furthest_step_counts_whichever_attempt_reached_it(folder: TrialFolder) -> None:
    assert [noted_step(attempt) for attempt in folder.attempts()] == [40, 70, 60]
    assert furthest_step(folder) == 70
    assert furthest_step(folder, before=2) == 40
    assert furthest_step(folder, before=1) is None


def test_a_step_without_its_checkpoint_is_none(folder: TrialFolder) -> None:
    folder.attempt(2).checkpoint.unlink()
    assert furthest_step(folder) == 60


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"step": "9"}', '{"step": true}', "[" * 100_000])
def test_a_damaged_note_says_nothing(folder: TrialFolder, content: str) -> None:
    folder.attempt(2).checkpoint_step.write_text(content)
    assert noted_step(folder.attempt(2)) is None
    assert furthest_step(folder) == 60


def test_what_saves_a_checkpoint_notes_its_step(tmp_path: Path) -> None:
    from ablate.training import checkpoints

    attempt = TrialFolder(tmp_path).attempt(1)
    attempt.path.mkdir()
    checkpoints.save(attempt, {"done": 17})
    assert noted_step(attempt) == 17
    checkpoints.save(attempt, {"done": 18})
    assert noted_step(attempt) == 18
    state = checkpoints.newest(TrialFolder(tmp_path))
    assert state is not None
    assert state["done"] == 18
