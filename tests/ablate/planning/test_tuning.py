"""What a plan says of tuning."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate.errors import InputError
from ablate.experiment import load
from ablate.planning import Plan, make_plan
from tests.ablate.experiment.maker import write

LR = "training.optimizer.lr"


def plan(folder: Path, tune: str, *changes: tuple[str, str]) -> Plan:
    return make_plan(load(write(folder, ("seeds: 6", f"seeds: 2\ntune: {{{tune}}}"), *changes)))


def test_an_arm_that_is_tuned_is_the_same_whatever_the_file_gives_the_option(tmp_path: Path) -> None:
    tune = f"params: {{{LR}: {{log: [1e-3, 1e-1], n: 3}}}}, seeds: [9]"
    made = plan(tmp_path, tune)
    other = plan(tmp_path, tune, ("lr: 1e-2", "lr: 5e-3"))
    assert [arm["tuning"] for arm in made.arms] == [arm["tuning"] for arm in other.arms]
    assert all(arm["tuning"]["params"] == [LR] for arm in made.arms)
    assert len({arm["tuning"]["identity"] for arm in made.arms}) == len(made.arms)
    assert made.arms[0]["id"] != other.arms[0]["id"]
    assert made.data["tuning"]["points"] == {LR: [1e-3, 1e-2, 1e-1]}
    assert (made.data["tuning"]["combinations"], made.data["tuning"]["trials"]) == (3, 3)


def test_an_arm_without_a_tuned_option_is_not_tuned(tmp_path: Path) -> None:
    tune = "params: {model.feed_forward.ratio: {values: [2, 4]}}, seeds: [9]"
    made = plan(tmp_path, tune, ("  residual: {switch: model.residual}\n", "  ffn: {switch: model.feed_forward}\n"))
    tuned = {arm["name"]: arm.get("tuning", {}).get("params") for arm in made.arms}
    assert tuned == {
        "baseline": ["model.feed_forward.ratio"],
        "placement=post": ["model.feed_forward.ratio"],
        "ffn=off": None,
    }
    names = {arm["id"]: arm["name"] for arm in made.arms}
    assert {names[trial["arm"]] for trial in made.trials if "lineage" in trial} == {"ffn=off"}  # more steps go on


def test_a_grid_is_widened_by_values_that_every_arm_can_take(tmp_path: Path) -> None:
    tune = "params: {model.dropout: {linear: [0.2, 0.6], n: 3}}, seeds: [9], widen: true"
    made = plan(tmp_path, tune)
    assert made.data["tuning"]["beyond"] == {"model.dropout": {"below": [0.0], "above": [0.8]}}


def test_a_value_that_one_arm_cannot_take_is_one_error(tmp_path: Path) -> None:
    gated = ("  residual: {switch: model.residual}\n", "  ffn: {path: model.feed_forward, levels: [mlp, gated]}\n")
    with pytest.raises(InputError) as raised:
        plan(tmp_path, "params: {model.feed_forward.activation: {values: [silu, squared_relu]}}, seeds: [9]", gated)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "G217"
    assert diagnostic.message == (
        "`model.feed_forward.activation` cannot be 'squared_relu' in every arm: "
        "Input should be 'relu', 'gelu' or 'silu'"
    )


def test_what_was_trained_untuned_is_no_trial_of_an_arm_that_is_to_be_tuned(tmp_path: Path) -> None:
    untuned = make_plan(load(write(tmp_path, ("seeds: 6", "seeds: 2"))))
    made = plan(tmp_path, f"params: {{{LR}: {{log: [1e-3, 1e-1], n: 3}}}}, seeds: [9]")
    assert not {trial["id"] for trial in made.data["trials"]} & {trial["id"] for trial in untuned.data["trials"]}
