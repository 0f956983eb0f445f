"""Each verb on real input."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from ablate.experiment.reading import read
from tests.ablate.cli.conftest import ABLATE, Command
from tests.ablate.experiment.maker import write

ROOT = Path(__file__).parents[3]
QUICK = (("seeds: 6", "seeds: 2"), ("steps: 20", "steps: 12"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small experiment that was run."""
    folder = tmp_path_factory.mktemp("finished")
    write(folder, *QUICK)
    subprocess.run([str(ABLATE), "run", "small.yaml"], cwd=folder, check=True, capture_output=True)
    return folder


def test_help_is_quick_to_import_and_names_every_verb() -> None:
    heavy = ("torch", "pytorch_lightning", "pandas", "optuna")
    code = f"import sys, ablate.cli.app; print([name for name in {heavy} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "verb", [["status", "small.yaml"], ["report", "small.yaml"], ["compare", "small.yaml", "twin"]]
)
def test_what_only_reads_never_imports_torch(finished: Path, verb: list[str]) -> None:
    if "twin" in verb:
        shutil.copytree(finished / "runs/small", finished / "twin")
    code = (
        f"import sys; from ablate.cli import main; sys.argv = ['ablate', *{verb}]\n"
        "try: main()\nexcept SystemExit as end: assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules and 'pytorch_lightning' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=finished, check=True, capture_output=True)


def test_plan_shows_arms_with_their_parameters_against_the_baseline(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, ("switch: model.residual", "path: model.feed_forward.ratio, levels: [4, 2]"))
    lines = ablate("plan", "small.yaml").stdout.splitlines()
    assert lines[0] == "small  Does it matter?"
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:6]}
    assert rows["baseline"][0].replace(",", "").isdigit()
    assert rows["residual=2"][1].startswith("-")
    assert lines[-4].startswith("3 arms x 6 seeds = 18 trials of 20 steps (")
    assert lines[-3].startswith("at once: ")
    assert lines[-2].startswith("price: about ")
    assert json.loads(ablate("plan", "small.yaml", "--json").stdout)["name"] == "small"
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]


def test_status_counts_every_planned_trial(ablate: Command, finished: Path) -> None:
    shown = json.loads(ablate("status", "small.yaml", "--json", folder=finished).stdout)
    assert (shown["planned"], shown["complete"], shown["next"]) == (6, 6, "ablate report small.yaml")
    assert (
        sum(
            shown[state]
            for state in ("complete", "diverged", "failed", "timed_out", "pruned", "excluded", "running", "waiting")
        )
        == 6
    )
    lines = ablate("status", "runs/small", folder=finished).stdout.splitlines()
    assert lines[0].split() == ["arm", "complete", "planned"]
    assert lines[-1] == "next: ablate report runs/small"


def test_report_prints_each_verdict_and_the_path(ablate: Command, finished: Path) -> None:
    shown = ablate("report", "small.yaml", "--out", "out", folder=finished)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("val/loss") >= 2
    assert shown.stdout.splitlines()[-1] == "report: out/report.html"
    assert {path.name for path in (finished / "out").iterdir()} == {
        "report.html", "report.json", "trials.csv", "effects.csv", "effects.md", "effects.tex",
    }  # fmt: skip
    as_json = json.loads(ablate("report", "small.yaml", "--json", folder=finished).stdout)
    assert {each["arm"] for each in as_json["verdicts"]} == {"placement=post", "residual=off"}


def test_a_second_run_retrains_nothing(ablate: Command, finished: Path) -> None:
    records = {path: path.stat().st_mtime_ns for path in finished.glob("runs/small/trials/*/result.json")}
    assert len(records) == 6
    shown = ablate("run", "small.yaml", folder=finished)
    assert shown.returncode == 0
    assert shown.stdout == "6 of 6 trials have a result: runs/small\nnext: ablate report small.yaml\n"
    assert {path: path.stat().st_mtime_ns for path in records} == records
    assert not list(finished.glob("runs/small/trials/*/a002"))


def test_a_changed_file_is_noticed_by_what_only_reads(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, *QUICK)
    assert ablate("run", "small.yaml", "--runs", "elsewhere").returncode == 0
    status = json.loads(ablate("status", "small.yaml", "--runs", "elsewhere", "--json").stdout)
    assert (status["changed"], status["next"]) == (False, "ablate report small.yaml --runs elsewhere")
    write(tmp_path, *QUICK, ("[pre, post]", "[pre, post, sandwich]"))
    status = json.loads(ablate("status", "small.yaml", "--runs", "elsewhere", "--json").stdout)
    assert (status["changed"], status["next"]) == (True, "ablate run small.yaml --runs elsewhere --dry-run")
    shown = ablate("report", "small.yaml", "--runs", "elsewhere")
    words = " ".join(shown.stdout.split())
    assert "note: small.yaml has changed since this study was run" in words
    assert "`ablate run small.yaml --runs elsewhere` takes the change over" in words
    assert "changed" not in ablate("report", "elsewhere/small").stdout


def test_a_study_beside_the_file_is_pointed_at(ablate: Command, finished: Path, tmp_path: Path) -> None:
    shown = ablate("status", str(finished / "small.yaml"), folder=tmp_path)
    assert shown.returncode == 2
    assert f"there is one in `{finished / 'runs/small'}`" in shown.stderr


def test_growing_runs_only_what_is_new(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, *QUICK)
    assert ablate("run", "small.yaml").returncode == 0
    before = {path.parent.name for path in tmp_path.glob("runs/small/trials/*/result.json")}
    write(tmp_path, *QUICK, ("[pre, post]", "[pre, post, sandwich]"))
    shown = ablate("run", "small.yaml", "--json")
    assert json.loads(shown.stdout)["complete"] == 8
    events = [json.loads(line) for line in shown.stderr.splitlines()]
    assert all(list(event)[:2] == ["event", "time"] for event in events)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["time"]) for event in events)
    by_kind = {event["event"]: event for event in events}
    assert list(by_kind)[:2] == ["warning", "sweep_started"]
    assert by_kind["warning"].keys() == {"event", "time", "code", "message", "help"}
    assert by_kind["trial_started"].keys() == {
        "event", "time", "trial", "arm", "seed", "attempt", "slot", "work", "done",
    }  # fmt: skip
    assert by_kind["trial_ended"].keys() == {
        "event", "time", "trial", "arm", "seed", "attempt", "slot", "end", "value", "reason", "seconds", "failure",
    }  # fmt: skip
    assert events[-1]["event"] == "sweep_ended"
    assert events[-1]["outcome"]["counts"]["complete"] == 8
    after = {path.parent.name for path in tmp_path.glob("runs/small/trials/*/result.json")}
    assert before < after
    assert len(after) == 8


def test_a_trial_that_raises_is_shown_the_others_run_and_it_can_be_retried(ablate: Command, tmp_path: Path) -> None:
    plugin = tmp_path / "shaky.py"
    plugin.write_text(
        "from typing import Literal\n"
        "from pathlib import Path\n"
        "import torch\n"
        "from torch import Tensor\n"
        "from ablate.slots import Initializer, Parameter\n\n"
        "class Shaky(Initializer):\n"
        "    '''Raises while the file `broken` is there.'''\n"
        "    kind: Literal['shaky'] = 'shaky'\n\n"
        "    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:\n"
        "        if Path('broken').exists():\n"
        "            raise RuntimeError('out of luck')\n"
        "        tensor.normal_(0, 0.1, generator=generator)\n"
    )
    levels = "path: training.initializer, levels: [lecun_normal, shaky]"
    write(tmp_path, *QUICK, ("seeds: 2", "seeds: 2\nplugins: [./shaky.py]"), ("switch: model.residual", levels))
    (tmp_path / "broken").touch()
    shown = ablate("run", "small.yaml")
    assert shown.returncode == 1
    assert "RuntimeError: out of luck" in shown.stderr
    assert "4 of 6 trials have a result, 2 failed" in shown.stdout
    status = json.loads(ablate("status", "small.yaml", "--json").stdout)
    assert status["failures"][0]["arm"] == "residual=shaky"
    assert "--retry failed" in status["next"]
    (tmp_path / "broken").unlink()
    assert ablate("run", "small.yaml").returncode == 1  # a failure waits to be asked for
    shown = ablate("run", "small.yaml", "--retry", "failed")
    assert shown.returncode == 0
    assert "6 of 6 trials have a result" in shown.stdout
    assert len(list(tmp_path.glob("runs/small/trials/*/a002/curves.arrow"))) == 2
    assert len(list(tmp_path.glob("runs/small/trials/*/a001/end.json"))) == 2


def test_a_plugin_whose_code_changed_keeps_its_trials_and_says_so(ablate: Command, tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from typing import Literal\n"
        "from torch import nn\n"
        "from ablate.slots import Norm, Site\n\n"
        "class Mine(Norm):\n"
        "    '''A norm of mine.'''\n"
        "    kind: Literal['mine'] = 'mine'\n\n"
        "    def build(self, at: Site) -> nn.Module:\n"
        "        return nn.Identity()\n"
    )
    levels = "path: model.norm, levels: [layer, mine]"
    write(tmp_path, *QUICK, ("seeds: 2", "seeds: 2\nplugins: [./mine.py]"), ("switch: model.residual", levels))
    assert "other code" not in ablate("run", "small.yaml").stderr
    plugin.write_text(plugin.read_text() + "# changed\n")
    shown = ablate("run", "small.yaml")
    assert "2 trials were made with other code of the norm mine (./mine.py)" in shown.stderr
    assert "2 trials were made with other code of the norm mine (./mine.py)" in ablate("report", "small.yaml").stdout
    plugin.write_text(plugin.read_text().replace("    kind:", "    version = 2\n    kind:"))
    shown = ablate("run", "small.yaml")
    assert shown.returncode == 3
    assert "residual=mine (2 results): the norm mine: version 1 -> 2" in shown.stderr
    assert "other code" not in ablate("run", "small.yaml", "--extend").stderr
    assert len(list(tmp_path.glob("runs/small/trials/*/result.json"))) == 8


def test_an_interrupted_run_exits_130_and_goes_on(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, ("seeds: 6", "seeds: 1"), ("steps: 20", "steps: 4000"))
    process = subprocess.Popen([str(ABLATE), "run", "small.yaml"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.glob("runs/small/trials/*/a001")):
        assert process.poll() is None
        time.sleep(0.1)
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert time.monotonic() - began < 10
    assert "Traceback" not in said
    status = json.loads(ablate("status", "small.yaml", "--json").stdout)
    assert status["waiting"] == 3
    assert status["next"] == "ablate run small.yaml"


def test_plugins_list_names_every_component_with_its_origin(ablate: Command) -> None:
    shown = json.loads(ablate("plugins", "list", "--json").stdout)
    names = {(each["slot"], each["kind"]): each for each in shown["components"]}
    assert names["norm", "rms"]["origin"].startswith("ablate-arch ")
    assert names["norm", "rms"]["description"].startswith("Scale each token")
    assert shown["broken"] == []
    assert "inverse_sqrt" in ablate("plugins", "list").stdout


def test_the_schema_accepts_every_shipped_experiment_and_refuses_mistakes(ablate: Command, tmp_path: Path) -> None:
    schema = json.loads(ablate("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    shipped = sorted((ROOT / "experiments").glob("*.yaml"))
    assert len(shipped) >= 2
    for path in shipped:
        assert not list(validator.iter_errors(read(path).data)), path
        assert path.read_text().startswith("# yaml-language-server: $schema=./schema.json\n")
    for change in [("steps: 20", "steps: -1"), ("kind: attention", "kind: atention"), ("seeds: 6", "sedes: 6")]:
        assert list(validator.iter_errors(read(write(tmp_path, change)).data)), change


def test_the_shipped_schema_is_that_of_the_shipped_components(ablate: Command, tmp_path: Path) -> None:
    assert ablate("schema", "--out", "schema.json").returncode == 0
    assert (tmp_path / "schema.json").read_text() == (ROOT / "experiments/schema.json").read_text()


def test_the_file_that_is_extended_lies_beside_the_experiment_while_it_is(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, *QUICK)
    whole = (tmp_path / "small.yaml").read_text()
    (tmp_path / "base.yaml").write_text(whole)
    (tmp_path / "small.yaml").write_text("extends: base.yaml\n")
    assert ablate("run", "small.yaml", "--limit", "1").returncode == 0
    kept = tmp_path / "runs" / "small"
    assert (kept / "experiment.yaml").read_text() == "extends: base.yaml\n"
    assert (kept / "extended.yaml").read_text() == whole
    (tmp_path / "small.yaml").write_text(whole)
    assert ablate("run", "small.yaml", "--limit", "1").returncode == 0
    assert not (kept / "extended.yaml").exists()
