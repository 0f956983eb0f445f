"""Loggers in an experiment: found by name, planned, and no part of what a trial is."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ablate.errors import Diagnostic, InputError
from ablate.experiment import load
from ablate.planning import Plan, make_plan
from ablate.records.layout import TrialFolder
from ablate.registry import Registry
from ablate.sweep.preparing import Configs, write_config
from ablate.training.job import Job
from ablate_plugins.logger import Csv, MLflow, TensorBoard, WeightsAndBiases
from tests.ablate.experiment.maker import write

PLUGIN = """
from typing import ClassVar, Literal
from ablate.slots import Logger

class Elsewhere(Logger):
    '''Show a trial elsewhere.'''
    kind: Literal["elsewhere"] = "elsewhere"
    needs: ClassVar[dict[str, str]] = {"of_no_such_name": "elsewhere-client"}

    def build(self, folder, name):
        import of_no_such_name
"""


def planned(folder: Path, loggers: str, *, plugins: str = "") -> Plan:
    return make_plan(load(write(folder, ("schema: 1\n", f"schema: 1\nloggers: {loggers}\n{plugins}"))))


def refusal(folder: Path, loggers: str, *, plugins: str = "") -> Diagnostic:
    with pytest.raises(InputError) as raised:
        planned(folder, loggers, plugins=plugins)
    (found,) = raised.value.diagnostics
    return found


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Let these packages not be installed."""
    monkeypatch.setattr("ablate.planning.plan.find_spec", lambda name: None if name in packages else find_spec(name))


def test_loggers_are_no_part_of_a_trials_identity(tmp_path: Path) -> None:
    plain, logged = make_plan(load(write(tmp_path))), planned(tmp_path, "[csv]")
    assert logged.data["trials"] == plain.data["trials"]
    assert logged.data["hash"] == plain.data["hash"]
    assert (plain.data["loggers"], logged.data["loggers"]) == ([], [{"kind": "csv"}])


def test_a_trial_is_told_its_loggers_with_their_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ablate.planning.plan.find_spec", lambda name: True)
    made = planned(tmp_path, "[csv, {kind: wandb, project: norms, offline: true}]")
    id = made.trials[0]["id"]
    folder = TrialFolder(tmp_path / id)
    write_config(folder, Configs(made.data)[id])
    assert Job.read(folder, Registry.installed()).loggers == [Csv(), WeightsAndBiases(project="norms", offline=True)]


def test_a_plan_without_a_word_on_loggers_has_none(tmp_path: Path) -> None:
    made = make_plan(load(write(tmp_path)))
    id = made.trials[0]["id"]
    older = Configs({key: value for key, value in made.data.items() if key != "loggers"})[id]
    assert older == Configs(made.data)[id]
    folder = TrialFolder(tmp_path / id)
    write_config(folder, older)
    assert Job.read(folder, Registry.installed()).loggers == []


def test_an_unknown_logger_says_what_was_meant(tmp_path: Path) -> None:
    found = refusal(tmp_path, "[cvs]")
    assert (found.code, found.message, found.help) == ("S102", "no logger is called `cvs`", "did you mean `csv`?")
    assert found.source == "loggers: [cvs]"


@pytest.mark.parametrize("kind", ["tensorboard", "wandb", "mlflow"])
def test_a_missing_package_is_told_with_the_line_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    without(monkeypatch, kind)
    found = refusal(tmp_path, f"[csv, {kind}]")
    assert str(found) == (
        f"error[S119]: the logger `{kind}` needs the package `{kind}`, which is not installed\n"
        f" --> {tmp_path}/small.yaml:2:16\n"
        f"2 | loggers: [csv, {kind}]\n"
        f"  |                {'^' * len(kind)}\n"
        f"  = help: pip install 'ablate-arch[{kind}]'"
    )


def test_a_plugins_logger_names_its_own_package(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text(PLUGIN)
    found = refusal(tmp_path, "[elsewhere]", plugins="plugins: [elsewhere.py]\n")
    assert found.message == "the logger `elsewhere` needs the package `of_no_such_name`, which is not installed"
    assert found.help == "pip install 'elsewhere-client'"


def test_csv_writes_into_the_attempts_folder(tmp_path: Path) -> None:
    assert Path(str(Csv().build(tmp_path, "baseline, seed=0").log_dir)) == tmp_path / "csv"


def test_tensorboard_calls_a_run_by_the_attempts_name(tmp_path: Path) -> None:
    if find_spec("tensorboard") is None:
        with pytest.raises(ModuleNotFoundError, match="tensorboard"):
            TensorBoard().build(tmp_path, "placement=a/b, seed=0")
    else:
        built = TensorBoard().build(tmp_path, "placement=a/b, seed=0")
        assert Path(str(built.log_dir)) == tmp_path / "tensorboard" / "placement=a_b_seed=0"


def is_locked(folder: Path) -> bool:
    """Whether another worker would have to wait for this folder's lock."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


class Service:
    """Stands for a logger of Lightning's whose package is not installed here."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.arguments, self.options = arguments, options
        self.looked: list[bool] = []
        self.ended: list[Any] = []

    @property
    def experiment(self) -> Service:
        self.looked.append(is_locked(Path.cwd()))
        return self

    def finish(self, exit_code: int) -> None:
        self.ended.append(exit_code)

    def finalize(self, status: str) -> None:
        self.ended.append(status)


@pytest.mark.parametrize(("status", "code"), [("success", 0), ("finished", 0), ("failed", 1)])
def test_wandb_ends_its_run_with_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, code: int
) -> None:
    monkeypatch.setattr("pytorch_lightning.loggers.WandbLogger", Service)
    built: Any = WeightsAndBiases(project="norms", offline=True).build(tmp_path, "baseline, seed=0")
    assert built.options == {"name": "baseline, seed=0", "save_dir": tmp_path, "project": "norms", "offline": True}
    built.finalize(status)
    assert built.ended == [status, code]


@pytest.mark.parametrize("uri", [None, "http://localhost:5000"])
def test_mlflow_looks_where_it_is_told_or_where_mlflow_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str | None
) -> None:
    monkeypatch.setattr("pytorch_lightning.loggers.MLFlowLogger", Service)
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(get_tracking_uri=lambda: "sqlite:///mlflow.db"))
    monkeypatch.chdir(tmp_path)
    built: Any = MLflow(experiment="norms", tracking_uri=uri).build(tmp_path / "trial" / "a001", "baseline, seed=0")
    assert built.arguments == ("norms",)
    assert built.options == {"run_name": "baseline, seed=0", "tracking_uri": uri or "sqlite:///mlflow.db"}
    # The first look makes the store's tables, which two workers must not do at once.
    assert built.looked == [True]
    assert not is_locked(tmp_path)


def test_naming_a_logger_does_not_import_torch() -> None:
    code = (
        "import sys; from ablate.registry import Registry; assert Registry.installed().kinds('logger');"
        "sys.exit(sum(name in sys.modules for name in ('torch', 'pytorch_lightning', 'wandb', 'mlflow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
