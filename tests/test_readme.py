"""What the README shows works as it is shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from ablate.cli.app import app
from ablate.experiment import load
from ablate.experiment.schema import Designs, Settings
from ablate.planning import make_plan
from ablate.registry import Registry

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
LANGUAGE = (ROOT / "experiments" / "README.md").read_text()


def block(language: str, having: str, page: str = README) -> str:
    """The code block in this language that has this text."""
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    (found,) = (each for each in blocks if having in each)
    return found


def test_the_experiment_plans(tmp_path: Path) -> None:
    path = tmp_path / "norm-placement.yaml"
    path.write_text(block("yaml", "norm-placement"))
    assert [arm["name"] for arm in make_plan(load(path)).arms] == [
        "baseline", "placement=post", "placement=sandwich", "scale=off", "ffn=narrow",
    ]  # fmt: skip


def test_the_component_is_found_and_used(tmp_path: Path) -> None:
    (tmp_path / "my_norm.py").write_text(block("python", "class SoftsignNorm"))
    registry = Registry.installed()
    registry.add_file(tmp_path / "my_norm.py")
    assert registry.get("norm", "softsign").describe() == "Squash each value by a softsign, in place of a norm."
    text = block("yaml", "norm-placement").replace("depth: 3,", "depth: 3, norm: softsign,")
    path = tmp_path / "experiment.yaml"
    path.write_text(text + "plugins: [./my_norm.py]\n")
    assert make_plan(load(path)).arms[0]["config"]["model"]["norm"] == {"kind": "softsign"}


def test_what_a_notebook_follows_a_run_with_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(
        "name: small\n"
        "question: q\n"
        "task: {kind: copy, length: 4, symbols: 4}\n"
        "model: {kind: rnn_seq2seq, width: 8, attention: none}\n"
        "training: {optimizer: {kind: adamw, lr: 1e-2}, batch: 4}\n"
        "factors: {attention: {path: model.attention, levels: [none, luong]}}\n"
        "seeds: 1\n"
        "objective: {metric: val/accuracy, goal: max, smallest_effect: 0.05}\n"
        "budget: {steps: 2}\n"
    )
    found: dict[str, Any] = {}
    exec(block("python", "on_event=follow").replace("experiments/quickstart.yaml", "small.yaml"), found)
    assert "baseline 0 complete " in capsys.readouterr().out
    assert set(found["losses"]) <= set(found["results"].trials()["trial"])


def test_the_language_is_as_its_page_says(tmp_path: Path) -> None:
    text = block("yaml", "norm-placement", LANGUAGE)
    text += block("yaml", "match:", LANGUAGE) + block("yaml", "tune:", LANGUAGE)
    (tmp_path / "base.yaml").write_text("training: {schedule: cosine}")
    (tmp_path / "my_norms.py").write_text(block("python", "class SoftsignNorm"))
    path = tmp_path / "experiment.yaml"
    path.write_text(text)
    made = make_plan(load(path))
    assert [warning.code for warning in made.warnings] == []
    assert len(made.arms) == 14
    assert {cell["name"] for cell in made.data["excluded"]} == {"placement=sandwich, scale=off"}
    assert made.data["tuning"]["trials"] == 8
    assert {arm["config"]["training"]["schedule"]["kind"] for arm in made.arms} == {"cosine"}
    assert [arm["matched"] for arm in made.arms if arm["name"] == "ffn=sparse"] == [{}]


def test_every_design_and_key_is_on_the_page_of_the_language() -> None:
    for design in get_args(Designs):
        assert f"| `{design}` |" in LANGUAGE
    for key in Settings.model_fields:
        name = "schema" if key == "schema_version" else key
        assert re.search(rf"(^|\n|`){name}(:|`)", LANGUAGE), name


def test_every_verb_is_in_the_table() -> None:
    verbs = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    assert verbs == {"init", "plan", "run", "status", "report", "compare", "show", "export", "gc", "schema", "explain"}
    for verb in [*verbs, "plugins list"]:
        assert f"| `ablate {verb}" in README


def test_every_linked_file_exists() -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", README):
        assert (ROOT / target).exists(), target
