"""Bad input is one clear message with the place and the remedy, exit 2, and nothing half-written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ablate.cli.conftest import Command
from tests.ablate.experiment.maker import write

TEXT = ("source: python-docs", "path: mine.txt")


@pytest.mark.parametrize("verb", ["plan", "run", "status", "report"])
def test_a_missing_file(ablate: Command, tmp_path: Path, verb: str) -> None:
    shown = ablate(verb, "nowhere.yaml")
    assert shown.returncode == 2
    assert shown.stderr.startswith("error[Y")
    assert "nowhere.yaml" in shown.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (("name: small", "name: [small"), "Y", "small.yaml"),
        (("steps: 20", "stpes: 20"), "S101", "did you mean `steps`?"),
        (("kind: decoder", "kind: decodr"), "S102", "did you mean `decoder`?"),
        (("steps: 20", "steps: many"), "S103", "`steps` must be a whole number, not the text `many`"),
        (("heads: 2", "heads: 5"), "G209", "the baseline cannot be built: 5 heads do not divide a width of 16"),
        (TEXT, "S303", "cannot read `mine.txt`: No such file or directory"),
    ],
)
@pytest.mark.parametrize("verb", ["plan", "run"])
def test_a_bad_experiment(
    ablate: Command, tmp_path: Path, verb: str, change: tuple[str, str], code: str, message: str
) -> None:
    write(tmp_path, change)
    shown = ablate(verb, "small.yaml")
    assert shown.returncode == 2
    assert shown.stdout == ""
    assert f"error[{code}" in shown.stderr
    assert message in shown.stderr
    assert "small.yaml" in shown.stderr
    assert "Traceback" not in shown.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]


@pytest.mark.parametrize(("text", "message"), [("", "`mine.txt` is empty"), ("tiny", "`mine.txt` has 4 characters")])
def test_a_text_that_is_empty_or_too_short(ablate: Command, tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, TEXT)
    (tmp_path / "mine.txt").write_text(text)
    shown = ablate("run", "small.yaml")
    assert shown.returncode == 2
    assert message in shown.stderr
    assert "small.yaml:4:" in shown.stderr
    assert "= help:" in shown.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("verb", ["status", "report"])
def test_a_study_that_was_never_run(ablate: Command, tmp_path: Path, verb: str) -> None:
    write(tmp_path)
    shown = ablate(verb, "small.yaml")
    assert shown.returncode == 2
    assert shown.stderr == (
        "error[S401]: there is no study in `runs/small`\n  = help: run it first: ablate run small.yaml\n\n"
        "For more about an error: ablate explain S401\n"
    )
    assert not (tmp_path / "runs").exists()


def test_errors_are_json_for_tools(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, ("steps: 20", "stpes: 20"))
    shown = ablate("plan", "small.yaml", "--json")
    assert shown.returncode == 2
    errors = json.loads(shown.stdout)["error"]
    assert [(each["code"], each["line"], each["column"]) for each in errors] == [("S101", 16, 10)]


def test_a_design_that_is_too_large_is_refused_with_its_number(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, ("steps: 20", "steps: 20, max_trials: 10"))
    shown = ablate("plan", "small.yaml")
    assert shown.returncode == 3
    assert shown.stderr == (
        "refused: the design `one_at_a_time` makes 3 arms, with 6 seeds each 18 trials, and `budget.max_trials` is 10\n"
    )
    assert ablate("run", "small.yaml").returncode == 3


def test_an_unknown_option_is_a_usage_error(ablate: Command) -> None:
    shown = ablate("run", "x.yaml", "--nonsense")
    assert shown.returncode == 2
    assert "Traceback" not in shown.stderr
