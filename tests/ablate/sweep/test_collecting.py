"""What nothing needs any more is shown, and removed only when that is said."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest

from ablate.errors import RefusedError
from ablate.records.layout import StudyFolder
from ablate.sweep.collecting import KINDS, collect, waste
from ablate.sweep.events import TrialStarted
from ablate.sweep.lock import driving
from tests.ablate.sweep.stub_study import Run
from tests.ablate.sweep.test_growing import plan_of


def counted(study: StudyFolder, *wanted: str) -> dict[str, tuple[int, bool]]:
    return {each.kind: (each.count, each.wanted) for each in waste(study, wanted) if each.paths}


@pytest.fixture
def plan(study: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A finished study of two arms and two seeds; its plan as if it had all that a real one has."""
    monkeypatch.setattr("ablate.sweep.collecting.plan_fault", lambda plan: None)
    plan = plan_of(10, "constant", "constant")
    Run(study, plan)
    return plan


def litter(study: StudyFolder) -> list[Path]:
    """One thing of each kind that a kill may leave."""
    folder = study.trial("t000-10")
    old = folder.attempt(0)
    old.path.mkdir()
    dead = 2**22 + 1  # more than any process has
    made = [
        old.checkpoint,
        old.checkpoint_step,
        folder.path / f".result.json.{dead}.tmp",
        folder.attempt(1).path / f".checkpoint.pt.{dead}.tmp",
        study.path / f".plan.json.{dead}.tmp",
        folder.path / "result.damaged.json",
    ]
    for path in made:
        path.write_text("0123456789")
    return made


def test_nothing_goes_before_it_is_said_and_no_result_of_the_plan_ever(
    study: StudyFolder, plan: dict[str, Any], tmp_path: Path
) -> None:
    assert counted(study) == {"checkpoints": (4, False)}
    made = litter(study)
    kept = {path for path in study.path.rglob("*") if path not in made}
    living = study.path / f".plan.json.{os.getpid()}.tmp"
    living.touch()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "checkpoint.pt").touch()
    (study.trials_folder / "linked").symlink_to(outside)
    (study.trial("t001-10").path / "a007").symlink_to(outside)
    (study.trial("t002-10").path / ".config.json.4194305.tmp").symlink_to(outside / "checkpoint.pt")
    told = {"superseded": (1, True), "temporary": (3, True), "damaged": (1, True), "checkpoints": (4, False)}
    assert counted(study) == told
    assert all(path.exists() for path in made)
    sizes = {each.kind: each.bytes for each in waste(study)}
    assert (sizes["superseded"], sizes["temporary"], sizes["damaged"], sizes["orphans"]) == (20, 30, 10, 0)
    assert [each.kind for each in collect(study)] == ["superseded", "temporary", "damaged"]
    assert not any(path.exists() for path in made)
    assert all(path.exists() for path in (*kept, living, outside / "checkpoint.pt"))
    assert (study.trials_folder / "linked").is_symlink()
    collect(study, ["checkpoints", "orphans"])
    assert list(study.path.glob("trials/t*/a001/checkpoint*")) == []
    assert len([folder for folder in study.trials() if folder.result.exists()]) == 4
    assert (study.trials_folder / "linked").is_symlink()
    assert Run(study, plan).of(TrialStarted) == []


def test_orphans_go_only_when_asked_for_and_not_while_longer_trials_need_them(
    study: StudyFolder, plan: dict[str, Any]
) -> None:
    longer = plan_of(20, "constant", "constant")
    Run(study, longer, limit=1)
    assert counted(study, "orphans") == {"checkpoints": (1, False), "orphans": (1, True)}
    (removed,) = [each for each in collect(study, ["orphans"]) if each.paths]
    assert [path.name for path in removed.paths] == ["t000-10"]
    assert [event.trial for event in Run(study, longer).of(TrialStarted)] == ["t001-20", "t002-20", "t003-20"]
    fewer = copy.deepcopy(longer)
    fewer["trials"] = longer["trials"][:1]
    Run(study, fewer, extend=True)
    # The index that still had the results which were removed was set aside.
    assert counted(study) == {"damaged": (1, True), "checkpoints": (7, False), "orphans": (6, False)}
    collect(study, ["orphans"])
    assert [folder.id for folder in study.trials()] == ["t000-20"]


def test_a_study_that_runs_is_left_alone(study: StudyFolder, plan: dict[str, Any]) -> None:
    with driving(study):
        for look in (waste, collect):
            with pytest.raises(RefusedError, match="is being run by process"):
                look(study)
    assert set(KINDS) == {each.kind for each in waste(study)}


def test_a_repeat_is_no_orphan_while_the_plan_asks_for_it(study: StudyFolder, plan: dict[str, Any]) -> None:
    Run(study, {**plan, "repeats": [{"id": "again", "arm": plan["arms"][0]["id"], "seed": 0, "repeat": 1}]})
    assert "orphans" not in counted(study)
    Run(study, plan)
    assert counted(study)["orphans"] == (1, False)
