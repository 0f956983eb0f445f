"""What is installed: the wheel exposes two names, and a stranger's wheel is found in a fresh environment."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

import pytest

from ablate.cli.plugins.starting import start_plugin
from ablate.sweep.workers.starting import SINGLE_THREAD
from tests.ablate.experiment.maker import write

ROOT = Path(__file__).parents[1]


def _wheel(source: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def test_wheel_exposes_exactly_two_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"ablate", "ablate_plugins"}


def test_wheel_carries_the_files_that_are_no_code(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    kept = {
        path.relative_to(base).as_posix()
        for base, package in [(ROOT, "ablate"), (ROOT / "plugins", "ablate_plugins")]
        for path in (base / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert kept <= packed


def test_editable_install_exposes_exactly_two_packages(tmp_path: Path) -> None:
    names = ["ablate", "ablate_plugins", "plugins", "tests", "experiments", "reports"]
    code = f"import importlib.util as u; print([name for name in {names} if u.find_spec(name)])"
    shown = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "['ablate', 'ablate_plugins']"


class Environment:
    """A fresh virtual environment with some distributions in it, installed from their wheels."""

    def __init__(self, home: Path, wheels: list[Path]) -> None:
        venv.create(home, with_pip=False)
        self.python = home / "bin/python"
        self.site = next(home.glob("lib/python*/site-packages"))
        for path in wheels:
            with zipfile.ZipFile(path) as archive:
                archive.extractall(self.site)
        # The dependencies come from the environment that runs the tests.
        dependencies = Path(next(p for p in sys.path if p.endswith("site-packages")))
        (self.site / "dependencies.pth").write_text(f"{dependencies}\n")

    def run(self, code: str, folder: Path, *arguments: str) -> str:
        """What a program prints."""
        environment = {**os.environ, **SINGLE_THREAD}  # a process of several threads cannot be forked
        command = [str(self.python), "-c", code, *arguments]
        shown = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        return str(shown.stdout)

    def ablate(self, folder: Path, *commands: str) -> list[subprocess.CompletedProcess[str]]:
        """The command line, once for each command: in forks of a process that has imported torch."""
        with tempfile.TemporaryDirectory() as aside:
            codes = self.run(DRIVER, folder, aside, *commands).split()
            told = [{name: Path(aside, f"{index}.{name}").read_text() for name in ("stdout", "stderr")}
                    for index in range(len(commands))]  # fmt: skip
        return [
            subprocess.CompletedProcess(command, int(code), **streams)
            for command, code, streams in zip(commands, codes, told, strict=True)
        ]


DRIVER = """
import os, shlex, sys
import torch
from ablate.cli import main
_, aside, *commands = sys.argv
for index, command in enumerate(commands):
    child = os.fork()
    if not child:
        for stream, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(f"{aside}/{index}.{name}", os.O_CREAT | os.O_WRONLY), stream)
        sys.argv = ["ablate", *shlex.split(command)]
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of the distributions that are somebody else's."""
    sources = tmp_path_factory.mktemp("third_party")
    shutil.copytree(ROOT / "tests/fixtures/third_party", sources, dirs_exist_ok=True)
    return {name: _wheel(sources / name, sources / "out" / name) for name in ("zoo", "wreck")}


@pytest.fixture(scope="module")
def well(wheel: Path, wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Ablate and the zoo."""
    return Environment(tmp_path_factory.mktemp("well"), [wheel, wheels["zoo"]])


@pytest.fixture(scope="module")
def wrecked(wheel: Path, wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Ablate, the zoo, and a distribution that is broken in every way."""
    return Environment(tmp_path_factory.mktemp("wrecked"), [wheel, *wheels.values()])


def test_a_third_party_wheel_is_found_lazily(well: Environment, tmp_path: Path) -> None:
    code = """
import json, sys
from ablate.registry import Registry
registry = Registry.installed()
quiet = "torch" not in sys.modules and "ablate_zoo.norms" not in sys.modules
registry.all("section")
quiet_after_sections = "torch" not in sys.modules
kinds = registry.kinds("norm")
print(json.dumps({"quiet": quiet, "quiet_after_sections": quiet_after_sections, "kinds": kinds,
    "origin": registry.entry("norm", "dyt").origin, "residuals": "ablate_zoo.residuals" in sys.modules,
    "broken": [each.origin for each in registry.broken], "file": sys.modules["ablate"].__file__}))
"""
    found = json.loads(well.run(code, tmp_path))
    assert found["file"].startswith(str(well.site))
    assert found["quiet"]
    assert found["quiet_after_sections"]
    assert {"dyt", "layer", "rms"} <= set(found["kinds"])
    assert found["origin"] == "ablate-zoo 1.2.3"
    assert not found["residuals"]
    assert found["broken"] == []


def test_it_is_listed_and_shown(well: Environment, tmp_path: Path) -> None:
    found, shown = well.ablate(tmp_path, "plugins list --json", "plugins show dyt --json")
    listed = json.loads(found.stdout)
    assert listed["broken"] == []
    mine = [list(each.values()) for each in listed["components"] if each["origin"] == "ablate-zoo 1.2.3"]
    assert mine == [
        ["norm", "dyt", "ablate-zoo 1.2.3", 1, "ok",
         "Squash each value by a tanh with a learned slope, in place of a norm."],
        ["residual", "averaged", "ablate-zoo 1.2.3", 1, "ok", "Move the stream some of the way towards the update."],
    ]  # fmt: skip
    told = json.loads(shown.stdout)
    assert told["paper"] == "Zhu et al. 2025, Transformers without Normalization"
    assert told["file"] == str(well.site / "ablate_zoo/norms.py")


@pytest.mark.slow
def test_it_keeps_its_contract(well: Environment, tmp_path: Path) -> None:
    (checked,) = well.ablate(tmp_path, "plugins check Ablate_Zoo")
    assert (checked.returncode, checked.stderr) == (0, ""), checked
    assert [line.rpartition(" checks ")[0].rpartition(": ")[0] for line in checked.stdout.splitlines()] == [
        "norm.dyt (ablate-zoo 1.2.3)", "residual.averaged (ablate-zoo 1.2.3)",
    ]  # fmt: skip
    assert all(line.endswith(" checks passed") for line in checked.stdout.splitlines())


def test_it_is_swept_and_reported_with_its_origin_version_and_source(well: Environment, tmp_path: Path) -> None:
    levels = "path: model.norm, levels: [layer, dyt, {kind: dyt, alpha: 1.0}]"
    write(tmp_path, ("seeds: 6", "seeds: 2"), ("steps: 20", "steps: 3"), ("switch: model.residual", levels))
    run, report = well.ablate(tmp_path, "run small.yaml", "report small.yaml")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("8 of 8 trials have a result")
    digest = hashlib.sha256((well.site / "ablate_zoo/norms.py").read_bytes()).hexdigest()[:12]
    mine = {"slot": "norm", "kind": "dyt", "origin": "ablate-zoo 1.2.3", "version": 1, "source": digest}
    plan = json.loads((tmp_path / "runs/small/plan.json").read_text())
    assert mine in plan["components"]
    records = [json.loads(path.read_text()) for path in tmp_path.glob("runs/small/trials/*/result.json")]
    assert sum(mine in record["components"] for record in records) == 4
    assert report.returncode == 0, report.stderr
    assert "residual=dyt" in report.stdout
    assert "ablate-zoo 1.2.3" in (tmp_path / "runs/small/report.html").read_text()


BROKEN = [
    "its entry point `nrom` names no slot; did you mean `norm`?",
    "`ablate_wreck.absent` fails to import: ModuleNotFoundError: No module named 'ablate_wreck.absent'",
    "two plugins bring a norm called `dyt`: ablate-wreck 0.4 and ablate-zoo 1.2.3",
    "`ablate_wreck.exits` fails to import: SystemExit: 3",
    "`ablate_wreck.raises` fails to import: RuntimeError: out of order",
    "`Unsound` lacks `build`",
    "`ablate_wreck.needs` fails to import: ModuleNotFoundError: No module named 'a_module_that_nobody_has'",
]


def test_broken_plugins_are_listed_and_break_nothing(wrecked: Environment, tmp_path: Path) -> None:
    shown, other = wrecked.ablate(tmp_path, "plugins list", "plugins show norm.rms")
    assert shown.returncode == 0
    assert shown.stderr == "goodbye\n"  # what a plugin prints is no result
    lines = shown.stdout.splitlines()
    broken = [line for line in lines if line.startswith("broken: ")]
    assert lines[-len(BROKEN) :] == broken
    assert sorted(line.split(": ", 2)[2] for line in broken) == sorted(BROKEN)
    assert {line.split(": ")[1] for line in broken} == {"ablate-wreck 0.4", "ablate-zoo 1.2.3"}
    kinds = [line.split()[:2] for line in lines]
    assert ["norm", "sound"] in kinds
    assert ["residual", "averaged"] in kinds
    assert ["norm", "dyt"] not in kinds
    assert other.returncode == 0


def test_a_clash_names_both_distributions_where_its_name_is_used(wrecked: Environment, tmp_path: Path) -> None:
    words = "error[S110]: two plugins bring a norm called `dyt`: ablate-wreck 0.4 and ablate-zoo 1.2.3\n"
    write(tmp_path, ("name: small", "name: clash"), ("depth: 2", "depth: 2\n  norm: dyt")).rename(
        tmp_path / "clash.yaml"
    )
    write(tmp_path, ("depth: 2", "depth: 2\n  norm: sound"))
    commands = ("plugins show dyt", "plugins show norm.dyt", "plan clash.yaml")
    *clashing, planned = wrecked.ablate(tmp_path, *commands, "plan small.yaml")
    for shown in clashing:
        assert (shown.returncode, shown.stdout) == (2, "")
        assert words in shown.stderr
        assert "Traceback" not in shown.stderr
    assert planned.returncode == 0, planned.stderr


@pytest.mark.slow
def test_what_cannot_be_used_of_a_distribution_fails_its_check(wrecked: Environment, tmp_path: Path) -> None:
    (checked,) = wrecked.ablate(tmp_path, "plugins check ablate-wreck --json")
    assert checked.returncode == 1
    told = json.loads(checked.stdout)
    assert [each["kind"] for each in told["components"]] == ["sound"]
    assert {each["error"] for each in told["broken"]} <= set(BROKEN)
    assert len(told["broken"]) >= 6


@pytest.mark.slow
def test_a_new_package_is_built_found_and_keeps_its_contract(
    wheel: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    start_plugin("schedule", "stepwise", tmp_path, package=True, as_json=False)
    made = _wheel(tmp_path / "ablate-stepwise", tmp_path / "out")
    fresh = Environment(tmp_path_factory.mktemp("fresh"), [wheel, made])
    experiment = "ablate-stepwise/experiments/stepwise.yaml"
    checked, planned = fresh.ablate(tmp_path, "plugins check ablate-stepwise", f"plan {experiment}")
    assert checked.returncode == 0, checked
    assert checked.stdout.startswith("schedule.stepwise (ablate-stepwise 0.1.0): ")
    assert planned.returncode == 0, planned.stderr
    assert "schedule=stepwise" in planned.stdout
    tested = subprocess.run(
        [fresh.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path / "ablate-stepwise", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert tested.returncode == 0, tested.stdout
