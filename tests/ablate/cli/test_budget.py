"""`ablate run` with the limits of a budget, by the real trainer."""

from __future__ import annotations

import json
from pathlib import Path

from ablate.records.layout import StudyFolder, read_json
from ablate.records.steps import noted_step
from tests.ablate.cli.conftest import Command
from tests.ablate.experiment.maker import write

TINY = (("seeds: 6", "seeds: 1"), ("  residual: {switch: model.residual}\n", ""))


def budget(text: str) -> tuple[str, str]:
    return ("budget: {steps: 20}", f"budget: {{{text}}}")


def test_a_trial_that_times_out_is_told_and_goes_on_with_more_time(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, *TINY, budget("steps: 6, trial_timeout: 0.001s, gpu_hours: 5"))
    shown = ablate("run", "small.yaml")
    assert shown.returncode == 1, shown.stderr
    assert shown.stdout == (
        "0 of 2 trials have a result, 2 timed out: runs/small\nnext: ablate run small.yaml --retry timeout\n"
    )
    assert "[2/2] " in shown.stderr
    assert "2 trials: 0 complete, 0 diverged, 0 failed, 2 timed out\n" in shown.stderr
    assert "timed out: baseline, seed 0: at step 1 of 6 after " in shown.stderr
    assert "  = help: raise `trial_timeout`; `--retry timeout` goes on from their checkpoints\n" in shown.stderr
    status = ablate("status", "small.yaml")
    assert "\ntimed out: baseline, seed 0: at step 1 of 6 after " in status.stdout
    assert "s of training, and `trial_timeout` is 0.001 s\n" in status.stdout
    assert "\nbudget: gpu_hours: " in status.stdout
    assert status.stdout.endswith("\nnext: ablate run small.yaml --retry timeout\n")
    priced = ablate("plan", "small.yaml", "--calibrate", "--json")
    assert json.loads(priced.stdout)["price"]["basis"] == "measured", "limits are not for what is measured"

    write(tmp_path, *TINY, budget("steps: 6, trial_timeout: 1h, gpu_hours: 5"))
    shown = ablate("run", "small.yaml", "--retry", "failed", "--json")
    assert shown.returncode == 1
    assert {key: json.loads(shown.stdout)[key] for key in ("complete", "timed_out", "exhausted")} == {
        "complete": 0, "timed_out": 2, "exhausted": None,
    }  # fmt: skip
    assert [each["end"] for each in json.loads(shown.stdout)["failures"]] == ["timed_out", "timed_out"]
    shown = ablate("run", "small.yaml", "--retry", "timeout", "--only", "baseline")
    assert shown.returncode == 1, "the other one is still missing"
    study = StudyFolder(tmp_path / "runs/small")
    (folder,) = [trial for trial in study.trials() if trial.result.exists()]
    assert "at step 1 of 6" in read_json(folder.attempt(1).end)["error"]
    assert [noted_step(attempt) for attempt in folder.attempts()] == [None, 6]  # what is sealed keeps its last one
    record = read_json(folder.result)
    assert (record["attempt"], record["steps"], record["end"]) == (2, 6, "complete")
    told = json.loads(ablate("status", "small.yaml", "--json").stdout)
    assert {key: told[key] for key in ("planned", "complete", "failed", "timed_out", "waiting")} == {
        "planned": 2, "complete": 1, "failed": 0, "timed_out": 1, "waiting": 0,
    }  # fmt: skip
    assert [each["arm"] for each in told["timeouts"]] == ["placement=post"]
    assert told["budget"]["gpu_hours"]["limit"] == 5
    assert 3600 * told["budget"]["gpu_hours"]["used"] >= record["seconds"] > 0
    shown = ablate("report", "small.yaml")
    assert shown.returncode == 0, shown.stderr
    assert "timed out" in (study.path / "report.html").read_text()
    assert "timed_out" in (study.path / "trials.csv").read_text()


def test_a_call_takes_no_longer_than_it_may(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, *TINY, budget("steps: 1000000, wall: 0.001s"))
    shown = ablate("run", "small.yaml")
    assert shown.returncode == 3, shown.stderr
    assert "\nstopped: the budget of 0.001 s `wall` is used up (" in shown.stderr
    assert shown.stderr.endswith(" s); nothing was started: `wall` is shorter than the start; raise it in the file\n")
    assert shown.stdout == "0 of 2 trials have a result, 2 waiting: runs/small\nnext: ablate run small.yaml\n"
    write(tmp_path, *TINY, budget("steps: 1000000, wall: 1h, disk: 1kB"))
    shown = ablate("run", "small.yaml", "--json")
    assert shown.returncode == 3
    used_up = json.loads(shown.stdout)["exhausted"]
    assert (used_up["name"], used_up["limit"]) == ("disk", 1000)
    ended = json.loads(shown.stderr.splitlines()[-1])
    assert (ended["event"], ended["outcome"]["exhausted"]) == ("sweep_ended", used_up)
    assert "; it is used up\n" in ablate("status", "small.yaml").stdout
    dry = ablate("run", "small.yaml", "--dry-run")
    assert dry.returncode == 3
    assert "\nrefused: the budget of " in dry.stdout
