"""``ablate plugins check``: the contract suite from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ablate.cli.conftest import Command

SCHEDULES = """
from typing import Literal
from pydantic import Field
from ablate.slots import Schedule


class Falling(Schedule):
    '''Falls in a straight line.

    Source: Nobody 2031, A Straight Line.
    '''

    kind: Literal["falling"] = "falling"
    floor: float = Field(0.0, ge=0, lt=1)
    '''What is left at the end.'''

    def factor(self, step: int, steps: int) -> float:
        return 1 - (1 - self.floor) * step / steps


class Steep(Schedule):
    '''Falls below zero.'''

    kind: Literal["steep"] = "steep"

    def factor(self, step: int, steps: int) -> float:
        return 1 - 2 * step / steps
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SCHEDULES)
    return path


def test_a_line_for_what_passes_and_expected_got_and_place_for_what_fails(ablate: Command, file: Path) -> None:
    shown = ablate("plugins", "check", file.name)
    assert (shown.returncode, shown.stderr) == (1, "")
    passed, failed, *rest = shown.stdout.splitlines()
    assert passed.startswith("schedule.falling (mine.py): ")
    assert passed.endswith(" checks passed")
    assert failed.startswith("schedule.steep (mine.py): 2 of ")
    assert failed.endswith(" checks failed")
    line = SCHEDULES.splitlines().index("class Steep(Schedule):") + 1
    checks = [each.strip() for each in rest if not each.startswith("    ")]
    assert checks == ["source", "factor"]
    assert [each.split()[0] for each in rest if each.startswith("    ")] == ["expected", "got", "at"] * 2
    assert rest[3] == f"    at        mine.py:{line}"
    assert rest[2] == "    got       no `Source:` in the docstring"


def test_as_json(ablate: Command, file: Path) -> None:
    shown = ablate("plugins", "check", file.name, "--json")
    assert shown.returncode == 1
    told = json.loads(shown.stdout)
    assert told["broken"] == []
    falling, steep = told["components"]
    assert (falling["slot"], falling["kind"], falling["origin"], falling["failed"]) == (
        "schedule", "falling", "mine.py", 0,
    )  # fmt: skip
    assert falling["checks"] == len(falling["findings"])
    assert [each["check"] for each in steep["findings"] if not each["ok"]] == ["source", "factor"]
    assert steep["failed"] == 2
    assert steep["findings"][0].keys() == {"check", "component", "ok", "expected", "got", "file", "line"}


@pytest.mark.parametrize(
    ("names", "checked"),
    [
        (["schedule.constant"], ["schedule.constant"]),
        (["falling", "--plugin", "mine.py"], ["schedule.falling"]),
        (["schedule:constant", "constant"], ["schedule.constant"]),  # once, however often it is named
        (["logger"], ["logger.csv", "logger.mlflow", "logger.tensorboard", "logger.wandb"]),
    ],
)
def test_what_is_named_is_checked(ablate: Command, file: Path, names: list[str], checked: list[str]) -> None:
    shown = ablate("plugins", "check", *names)
    assert [line.split(" (")[0] for line in shown.stdout.splitlines() if not line.startswith(" ")] == checked


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere.py", "error[S106]: there is no plugin file `nowhere.py`"),
        ("schedule.constnat", "error[S102]: no schedule is called `constnat`"),
        ("ablate-zoo-of-nobody", "error[S102]: no component is called `ablate-zoo-of-nobody`"),
        ("none", "error[S121]: `none` is the name of "),
    ],
)
def test_what_cannot_be_found_is_bad_input(ablate: Command, name: str, words: str) -> None:
    shown = ablate("plugins", "check", name)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith(words)


def test_a_file_that_cannot_be_imported_is_bad_input(ablate: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit(0)")
    shown = ablate("plugins", "check", "mine.py")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith("error[S107]: the plugin `mine.py` fails to import: SystemExit: 0")
