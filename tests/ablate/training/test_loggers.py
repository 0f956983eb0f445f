"""What loggers are told of a trial, and that they cost it nothing."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ablate.records.layout import AttemptFolder, TrialFolder, read_json
from ablate.records.sealing import write_json
from ablate.records.series import read_series
from ablate.registry import Registry
from ablate.training.trial import train
from tests.trial_maker import make_trial

REGISTRY = Registry.installed()
PLUGIN = """
import json
from typing import Literal
from pytorch_lightning.loggers import Logger as LightningLogger
from ablate.slots import Logger

class Recorder(LightningLogger):
    name = version = None

    def __init__(self, path, fails):
        super().__init__()
        self.path, self.fails = path, fails

    def _note(self, *what):
        if self.fails == what[0]:
            raise SystemExit("the service is away\\nfor today")
        with self.path.open("a") as file:
            file.write(json.dumps(what) + "\\n")

    def log_hyperparams(self, params):
        self._note("settings", params)
        params["model"].clear()

    def log_metrics(self, metrics, step):
        self._note("metrics", step, metrics)
        metrics.clear()

    def save(self):
        self._note("save")

    def finalize(self, status):
        self._note("end", status)

class Recording(Logger):
    '''Write down what a logger is told.'''
    kind: Literal["recording"] = "recording"
    fails: str = ""

    def build(self, folder, name):
        if self.fails == "build":
            raise OSError("no such place")
        recorder = Recorder(folder / "told.jsonl", self.fails)
        recorder._note("name", name)
        return recorder
"""


@pytest.fixture(name="registry")
def _registry(tmp_path: Path) -> Registry:
    (tmp_path / "recording.py").write_text(PLUGIN)
    registry = Registry.installed()
    registry.add_file(tmp_path / "recording.py")
    return registry


def logging_to(folder: TrialFolder, *loggers: Any) -> TrialFolder:
    """The trial with these loggers, as a driver writes it."""
    config = read_json(folder.config)
    write_json(folder.config, config | {"observe": config["observe"] | {"loggers": list(loggers)}})
    return folder


def stopping_after(steps: int) -> Any:
    asked = iter([False] * (steps - 1) + [True])
    return lambda: next(asked)


def told(attempt: AttemptFolder) -> list[list[Any]]:
    return [json.loads(line) for line in (attempt.path / "told.jsonl").read_text().splitlines()]


def in_curves(folder: TrialFolder) -> dict[tuple[int, str], float]:
    curves = read_series(folder.path / read_json(folder.result)["files"]["curves"]).to_pylist()
    return {(row["step"], row["metric"]): row["value"] for row in curves}


def in_csv(attempt: AttemptFolder) -> dict[tuple[int, str], float]:
    with (attempt.path / "csv" / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        (int(row["step"]), name): float(value)
        for row in rows
        for name, value in row.items()
        if name != "step" and value != ""
    }


def test_the_csv_has_the_curves_and_the_settings(tmp_path: Path) -> None:
    folder = logging_to(make_trial(tmp_path / "trial", steps=50, seed=3), "csv", {"kind": "csv"})
    assert train(folder, 1, REGISTRY) == "complete"
    attempt = folder.attempt(1)
    assert in_csv(attempt) == in_curves(folder)
    assert {(step, name) for step, name in in_csv(attempt) if name == "val/loss"} == {
        (17, "val/loss"),
        (33, "val/loss"),
        (50, "val/loss"),
    }
    settings = yaml.safe_load((attempt.path / "csv" / "hparams.yaml").read_text())
    assert (settings["trial"], settings["arm_name"], settings["seed"], settings["steps"]) == (
        "trial",
        "baseline",
        3,
        50,
    )
    assert settings["levels"] == {}
    assert settings["training"]["optimizer"] == {"kind": "adamw", "lr": 1e-2}


def test_a_resumed_trial_logs_on_in_its_own_attempts_folder(tmp_path: Path) -> None:
    folder = logging_to(make_trial(tmp_path / "trial", steps=60), "csv")
    assert train(folder, 1, REGISTRY, should_stop=stopping_after(25)) == "interrupted"
    assert train(folder, 2, REGISTRY) == "complete"
    first, second = (in_csv(folder.attempt(number)) for number in (1, 2))
    assert sorted(step for step, name in first if name == "lr") == list(range(25))
    assert sorted(step for step, name in second if name == "lr") == list(range(25, 60))
    assert [step for step, name in first if name == "val/loss"] == [20]
    assert first | second == in_curves(folder)


def test_loggers_change_no_number(tmp_path: Path, registry: Registry) -> None:
    with_them = logging_to(make_trial(tmp_path / "with", steps=30), "csv", "recording")
    without = make_trial(tmp_path / "without", steps=30)
    for folder in (with_them, without):
        train(folder, 1, registry)
    assert read_json(with_them.result)["metrics"] == read_json(without.result)["metrics"]
    assert in_curves(with_them) == in_curves(without)


def test_what_a_logger_is_told_in_its_order(tmp_path: Path, registry: Registry) -> None:
    folder = logging_to(make_trial(tmp_path / "trial", steps=22, evaluations=1), "recording")
    assert train(folder, 1, registry, should_stop=stopping_after(21)) == "interrupted"
    assert train(folder, 2, registry) == "complete"
    first, second = told(folder.attempt(1)), told(folder.attempt(2))
    assert [entry[:2] for entry in first if entry[0] != "settings"] == [
        ["name", "baseline, seed=0"],
        *(["metrics", step] for step in range(20)),
        ["save"],
        ["metrics", 20],
        ["save"],
        ["end", "finished"],
    ]
    assert [entry[0] for entry in second] == ["name", "settings", "metrics", "metrics", "save", "end"]
    assert second[0] == ["name", "baseline, seed=0, attempt=2"]
    assert second[1][1]["model"]["width"] == 16
    assert [entry[1] for entry in second[2:4]] == [21, 22]
    assert set(second[2][2]) == {"train/loss", "grad_norm/global", "lr"}
    assert second[3][2] == read_json(folder.result)["metrics"]
    assert second[-1] == ["end", "success"]


def test_a_diverged_trial_is_told_as_far_as_its_curves_go(tmp_path: Path, registry: Registry) -> None:
    folder = logging_to(
        make_trial(
            tmp_path / "trial",
            steps=100,
            training={"optimizer": {"kind": "adamw", "lr": 30.0}, "clip": None, "schedule": "constant"},
            model={"placement": "none", "norm": "none"},
            diverged={"patience": 5},
        ),
        "recording",
    )
    assert train(folder, 1, registry) == "diverged"
    steps = [entry[1] for entry in told(folder.attempt(1)) if entry[0] == "metrics"]
    assert steps == list(range(read_json(folder.result)["steps"]))
    assert told(folder.attempt(1))[-1] == ["end", "success"]


def test_a_trial_that_fails_ends_its_loggers(tmp_path: Path, registry: Registry) -> None:
    folder = logging_to(make_trial(tmp_path / "trial"), "recording")

    def fail(*news: object) -> None:
        raise RuntimeError("nobody listens")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ablate.training.watching.PROGRESS_SECONDS", 0.0)
        with pytest.raises(RuntimeError, match="nobody listens"):
            train(folder, 1, registry, on_progress=fail)
    assert told(folder.attempt(1))[-1] == ["end", "failed"]


@pytest.mark.parametrize(
    ("fails", "said", "last"),
    [
        ("build", "OSError: no such place", None),
        ("settings", "SystemExit: the service is away", ["end", "failed"]),
        ("metrics", "SystemExit: the service is away", ["end", "failed"]),
        ("save", "SystemExit: the service is away", ["end", "failed"]),
        ("end", "SystemExit: the service is away", ["save"]),
    ],
)
def test_a_logger_that_fails_is_said_once_and_costs_nothing(
    tmp_path: Path, registry: Registry, caplog: pytest.LogCaptureFixture, fails: str, said: str, last: list[str] | None
) -> None:
    folder = logging_to(make_trial(tmp_path / "trial", steps=45), {"kind": "recording", "fails": fails}, "csv")
    assert train(folder, 1, registry) == "complete"
    messages = [record.getMessage() for record in caplog.records if record.name == "ablate.training.loggers"]
    assert messages == [f"the logger `recording` fails, and the trial goes on without it: {said}"]
    assert in_csv(folder.attempt(1)) == in_curves(folder)
    assert (told(folder.attempt(1))[-1] if last else None) == last
