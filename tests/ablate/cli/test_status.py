from __future__ import annotations

import json
from pathlib import Path

import pytest

from ablate.cli.status import show_status
from ablate.records.layout import StudyFolder, read_json
from ablate.records.sealing import write_json
from ablate.records.steps import note_step
from tests.study_maker import make_study

RUNS = Path("runs")


def test_an_interrupted_trial_waits_with_the_step_that_it_has_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = StudyFolder(make_study(tmp_path / "study", seeds=1, running=[("scale=off", 0)], waiting=[("ratio=2", 0)]))
    show_status(study.path, RUNS, as_json=False)
    assert "waiting: scale=off, seed 0: attempt 1 was interrupted\n" in capsys.readouterr().out
    (folder,) = [trial for trial in study.trials() if not trial.result.exists()]
    folder.attempt(1).checkpoint.write_bytes(b"anything")
    note_step(folder.attempt(1), 40)
    show_status(study.path, RUNS, as_json=False)
    shown = capsys.readouterr().out
    assert "waiting: scale=off, seed 0: attempt 1 was interrupted; it goes on from step 40\n" in shown
    assert shown.count("waiting: ") == 1  # of a trial that never began there is nothing to say
    show_status(study.path, RUNS, as_json=True)
    assert json.loads(capsys.readouterr().out)["interrupted"] == [
        {"arm": "scale=off", "seed": 0, "reason": "attempt 1 was interrupted; it goes on from step 40"}
    ]


def test_two_arms_of_one_name_stay_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = StudyFolder(make_study(tmp_path / "study", seeds=2, factors={"ratio": [4, 1, 2]}))
    plan = read_json(study.plan)
    for arm in plan["arms"][1:]:
        arm["name"] = "the same"
    write_json(study.plan, plan)
    show_status(study.path, RUNS, as_json=False)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:5] == [
        ["baseline", "2", "2"], ["the", "same", "2", "2"], ["the", "same", "2", "2"], ["all", "6", "6"],
    ]  # fmt: skip
    show_status(study.path, RUNS, as_json=True)
    arms = json.loads(capsys.readouterr().out)["arms"]
    assert [(id, tally["name"], tally["complete"]) for id, tally in arms.items()] == [
        (arm["id"], arm["name"], 2) for arm in plan["arms"]
    ]


def test_a_factor_that_an_arm_has_not_is_no_key_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = StudyFolder(make_study(tmp_path / "study", seeds=1, factors={"ratio": [4, 1], "scale": ["on", "off"]}))
    plan = read_json(study.plan)
    del plan["arms"][1]["levels"]["scale"]
    plan["excluded"] = [{"levels": {"scale": "off"}, "why": "no"}]
    write_json(study.plan, plan)
    show_status(study.path, RUNS, as_json=False)
    assert capsys.readouterr().out.splitlines()[-2].split() == ["all", "3", "1", "4"]
