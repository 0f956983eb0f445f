"""`ablate init`: what it writes works as it is."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from ablate.experiment.reading import read
from tests.ablate.cli.conftest import Command

FILES = {"experiment.yaml", "my_norm.py", "schema.json"}


def written(folder: Path) -> set[str]:
    """What is in a folder, beside what Python itself keeps of a plugin that it compiled."""
    return {path.name for path in folder.iterdir()} - {"__pycache__"}


def test_what_is_written_plans_and_runs_as_it_is(ablate: Command, tmp_path: Path) -> None:
    shown = ablate("init")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[-1] == "next: ablate plan experiment.yaml"
    assert written(tmp_path) == FILES
    schema = json.loads((tmp_path / "schema.json").read_text())
    values = read(tmp_path / "experiment.yaml").data
    validator = jsonschema.Draft202012Validator(schema)
    assert not list(validator.iter_errors(values))
    assert list(validator.iter_errors(values | {"sedes": 3}))
    assert list(validator.iter_errors(values | {"model": values["model"] | {"norm": "maxx"}}))
    assert not list(validator.iter_errors(values | {"model": values["model"] | {"norm": {"kind": "max", "eps": 1}}}))
    assert (tmp_path / "experiment.yaml").read_text().startswith("# yaml-language-server: $schema=./schema.json\n")

    planned = ablate("plan", "experiment.yaml")
    assert (planned.returncode, planned.stderr) == (0, "")
    assert [line.split()[0] for line in planned.stdout.splitlines()[3:7]] == [
        "baseline", "norm=max", "placement=post", "scale=off",
    ]  # fmt: skip
    run = ablate("run", "experiment.yaml", "--set", "budget.steps=4", "--set", "seeds=2")
    assert run.returncode == 0, run.stderr
    assert run.stdout == "8 of 8 trials have a result: runs/first\nnext: ablate report runs/first\n"


@pytest.mark.parametrize("there", sorted(FILES))
def test_nothing_is_overwritten(ablate: Command, tmp_path: Path, there: str) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / there).write_text("mine")
    shown = ablate("init", "new")
    assert shown.returncode == 2
    assert shown.stderr.startswith(
        f"error[S113]: `new/{there}` is there already, and nothing is overwritten\n"
        "  = help: give another folder: `ablate init DIR`\n"
    )
    assert [path.read_text() for path in (tmp_path / "new").iterdir()] == ["mine"]


def test_a_folder_is_made(ablate: Command, tmp_path: Path) -> None:
    shown = ablate("init", "some/where else")
    assert shown.returncode == 0, shown.stderr
    assert written(tmp_path / "some/where else") == FILES
    assert shown.stdout.splitlines()[-1] == "next: ablate plan 'some/where else/experiment.yaml'"
    assert ablate("show", "some/where else/experiment.yaml", "norm=max", "--json").returncode == 0
