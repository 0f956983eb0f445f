from __future__ import annotations

import json
from pathlib import Path

import pytest

from ablate.cli.show import show
from ablate.cli.status import show_status
from ablate.records.layout import StudyFolder, read_json
from ablate.records.sealing import write_json
from ablate.records.steps import note_step
from ablate.sweep.events import Counts, Stopping, SweepStarted, TrialStarted
from ablate.sweep.lock import driving
from ablate.sweep.watching import Publisher
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


def test_a_folder_that_was_renamed_is_said_where_a_run_would_begin_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_study(tmp_path / "first", seeds=1, waiting=[("ratio=2", 0)])
    name = read_json(StudyFolder(folder).plan)["name"]
    shown = []
    for called in (tmp_path / "monday", tmp_path / name):
        folder = folder.rename(called)
        show_status(folder, RUNS, as_json=False)
        shown.append(capsys.readouterr().out)
    said = f"note: a run goes on in a folder called `{name}`, as its experiment: rename `{tmp_path / 'monday'}` first\n"
    assert [said in each for each in shown] == [True, False]
    assert [each.count("note: ") for each in shown] == [1, 0]


def test_what_the_driver_has_not_handed_out_again_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = StudyFolder(make_study(tmp_path / "study", seeds=2, running=[("scale=off", 0), ("scale=off", 1)]))
    first, _ = (trial.id for trial in study.trials() if not trial.result.exists())
    started = TrialStarted(first, "scale=off", 0, attempt=2, slot=0)
    with driving(study) as driver, Publisher(study, driver, lambda event: None) as publish:
        publish(SweepStarted(Counts(2, 0, 0, 0, running=0, waiting=2), to_run=2, slots=1, metric="val/loss"))
        publish(started)
        publish(Stopping("SIGTERM"))  # which is written at once
        show_status(study.path, RUNS, as_json=True)
        told = json.loads(capsys.readouterr().out)
        assert (told["running"], told["waiting"], told["interrupted"]) == (1, 1, [])
        show(study.path, "scale=off", RUNS, [], seed=None, sets=[], as_json=True)
        ends = {trial["trial"]: trial["end"] for trial in json.loads(capsys.readouterr().out)["trials"]}
        assert sorted(ends.values()) == ["running", "waiting"]
        assert ends[first] == "running"


def test_a_trial_at_a_rung_was_not_interrupted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = StudyFolder(make_study(tmp_path / "study", seeds=1, running=[("scale=off", 0)]))
    (folder,) = (trial for trial in study.trials() if not trial.result.exists())
    write_json(folder.attempt(1).rung, {"step": 40, "value": 1.0})
    folder.attempt(1).checkpoint.write_bytes(b"anything")
    note_step(folder.attempt(1), 40)
    show_status(study.path, RUNS, as_json=False)
    why = "attempt 1 has come to a rung, where its batch is judged; it goes on from step 40"
    assert f"waiting: scale=off, seed 0: {why}\n" in capsys.readouterr().out
    show(study.path, folder.id, RUNS, [], seed=None, sets=[], as_json=True)
    assert [attempt["end"] for attempt in json.loads(capsys.readouterr().out)["history"]] == ["paused"]


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


def following(what: Path, capsys: pytest.CaptureFixture[str], runs: Path = RUNS) -> str:
    show_status(what, runs, as_json=True)
    return str(json.loads(capsys.readouterr().out)["next"])


@pytest.mark.parametrize("waiting", [False, True])
def test_what_comes_next_has_the_plugins_and_settings_that_the_study_was_run_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, waiting: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [("ratio=1", 0)] if waiting else []
    text = "name: small\n"
    factors = {"ratio": [4, 1]}
    made = make_study(Path("elsewhere/small"), seeds=1, factors=factors, waiting=cells, experiment=text)
    study = StudyFolder(made)
    given = "--plugin=my.py --set=training.batch=8"
    plan = read_json(study.plan) | {"command": f"ablate run small.yaml {given}", "folder": str(tmp_path)}
    write_json(study.plan, plan)
    Path("sub").mkdir()
    for name in ("small.yaml", "other.yaml", "sub/small.yaml"):
        Path(name).write_text(text)
    places = Path("elsewhere")
    if waiting:
        assert following(study.path, capsys) == f"ablate run small.yaml {given} --runs elsewhere"
        assert following(Path("small.yaml"), capsys, places) == f"ablate run small.yaml {given} --runs elsewhere"
        assert following(tmp_path / "small.yaml", capsys, places) == (
            f"ablate run {tmp_path}/small.yaml {given} --runs elsewhere"
        )
        assert following(Path("other.yaml"), capsys, places) == "ablate run other.yaml --runs elsewhere"
        assert following(Path("sub/small.yaml"), capsys, places) == "ablate run sub/small.yaml --runs elsewhere"
    else:
        assert following(study.path, capsys) == "ablate report elsewhere/small"
        assert following(Path("small.yaml"), capsys, places) == "ablate report elsewhere/small"
        assert following(Path("other.yaml"), capsys, places) == "ablate report other.yaml --runs elsewhere"


def test_a_path_with_a_space_is_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "name: small\n"
    make_study(Path("my runs/small"), seeds=1, factors={"ratio": [4, 1]}, experiment=text)
    Path("my file.yaml").write_text(text)
    assert following(Path("my file.yaml"), capsys, Path("my runs")) == "ablate report 'my file.yaml' --runs 'my runs'"
