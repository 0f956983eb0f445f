"""Tracing: where every value of an arm comes from."""

from __future__ import annotations

from pathlib import Path

import ablate
from ablate.experiment import load
from ablate.experiment.tracing import trace
from tests.ablate.experiment.maker import write


def traced(path: Path, arm: int, *sets: str) -> dict[str, tuple[object, str]]:
    """The value and the source of every path of an arm."""
    plan = ablate.plan(load(path, sets=sets)).data
    return {each.path: (each.value, each.source) for each in trace(plan, plan["arms"][arm])}


def test_a_value_comes_from_its_line_or_is_a_default(tmp_path: Path) -> None:
    path = write(tmp_path)
    found = traced(path, 0)
    assert found["model.width"] == (16, f"{path}:7")
    assert found["model.mixer.kind"] == ("attention", f"{path}:9")
    assert found["model.mixer.scale.kind"] == ("inverse_sqrt", "default")
    assert found["model.norm.eps"] == (1e-5, "default")
    assert found["training.optimizer.lr"] == (0.01, f"{path}:10")
    assert found["training.clip"] == (1.0, "default")
    assert found["budget.steps"] == (20, f"{path}:16")
    assert found["diverged.patience"] == (20, "default")


def test_a_level_is_where_it_is_written(tmp_path: Path) -> None:
    path = write(tmp_path, ("[pre, post]", "\n    [pre,\n    post]"))
    assert traced(path, 0)["model.placement.kind"] == ("pre", "default")
    assert traced(path, 1)["model.placement.kind"] == ("post", f"{path}:14")
    assert traced(path, 2)["model.residual.kind"] == ("none", f"{path}:15")


def test_a_level_replaces_the_whole_of_what_it_names(tmp_path: Path) -> None:
    levels = "path: model.mixer, levels: [{kind: attention, heads: 2}, {kind: attention, bias: false}]"
    path = write(tmp_path, ("path: model.placement, levels: [pre, post]", levels))
    found = traced(path, 1)
    assert found["model.mixer.bias"] == (False, f"{path}:12")
    assert found["model.mixer.heads"] == (4, "default")
    assert traced(path, 2)["model.mixer.heads"] == (2, f"{path}:9")


def test_a_bundle_has_a_line_for_each_path(tmp_path: Path) -> None:
    bundle = "levels: {plain: {}, small: {\n    model.width: 8,\n    model.mixer.heads: 1}}"
    path = write(tmp_path, ("path: model.placement, levels: [pre, post]", bundle))
    found = traced(path, 1)
    assert (found["model.width"], found["model.mixer.heads"]) == ((8, f"{path}:13"), (1, f"{path}:14"))
    assert found["model.depth"] == (2, f"{path}:8")


def test_the_command_line_and_a_base_are_sources(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("model: {dropout: 0.1}\n")
    path = write(tmp_path, ("schema: 1", "schema: 1\nextends: base.yaml"))
    found = traced(path, 0, "training.batch=2", "budget.steps=10")
    assert found["model.dropout"] == (0.1, f"{tmp_path / 'base.yaml'}:1")
    assert found["training.batch"] == (2, "--set")
    assert found["budget.steps"] == (10, "--set")
    assert found["model.width"] == (16, f"{path}:8")


def test_what_was_matched_is_said(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        ("path: model.placement, levels: [pre, post]", "path: model.norm, levels: [layer, rms]"),
        ("  residual: {switch: model.residual}", "  bias: {switch: model.mixer.bias}"),
        ("seeds: 6", "match: {params: {adjust: model.feed_forward.ratio, within: 0.2%}}\nseeds: 6"),
    )
    assert traced(path, 0)["model.feed_forward.ratio"] == (4.0, "default")
    value, source = traced(path, 2)["model.feed_forward.ratio"]
    assert isinstance(value, float) and value > 4.0
    assert source == "match"


def test_a_list_has_the_line_that_it_begins_at(tmp_path: Path) -> None:
    path = write(tmp_path, ("depth: 2", "depth: 2\n  layers: [{range: [0, 1], placement: post}]"))
    assert traced(path, 0)["model.layers"][1] == f"{path}:9"
    assert traced(write(tmp_path), 0)["model.layers"] == ([], "default")


def test_what_is_tuned_is_said_before_its_value_is_found_and_after(tmp_path: Path) -> None:
    tune = "tune: {params: {training.optimizer.lr: {log: [1e-3, 1e-1], n: 2}}, seeds: [9]}"
    path = write(tmp_path, ("seeds: 6", f"seeds: 2\n{tune}"))
    assert traced(path, 0)["training.optimizer.lr"] == (0.01, "to be tuned")
    plan = ablate.plan(load(path)).data
    arm = plan["arms"][0]
    found = {**arm, "tuned": {"training.optimizer.lr": 0.1}}
    assert {each.path: each.source for each in trace(plan, found)}["training.optimizer.lr"] == "tune"
    whole = {**arm, "tuning": {"params": ["training.schedule"]}}
    assert {each.path: each.source for each in trace(plan, whole)}["training.schedule.kind"] == "to be tuned"
