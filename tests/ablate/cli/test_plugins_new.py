"""``ablate plugins new``: what it writes works as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ablate as package
import ablate_plugins
from ablate.api import plan
from ablate.cli.plugins.experiments import USES
from ablate.cli.plugins.starting import start_plugin
from ablate.experiment import load
from ablate.registry import Registry
from ablate.slots import SLOTS
from ablate.testing import check
from tests.ablate.cli.conftest import Command

ANOTHER = "  = help: give another name, as my"
BIN = Path(sys.executable).parent
OF_A_MODEL = ["model", "norm", "placement", "residual", "mixer", "scale", "feed_forward", "position", "output"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a new component for every slot."""
    folder = tmp_path_factory.mktemp("new")
    for slot in SLOTS:
        start_plugin(slot, f"my_{slot}", folder, package=False, as_json=False)
    return folder


def test_every_slot_has_something_to_begin_with(written: Path) -> None:
    assert list(USES) == list(SLOTS)
    for slot in SLOTS:
        registry = Registry.installed()
        registry.add_file(written / f"my_{slot}.py")
        component = registry.get(slot, f"my_{slot}")
        assert component.__name__.startswith("My")
        assert component.__name__.endswith(SLOTS[slot].__name__)
        bounded = [field for name, field in component.model_fields.items() if name != "kind" and field.metadata]
        assert bounded, slot
        for path in (f"my_{slot}.py", f"test_my_{slot}.py", f"my_{slot}.yaml"):
            text = (written / path).read_text()
            assert not any(word in text for word in ("my_component", "MyComponent", "My component", "THE_")), path


@pytest.mark.parametrize("slot", SLOTS)
def test_the_experiment_uses_it(written: Path, slot: str) -> None:
    made = plan(load(written / f"my_{slot}.yaml"))
    assert [str(each) for each in made.warnings] == []
    assert len(made.arms) == 2
    if slot not in ("decoding", "section", "logger", "probe"):
        assert (slot, f"my_{slot}") in {(each["slot"], each["kind"]) for each in made.data["components"]}


@pytest.mark.parametrize(
    "slot", [slot if slot not in OF_A_MODEL[3:] else pytest.param(slot, marks=pytest.mark.slow) for slot in SLOTS]
)
def test_it_keeps_the_contract_of_its_slot(written: Path, slot: str) -> None:
    registry = Registry.installed()
    registry.add_file(written / f"my_{slot}.py")
    findings = check(registry.get(slot, f"my_{slot}"), registry)
    assert len(findings) > 9
    assert [str(each) for each in findings if not each.ok] == []


@pytest.mark.slow
@pytest.mark.parametrize("slot", SLOTS)
def test_the_experiment_runs(ablate: Command, written: Path, slot: str) -> None:
    few = ("--set", "budget.steps=4", "--set", "seeds=1")
    shown = ablate("run", f"my_{slot}.yaml", *few, folder=written)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("2 of 2 trials have a result")
    assert ablate("report", f"runs/my_{slot}", folder=written).returncode == 0


def _run(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """A tool that is run where its author would, beside the component."""
    roots = [Path(each.__file__).parents[1] for each in (package, ablate_plugins) if each.__file__]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(map(str, roots))}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_it_passes_the_linter_of_its_author(written: Path) -> None:
    files = sorted(map(str, written.glob("*.py")))
    assert len(files) == 2 * len(SLOTS)
    linted = _run(written, BIN / "ruff", "check", "--isolated", "--no-cache", *files)
    assert linted.returncode == 0, linted.stdout


@pytest.mark.slow  # that its templates are typed is seen where the whole tree is checked
def test_it_passes_the_type_checker_of_its_author(written: Path, tmp_path: Path) -> None:
    command = ["--follow-imports=silent", "--explicit-package-bases", f"--cache-dir={tmp_path}"]
    typed = _run(written, BIN / "mypy", *command, *map(str, written.glob("*.py")))
    assert typed.returncode == 0, typed.stdout


def test_its_own_test_passes(written: Path) -> None:
    tested = _run(written, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_schedule.py")
    assert tested.returncode == 0, tested.stdout
    assert " passed" in tested.stdout


def test_what_it_says(ablate: Command, tmp_path: Path) -> None:
    shown = ablate("plugins", "new", "norm", "max_abs", "--into", "some/where else")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines() == [
        "some/where else/max_abs.py: the norm, to be changed as you like",
        "some/where else/test_max_abs.py: holds it against the contract of its slot",
        "some/where else/max_abs.yaml: an experiment that uses it",
        "next: ablate plugins check 'some/where else/max_abs.py'",
        "next: ablate plan 'some/where else/max_abs.yaml'",
    ]
    assert "class MaxAbsNorm(Norm):" in (tmp_path / "some/where else/max_abs.py").read_text()


def test_a_package(ablate: Command, tmp_path: Path) -> None:
    shown = ablate("plugins", "new", "feed_forward", "two_maps", "--package", "--json")
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    code = "ablate-two-maps/src/ablate_two_maps"
    assert told == {
        "slot": "feed_forward",
        "kind": "two_maps",
        "files": [
            "ablate-two-maps/pyproject.toml",
            "ablate-two-maps/README.md",
            f"{code}/__init__.py",
            f"{code}/py.typed",
            f"{code}/two_maps.py",
            "ablate-two-maps/tests/test_two_maps.py",
            "ablate-two-maps/experiments/two_maps.yaml",
        ],
        "next": [
            "pip install -e ablate-two-maps",
            "ablate plugins check ablate-two-maps",
            "ablate plan ablate-two-maps/experiments/two_maps.yaml",
        ],
    }
    assert all((tmp_path / each).is_file() for each in told["files"])
    project = tomllib.loads((tmp_path / told["files"][0]).read_text())["project"]
    assert (project["name"], project["description"]) == (
        "ablate-two-maps", "Two linear maps with a leaky rectifier between them.",
    )  # fmt: skip
    assert project["entry-points"]["ablate.plugins"] == {"feed_forward.two_maps": "ablate_two_maps.two_maps"}
    assert "plugins:" not in (tmp_path / told["files"][-1]).read_text()  # it is installed


@pytest.mark.parametrize(
    ("slot", "name", "words"),
    [
        ("nrom", "mine", "error[S122]: no slot is called `nrom`\n  = help: did you mean `norm`?"),
        ("feed-forward", "m", "error[S122]: no slot is called `feed-forward`\n  = help: did you mean `feed_forward`?"),
        ("norm", "rms", "error[S120]: the norm `rms` is there already: ablate-arch "),
        ("norm", "Mine", "error[S120]: `Mine` is no name for a component\n  = help: small letters, digits and single"),
        ("norm", "my__norm", "error[S120]: `my__norm` is no name for a component"),
        ("norm", "../mine", "error[S120]: `../mine` is no name for a component"),
        ("norm", "n" * 61, f"error[S120]: `{'n' * 61}` is no name for a component"),
        ("norm", "lambda", f"error[S120]: `lambda` means something else in Python\n{ANOTHER}_lambda"),
        ("norm", "off", "error[S120]: `off` means something else in YAML\n  = help: give another name, as my_off"),
        ("norm", "random", f"error[S120]: Python has a module `random`, which this would hide\n{ANOTHER}_random"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_name(ablate: Command, tmp_path: Path, slot: str, name: str, words: str) -> None:
    shown = ablate("plugins", "new", slot, name)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith(words)
    assert list(tmp_path.iterdir()) == []


def test_a_name_of_another_slot_is_free(ablate: Command) -> None:
    assert ablate("plugins", "new", "residual", "rms").returncode == 0


@pytest.mark.parametrize("there", ["mine.py", "test_mine.py", "mine.yaml", "ablate-mine/README.md"])
def test_nothing_is_overwritten(ablate: Command, tmp_path: Path, there: str) -> None:
    path = tmp_path / there
    path.parent.mkdir(exist_ok=True)
    path.write_text("precious")
    shown = ablate("plugins", "new", "norm", "mine", *(["--package"] if "/" in there else []))
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith(
        f"error[S113]: `{there}` is there already, and nothing is overwritten\n"
        "  = help: give another name, or another folder by `--into DIR`\n"
    )
    assert [each.read_text() for each in tmp_path.rglob("*") if each.is_file()] == ["precious"]
