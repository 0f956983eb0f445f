from __future__ import annotations

from pathlib import Path

import pytest

from ablate.records.layout import StudyFolder
from ablate.records.sealing import write_json
from ablate.records.steps import note_step, noted_seconds
from ablate.records.usage import Use, folder_size, trained_seconds, uses


@pytest.mark.parametrize(
    ("use", "text", "used_up"),
    [
        (
            Use("gpu_hours", 30, 30.12),
            "gpu_hours: 30.1 h of 30 h",
            "the budget of 30 h `gpu_hours` is used up (30.1 h); raise it in the file and run the same command",
        ),
        (
            Use("gpu_hours", 1234.5, 1300.0),
            "gpu_hours: 1,300 h of 1,234 h",
            "the budget of 1,234 h `gpu_hours` is used up (1,300 h); raise it in the file and run the same command",
        ),
        (
            Use("wall", 8 * 3600, 8 * 3600 + 4),
            "wall: 8 h of 8 h",
            "the budget of 8 h `wall` is used up (8 h); the same command goes on",
        ),
        (
            Use("wall", 90, 90.3),
            "wall: 1.5 min of 1.5 min",
            "the budget of 1.5 min `wall` is used up (1.5 min); the same command goes on",
        ),
        (
            Use("disk", 20 << 30, 21 << 30),
            "disk: 21 GiB of 20 GiB",
            "the budget of 20 GiB `disk` is used up (21 GiB); raise it in the file and run the same command",
        ),
        (
            Use("disk", 10, 1536),
            "disk: 1.5 KiB of 10 B",
            "the budget of 10 B `disk` is used up (1.5 KiB); raise it in the file and run the same command",
        ),
    ],
)
def test_how_a_limit_stands_in_words(use: Use, text: str, used_up: str) -> None:
    assert use.reached
    assert (use.text, str(use)) == (text, used_up)


def test_a_limit_is_reached_at_its_value() -> None:
    assert [Use("wall", 2.0, used).reached for used in (0.0, 1.99, 2.0, 2.01)] == [False, False, True, True]
    assert Use("disk", 10, 0).text == "disk: 0 B of 10 B"


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    """One trial with a result, one with two checkpoints, one that never wrote any."""
    study = StudyFolder(tmp_path / "study")
    for id in ("sealed", "open", "begun"):
        study.trial(id).attempt(1).path.mkdir(parents=True)
        study.trial(id).attempt(2).path.mkdir()
    for id, number, seconds in [("sealed", 1, 9000.0), ("open", 1, 1800.0), ("open", 2, 5400)]:
        attempt = study.trial(id).attempt(number)
        attempt.checkpoint.write_bytes(b"12345")
        note_step(attempt, 7, seconds)
    write_json(study.trial("sealed").result, {"seconds": 3600.0})
    return study


def test_a_record_counts_else_the_furthest_checkpoint(study: StudyFolder) -> None:
    assert {folder.id: trained_seconds(folder) for folder in study.trials()} == {
        "sealed": 3600.0, "open": 5400.0, "begun": 0.0,
    }  # fmt: skip
    assert uses(study, {"steps": 5, "gpu_hours": 30, "wall": 8.0, "disk": None}) == [Use("gpu_hours", 30, 2.5)]
    study.trial("open").attempt(2).checkpoint.unlink()
    assert trained_seconds(study.trial("open")) == 1800.0
    write_json(study.trial("sealed").result, {"seconds": 3600.0, "replay_seconds": 60.0})
    assert trained_seconds(study.trial("sealed")) == 3660.0


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"seconds": "9"}', '{"seconds": -1}', '{"seconds": NaN}'])
def test_damaged_files_count_nothing(study: StudyFolder, content: str) -> None:
    study.trial("open").attempt(2).checkpoint_step.write_text(content)
    assert noted_seconds(study.trial("open").attempt(2)) == 0.0
    study.trial("sealed").result.write_text(content)
    assert trained_seconds(study.trial("sealed")) in (0.0, 9000.0)  # its checkpoint, where there is no record to read


def test_the_size_of_a_folder_is_that_of_all_files_below_it(study: StudyFolder) -> None:
    sizes = sum(path.stat().st_size for path in study.path.rglob("*") if path.is_file())
    assert folder_size(study.path) == sizes > 15
    (study.path / "elsewhere").symlink_to("/")
    assert folder_size(study.path) == sizes + 1  # a link is as long as what it says
    assert uses(study, {"disk": 20}) == [Use("disk", 20, sizes + 1)]
    assert folder_size(study.path / "gone") == 0
