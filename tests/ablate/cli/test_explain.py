"""``ablate explain``, and the line of each error that names it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ablate.experiment.explanations import EXPLANATIONS, FAMILIES
from tests.ablate.cli.conftest import Command
from tests.ablate.experiment.maker import write

POINTER = "For more about an error: ablate explain "


@pytest.mark.parametrize("code", ["S101", "s101"])
def test_a_code_gives_its_long_form(ablate: Command, code: str) -> None:
    shown = ablate("explain", code)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, EXPLANATIONS["S101"], "")
    assert json.loads(ablate("explain", code, "--json").stdout) == {
        "code": "S101",
        "family": "keys, plugins and the command",
        "problem": "A key is unknown.",
        "text": EXPLANATIONS["S101"],
    }


def test_without_a_code_every_code_is_listed_with_its_first_sentence(ablate: Command) -> None:
    lines = ablate("explain").stdout.splitlines()
    assert lines[:2] == ["reading YAML", "  Y001  The file cannot be read."]
    assert [line for line in lines if line and not line.startswith(" ")] == list(FAMILIES)
    found = [line.split()[0] for line in lines if line.startswith(" ")]
    assert found == list(EXPLANATIONS)
    codes = json.loads(ablate("explain", "--json").stdout)["codes"]
    assert [each["code"] for each in codes] == found
    assert codes[0] == {"code": "Y001", "family": "reading YAML", "problem": "The file cannot be read."}


def test_an_unknown_code_is_told_what_was_meant_and_what_exists(ablate: Command) -> None:
    shown = ablate("explain", "e101")
    assert (shown.returncode, shown.stdout) == (2, "")
    first, guess, *listed = shown.stderr.splitlines()
    assert first == "error[S117]: no diagnostic has the code `e101`"
    assert guess == "  = help: did you mean `S101`?"
    codes = " ".join(f"S{number}" for number in (*range(401, 407), *range(411, 418)))
    assert f"          a study's records: {codes}" in listed
    assert all(any(line.split()[-1] == list(texts)[-1] for line in listed) for texts in FAMILIES.values())
    assert listed[-1] == f"{POINTER}S117"
    (error,) = json.loads(ablate("explain", "e101", "--json").stdout)["error"]
    assert error["code"] == "S117"
    assert "did you mean" not in ablate("explain", "nonsense").stderr


def test_it_never_imports_torch() -> None:
    code = (
        "import sys; from ablate.cli import main; sys.argv = ['ablate', 'explain', 'S101']\n"
        "try: main()\nexcept SystemExit as end: assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules and 'pytorch_lightning' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_errors_end_once_with_the_code_of_the_first(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, ("kind: attention", "kind: atention"), ("steps: 20", "stpes: 20"), ("batch: 4", "batch: 04"))
    shown = ablate("plan", "small.yaml")
    assert [line[:11] for line in shown.stderr.splitlines() if line.startswith(("error", "warning"))] == [
        "warning[W01", "error[S102]", "error[S101]",
    ]  # fmt: skip
    assert shown.stderr.endswith(f"\n\n{POINTER}S102\n")
    assert shown.stderr.count(POINTER) == 1
    as_json = ablate("plan", "small.yaml", "--json")
    assert POINTER not in as_json.stdout + as_json.stderr


def test_a_path_that_cannot_be_written_has_its_code_and_the_line(ablate: Command, tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    shown = ablate("schema", "--out", "there/schema.json")
    assert shown.returncode == 2
    first, *_, last = shown.stderr.splitlines()
    assert first.startswith("error[S113]: cannot use `")
    assert last == f"{POINTER}S113"


def test_a_refusal_has_no_code_and_no_line(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, ("steps: 20", "steps: 20, max_trials: 10"))
    assert POINTER not in ablate("plan", "small.yaml").stderr


def test_a_code_that_a_plugin_made_up_is_not_pointed_to(ablate: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from ablate.errors import InputError\n"
        "from ablate_plugins.task import Text\n"
        "from typing import Literal\n\n"
        "class Mine(Text):\n"
        "    '''A task with an error of its own.'''\n"
        "    kind: Literal['mine'] = 'mine'\n\n"
        "    def load(self, folder: str):\n"
        "        raise InputError.one('X900', 'no luck')\n"
    )
    write(tmp_path, ("task: {kind: text", "plugins: [mine.py]\ntask: {kind: mine"))
    shown = ablate("plan", "small.yaml")
    assert shown.stderr.startswith("error[X900]: no luck\n")
    assert POINTER not in shown.stderr
