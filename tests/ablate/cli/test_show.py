"""`ablate show`: one arm or trial with the place that every value comes from, and how it ended."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ablate.cli import main
from ablate.experiment.reading import parse
from ablate_plugins.task import Text
from tests.ablate.cli.conftest import Command
from tests.ablate.experiment.maker import write
from tests.ablate.planning.test_matching import BY_RATIO, experiment
from tests.study_maker import make_study

BASE = """\
task: {kind: text, source: python-docs, context: 16}
training:
  optimizer: {kind: adamw, lr: 1e-2}
  batch: 4
"""
SMALL = """\
schema: 1
name: small
extends: base.yaml
model:
  kind: decoder
  width: 16
  depth: 1
  norm: layer
  mixer: {kind: attention, heads: 2}
factors:
  placement: {path: model.placement, levels: [pre, post]}
  norm:
    levels:
      layer: {model.norm: layer}
      fine:
        model.norm: {kind: rms, eps: 1e-3}
        training.clip: 0.5
      bare: {model.norm: none}
exclude:
  - {placement: post, norm: layer, why: known to be worse}
  - {placement: post, norm: fine, why: too}
design: full
seeds: 2
objective: {metric: val/loss, smallest_effect: 0.02}
budget: {steps: 20}
"""
Shown = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(ablate_in: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an experiment over a base file that was run with a setting of the command line."""
    made = tmp_path_factory.mktemp("shown")
    (made / "base.yaml").write_text(BASE)
    (made / "small.yaml").write_text(SMALL)
    ablate_in(made, "run", "small.yaml", "--set", "budget.steps=3").check_returncode()
    return made


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    """Call the verb in a folder: the exit code, stdout and stderr."""

    def call(folder: Path, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        monkeypatch.setattr("sys.argv", ["ablate", "show", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return call


def arms(show: Shown, folder: Path) -> dict[str, str]:
    code, out, _ = show(folder, "runs/small", "--json")
    assert code == 0
    return {each["arm"]: each["id"] for each in json.loads(out)}


def sources(out: str) -> dict[str, tuple[object, str]]:
    return {each["path"]: (each["value"], each["source"]) for each in json.loads(out)["values"]}


def test_every_value_has_the_place_that_it_comes_from(show: Shown, folder: Path) -> None:
    code, out, _ = show(folder, "runs/small", "placement=pre, norm=fine", "--json")
    assert code == 0
    found = sources(out)
    assert found["model.width"] == (16, "small.yaml:6")
    assert found["model.mixer.heads"] == (2, "small.yaml:9")
    assert found["model.mixer.dropout"] == (0.0, "default")
    assert found["model.norm.kind"] == ("rms", "small.yaml:16")
    assert found["model.norm.eps"] == (1e-3, "small.yaml:16")
    assert found["training.clip"] == (0.5, "small.yaml:17")
    assert found["task.context"] == (16, "base.yaml:1")
    assert found["training.optimizer.lr"] == (0.01, "base.yaml:3")
    assert found["training.batch"] == (4, "base.yaml:4")
    assert found["budget.steps"] == (3, "--set")
    assert found["diverged.patience"] == (20, "default")
    base = sources(show(folder, "runs/small", "baseline", "--json")[1])
    assert base["model.norm.kind"] == ("layer", "small.yaml:8")
    assert base["training.clip"] == (1.0, "default")


def test_a_value_that_matching_chose_says_so(show: Shown, tmp_path: Path) -> None:
    experiment(tmp_path, "gated", BY_RATIO)
    code, out, _ = show(tmp_path, "small.yaml", "ffn=gated", "--json")
    assert code == 0
    assert sources(out)["model.feed_forward.ratio"] == (2.78, "match")
    assert sources(out)["model.feed_forward.kind"] == ("gated", "small.yaml:12")
    plain = [line.split() for line in show(tmp_path, "small.yaml", "ffn=gated")[1].splitlines()]
    assert ["model.feed_forward.ratio", "2.78", "match"] in plain


def test_an_arm_is_meant_by_a_name_an_alias_or_the_beginning_of_an_identity(show: Shown, folder: Path) -> None:
    ids = arms(show, folder)
    assert list(ids) == ["baseline", "placement=pre, norm=fine", "placement=pre, norm=bare"]
    bare = ids["placement=pre, norm=bare"]
    outs = [
        show(folder, "runs/small", name)
        for name in ("placement=pre, norm=bare", "placement=post, norm=bare", bare, bare[:6])
    ]
    assert {code for code, _, _ in outs} == {0}
    assert len({out for _, out, _ in outs}) == 1
    lines = outs[0][1].splitlines()
    assert lines[:2] == [f"placement=pre, norm=bare  arm {bare}", "also: placement=post, norm=bare"]
    assert [line.split()[::2] for line in lines[-2:]] == [["0", "complete"], ["1", "complete"]]


def test_a_trial_is_meant_by_its_seed_or_the_beginning_of_its_identity(show: Shown, folder: Path) -> None:
    _, out, _ = show(folder, "runs/small", "baseline", "--seed", "1", "--json")
    told = json.loads(out)
    assert (told["arm"], told["seed"], told["end"], told["attempts"], told["steps"]) == (
        "baseline", 1, "complete", 1, 3,
    )  # fmt: skip
    assert told["metrics"].keys() == Text.units.keys()
    assert show(folder, "runs/small", told["trial"][:8], "--json")[1] == out
    lines = show(folder, "runs/small", told["trial"])[1].splitlines()
    assert lines[0] == f"baseline  arm {told['id']}, seed 1, trial {told['trial']}"
    assert lines[-1 - len(Text.units)] == "end: complete, attempts: 1"
    assert f"val/loss: {told['metrics']['val/loss']:g}" in lines[-len(Text.units) :]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["norm=fine"],
            "error[S116]: the experiment has no arm or trial `norm=fine`\n"
            "  = help: did you mean `placement=pre, norm=fine`?\n",
        ),
        (
            ["zzzz"],
            "error[S116]: the experiment has no arm or trial `zzzz`\n"
            "  = help: the arms are baseline; placement=pre, norm=fine; placement=pre, norm=bare\n",
        ),
        (
            ["placement=post, norm=layer"],
            "error[S116]: `placement=post, norm=layer` is excluded: known to be worse\n",
        ),
        (["baseline", "--seed", "7"], "error[S116]: seed 7 is not planned\n  = help: the seeds are 0, 1\n"),
    ],
)
def test_what_is_not_there(show: Shown, folder: Path, arguments: list[str], text: str) -> None:
    code, out, err = show(folder, "runs/small", *arguments)
    assert (code, out) == (2, "")
    assert err == text + "\nFor more about an error: ablate explain S116\n"


def test_how_a_trial_failed_or_diverged(show: Shown, tmp_path: Path) -> None:
    make_study(tmp_path / "made", factors={"placement": ["pre", "post"]}, seeds=2,
               failed={("placement=post", 0): "RuntimeError: out of luck"},
               diverged={("placement=post", 1): "nonfinite"}, waiting=[("baseline", 1)])  # fmt: skip
    _, out, _ = show(tmp_path, "made", "placement=post", "--seed", "0")
    assert "end: failed (RuntimeError: out of luck), attempts: 2" in out.splitlines()
    assert [line for line in out.splitlines() if line.startswith("attempt ")] == [
        "attempt 1: failed: OSError: the first attempt's own error", "attempt 2: failed: RuntimeError: out of luck",
    ]  # fmt: skip
    _, out, _ = show(tmp_path, "made", "placement=post", "--seed", "1")
    assert any(line.startswith("end: diverged (nonfinite at step ") for line in out.splitlines())
    told = json.loads(show(tmp_path, "made", "baseline", "--json")[1])
    assert [each["end"] for each in told["trials"]] == ["complete", "waiting"]


def test_the_last_lines_of_the_log_are_shown_and_cannot_drive_the_terminal(show: Shown, tmp_path: Path) -> None:
    made = make_study(tmp_path / "made", factors={"placement": ["pre", "post"]}, seeds=1)
    told = json.loads(show(tmp_path, "made", "baseline", "--seed", "0", "--json")[1])
    (log,) = (made / "trials" / told["trial"]).glob("a*/log.txt")
    log.write_text("".join(f"line {index}\n" for index in range(30)) + "\x1b[31mred\n")
    lines = show(tmp_path, "made", "baseline", "--seed", "0")[1].splitlines()
    assert lines[-20:] == [*(f"  line {index}" for index in range(11, 30)), "   [31mred"]


@pytest.mark.parametrize("what", ["runs/small", "unchanged.yaml"])
def test_a_study_is_read_without_torch(ablate: Command, folder: Path, what: str) -> None:
    if what == "unchanged.yaml":
        text = SMALL.replace("name: small", "name: unchanged")
        (folder / what).write_text(text)
        ablate("run", what, "--limit", "1", folder=folder).check_returncode()
    code = (
        f"import sys; from ablate.cli import main; sys.argv = ['ablate', 'show', {what!r}, 'baseline']\n"
        "try: main()\nexcept SystemExit as end: assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules and 'pytorch_lightning' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)


def test_a_file_that_changed_is_planned_anew(show: Shown, folder: Path) -> None:
    _, out, _ = show(folder, "small.yaml", "baseline", "--json")  # it was run with `--set`
    assert sources(out)["budget.steps"] == (20, "small.yaml:25")
    _, out, _ = show(folder, "small.yaml", "baseline", "--set", "model.width=8", "--json")
    assert sources(out)["model.width"] == (8, "--set")
    assert [each["end"] for each in json.loads(out)["trials"]] == ["waiting", "waiting"]


def test_components_within_a_list_are_spelled_as_yaml_does(show: Shown, tmp_path: Path) -> None:
    layers = "[{range: [0, 1], mixer: {kind: attention, heads: 1}, norm: none}]"
    write(tmp_path, ("depth: 2", f"depth: 2\n  layers: {layers}"))
    lines = show(tmp_path, "small.yaml", "baseline")[1].splitlines()
    (value,) = (line.split("  ")[1:-1] for line in lines if line.startswith("model.layers "))
    told = {"range": [0, 1], "norm": "none"}
    (found,) = parse(f"layers: {' '.join(value)}\n", "shown").data["layers"]
    assert {name: found[name] for name in told} == told
    assert (found["mixer"]["kind"], found["mixer"]["heads"]) == ("attention", 1)
    assert "placement" not in found
