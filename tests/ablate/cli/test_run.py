"""`ablate run` on a study that exists: what is new runs, what is finished stays, what would be lost is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ablate.cli.status import next_command
from ablate.records.layout import StudyFolder
from ablate.sweep.preparing import note_storage
from tests.ablate.cli.conftest import ABLATE, Command
from tests.ablate.experiment.maker import write

TINY = (("seeds: 6", "seeds: 2"), ("steps: 20", "steps: 4"), ("  residual: {switch: model.residual}\n", ""))
FULL = (*TINY, ("objective:", "design: full\nobjective:"))
SANDWICH = ("[pre, post]", "[pre, post, sandwich]")


def with_ratio(levels: str) -> tuple[str, str]:
    return ("seeds: ", f"  ratio: {{path: model.feed_forward.ratio, levels: {levels}}}\nseeds: ")


def results(folder: Path) -> dict[str, int]:
    """When each result was sealed, by trial."""
    study = StudyFolder(folder / "runs/small")
    return {trial.id: trial.result.stat().st_mtime_ns for trial in study.trials() if trial.result.exists()}


def arms(folder: Path, trials: set[str]) -> list[str]:
    plan = json.loads(StudyFolder(folder / "runs/small").plan.read_text())
    names = {arm["id"]: arm["name"] for arm in plan["arms"]}
    return sorted({names[trial["arm"]] for trial in plan["trials"] if trial["id"] in trials})


def test_a_finished_grid_gains_a_level_and_then_a_factor(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, *FULL)
    assert ablate("run", "small.yaml").returncode == 0
    first = results(tmp_path)
    assert len(first) == 4

    write(tmp_path, *FULL, SANDWICH)
    assert ablate("run", "small.yaml").returncode == 0
    second = results(tmp_path)
    assert arms(tmp_path, second.keys() - first.keys()) == ["placement=sandwich"]
    assert len(second) == 6

    write(tmp_path, *FULL, SANDWICH, with_ratio("[2, 4]"))
    shown = ablate("run", "small.yaml", "--dry-run", "--json")
    assert shown.returncode == 0, shown.stderr
    assert {key: json.loads(shown.stdout)[key] for key in ("planned", "results", "anew", "new", "refused")} == {
        "planned": 12, "results": 6, "anew": 6, "new": 6, "refused": None,
    }  # fmt: skip
    assert ablate("run", "small.yaml").returncode == 0
    third = results(tmp_path)
    assert arms(tmp_path, third.keys() - second.keys()) == [
        "placement=post, ratio=2", "placement=pre, ratio=2", "placement=sandwich, ratio=2",
    ]  # fmt: skip
    assert len(third) == 12
    assert {id: third[id] for id in second} == second


def test_a_killed_run_goes_on_from_where_it_was(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, *TINY, ("seeds: 2", "seeds: 10"))
    command = [str(ABLATE), "run", "small.yaml"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if "[5/20]" in line:
                process.kill()
        process.wait()
    before = results(tmp_path)
    assert 5 <= len(before) < 20
    assert "interrupted" not in ablate("run", "small.yaml").stderr
    after = results(tmp_path)
    assert len(after) == 20
    assert {id: after[id] for id in before} == before


def test_a_changed_plan_is_refused_unless_it_extends(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, *TINY)
    assert ablate("run", "small.yaml").returncode == 0
    plan = (tmp_path / "runs/small/plan.json").read_bytes()
    write(tmp_path, *TINY, ("steps: 4", "steps: 3"))
    refused = (
        "refused: the plan has changed and would leave out 4 results that `runs/small` has\n"
        "  baseline (2 results): budget.steps: 4 -> 3\n"
        "  placement=post (2 results): budget.steps: 4 -> 3\n"
        "  = help: `--extend` keeps the old results on disk and runs the new ones;\n"
        "          or give the experiment another `name`; or undo the change\n"
    )
    shown = ablate("run", "small.yaml")
    assert (shown.returncode, shown.stdout) == (3, "")
    assert shown.stderr.endswith(refused)
    dry = ablate("run", "small.yaml", "--dry-run")
    assert dry.returncode == 3
    assert dry.stdout.endswith(refused)
    assert (tmp_path / "runs/small/plan.json").read_bytes() == plan
    shown = ablate("run", "small.yaml", "--extend")
    assert shown.returncode == 0, shown.stderr
    assert len(results(tmp_path)) == 8
    assert "4 of 4 trials have a result" in ablate("run", "small.yaml").stdout


def test_only_some_arms_and_seeds(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, *TINY, ("seeds: 2", "seeds: 4"))
    shown = ablate("run", "small.yaml", "--only", "placement=post", "--seeds", "1-2", "--dry-run")
    assert shown.returncode == 0
    assert [line.split() for line in shown.stdout.splitlines()] == [
        ["arm", *["from", "the", "first", "step"], "not", "now", *["new", "in", "the", "plan"], "planned"],
        ["baseline", "4", "4", "4"],
        ["placement=post", "2", "2", "4", "4"],
        ["all", "2", "6", "8", "8"],
        ["dry", "run:", "2", "of", "8", "trials", "would", "run:", "runs/small"],
    ]
    assert not (tmp_path / "runs").exists()
    shown = ablate("run", "small.yaml", "--only", "placement=post", "--seeds", "1-2")
    assert shown.stdout == "2 of 8 trials have a result, 6 waiting: runs/small\nnext: ablate run small.yaml\n"
    assert arms(tmp_path, set(results(tmp_path))) == ["placement=post"]
    assert "3 of 8 trials" in ablate("run", "small.yaml", "--only", "baseline", "--seeds", "0").stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["--only", "placement=pots"],
            "error[S115]: `placement` has no level `pots`\n  = help: did you mean `post`? its levels are pre, post\n",
        ),
        (["--seeds", "4"], "error[S115]: seed 4 is not in the plan\n  = help: it has 0-1\n"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_what_is_not_in_the_plan(
    ablate: Command, tmp_path: Path, arguments: list[str], text: str, more: list[str]
) -> None:
    write(tmp_path, *TINY)
    shown = ablate("run", "small.yaml", *arguments, *more)
    assert shown.returncode == 2
    assert text in shown.stderr
    assert not (tmp_path / "runs").exists()


def test_a_damaged_plan_is_told_by_what_reads_and_written_anew_by_what_runs(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, *TINY, ("seeds: 2", "seeds: 1"))
    assert ablate("run", "small.yaml").returncode == 0
    plan = tmp_path / "runs/small/plan.json"
    before = results(tmp_path)
    for verb, content in [("status", "[]"), ("report", '{"schema": 1, "arms": 7}'), ("status", plan.read_text()[:900])]:
        plan.write_text(content)
        shown = ablate(verb, "small.yaml")
        assert shown.returncode == 2
        assert shown.stderr.startswith("error[S403]: `plan.json` cannot be read: ")
        assert "> runs/small/plan.json\n" in shown.stderr
        assert "  = help: run the experiment again: `ablate run` writes the plan anew" in shown.stderr
    assert ablate("run", "small.yaml").returncode == 0
    assert results(tmp_path) == before
    assert ablate("status", "small.yaml").returncode == 0


def test_what_comes_next_trains_and_reports_the_same_study(ablate: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from typing import Literal\n"
        "from torch import nn\n"
        "from ablate.slots import Norm, Site\n\n"
        "class Mine(Norm):\n"
        "    '''A norm of mine.'''\n"
        "    kind: Literal['mine'] = 'mine'\n\n"
        "    def build(self, at: Site) -> nn.Module:\n"
        "        return nn.Identity()\n"
    )
    write(tmp_path, *TINY, ("path: model.placement, levels: [pre, post]", "path: model.norm, levels: [layer, mine]"))
    given = ["--plugin=mine.py", "--set=name=another", "--set=seeds=1"]
    where = ["--runs", "elsewhere", "--storage", "sqlite:///index.db"]
    shown = ablate("run", "small.yaml", *given, *where, "--limit", "1")
    assert shown.returncode == 0, shown.stderr
    (counts, said) = shown.stdout.splitlines()
    assert counts == "1 of 2 trials have a result, 1 waiting: elsewhere/another"
    assert said == f"next: ablate run small.yaml {' '.join((*given, *where))}"
    assert ablate("status", "elsewhere/another").stdout.splitlines()[-1] == said
    shown = ablate(*said.split()[2:])
    assert shown.stdout == ("2 of 2 trials have a result: elsewhere/another\nnext: ablate report elsewhere/another\n")
    assert ablate(*shown.stdout.splitlines()[-1].split()[2:]).returncode == 0


def test_a_wrong_word_is_no_end_that_can_be_run_again(ablate: Command, tmp_path: Path) -> None:
    shown = ablate("run", "small.yaml", "--retry", "om")  # not even the file is looked for
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == (
        "error[S115]: nothing that ends as `om` can be run again\n"
        "  = help: did you mean `oom`? there are: failed, oom, timeout\n\n"
        "For more about an error: ablate explain S115\n"
    )


@pytest.mark.parametrize(
    ("storage", "told"),
    [
        ("sqlite:///index.db", "sqlite:///index.db"),
        ("${DATABASE}", "'${DATABASE}'"),
        ("postgresql://me@host:5432/db?sslmode=require", "'postgresql://me@host:5432/db?sslmode=require'"),
        ("postgresql://me:${WORD}@host/db", "'postgresql://me:${WORD}@host/db'"),
        ("postgresql://me:hush@host/db", "'postgresql://me:***@host/db'"),
        ("postgresql://me:h%75s%68@host/db", "'postgresql://me:***@host/db'"),
        ("postgresql://me:hu@s/h@host/db", "'postgresql://me:***@host/db'"),
        ("postgresql://me:hush${WORD}@host/db", "'postgresql://me:***@host/db'"),
        ("postgresql://host/db?user=me&password=hush@", "'postgresql://host/db?user=me&password=***'"),
    ],
)
def test_what_comes_next_names_the_database_without_its_password(tmp_path: Path, storage: str, told: str) -> None:
    counts = {"waiting": 1, "failed": 0, "timed_out": 0, "oom": 0}
    words, folder, home = ["ablate", "run", "small.yaml"], StudyFolder(tmp_path / "small"), Path("runs")
    folder.path.mkdir()
    note_storage(folder, storage)
    assert next_command(words, Path("small.yaml"), folder, home, counts) == f"ablate run small.yaml --storage {told}"
    done = next_command(words, Path("small.yaml"), folder, home, counts | {"waiting": 0})
    assert done == "ablate report small.yaml"
    note_storage(folder, None)
    assert next_command(words, Path("small.yaml"), folder, home, counts) == "ablate run small.yaml"
