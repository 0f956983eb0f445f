"""What the section on fairness says of the arms."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ablate.analysis.results import Results
from ablate.reporting import fairness, write
from ablate.reporting.study import Study
from ablate.slots import Section
from tests.study_maker import make_study

NARROWER = {"ratio": [4, 2]}
"""A feed-forward network of half the width: 114,560 of 163,712 parameters, and 8 of 12 times the width squared a block,
so a third of the FLOPs less."""


def study(folder: Path, **options: Any) -> Study:
    return Study(Results(make_study(folder / "study", **({"seeds": 2, "steps": 20} | options))))


def rows(of: Study) -> list[dict[str, str]]:
    table = fairness.table(of)
    return [{column.title: table.text(column, row) for column in table.shown()} for row in table.records]


def test_each_arm_has_its_sizes_beside_the_baselines(tmp_path: Path) -> None:
    base, half = rows(study(tmp_path, factors=NARROWER))
    assert (base["parameters"], half["parameters"]) == ("163,712", "114,560")
    assert (base["training FLOPs"], half["training FLOPs"]) == (
        "18.1 G",
        "12.1 G",
    )  # 6 a weight and token
    assert (base["training tokens"], half["training tokens"]) == ("20,480", "20,480")
    assert (base["not equal"], half["not equal"]) == ("", "-30% parameters and -33% training FLOPs")
    table = fairness.table(study(tmp_path / "again", factors=NARROWER))
    half_again = table.records[1]
    assert (half_again["parameters_delta"], half_again["flops_delta"]) == ("-30.0", "-33.3")
    # What no arm differs in has no column of differences.
    keys = [column.key for column in table.shown()]
    assert "flops_delta" in keys
    assert "tokens_delta" not in keys
    assert "steps" not in keys


def test_nothing_matched_and_nothing_tuned_is_said(tmp_path: Path) -> None:
    assert list(fairness.sentences(study(tmp_path, factors=NARROWER))) == [
        "Nothing is matched: each arm has the size that its levels give it.",
        "1 of 1 arm differs from the baseline by more than 1% in parameters or training FLOPs: an effect may be one "
        "of size.",
        "Every arm trains for 20 steps, on 20,480 tokens.",
        "Nothing is tuned: all arms share the values that the experiment gives, the learning rate among them, and "
        "these may suit one arm better than another.",
    ]


def test_what_was_matched_and_how(tmp_path: Path) -> None:
    target = {"to": "baseline", "adjust": "model.feed_forward.ratio", "within": 0.005, "multiple_of": None}
    matched = study(
        tmp_path,
        factors={"placement": ["pre", "post"]},
        match={"params": target, "train_flops": None},
        own={"placement=post": {"matched": {"model.feed_forward.ratio": 3.9}, "steps": 30}},
    )
    said = list(fairness.sentences(matched))
    assert said[0] == (
        "Parameters are matched to the baseline's within 0.5%, by solving model.feed_forward.ratio in 1 arm."
    )
    assert said[2] == "Arms train for 20 to 30 steps, on 20,480 to 30,720 tokens."
    base, other = rows(matched)
    assert (base["chosen by matching"], other["chosen by matching"]) == ("", "model.feed_forward.ratio=3.9")
    assert (base["steps"], other["steps"]) == ("20", "30")
    assert other["not equal"] == "+50% training FLOPs; matched in parameters alone"


def test_arms_of_one_size_are_said_to_be(tmp_path: Path) -> None:
    said = list(fairness.sentences(study(tmp_path, factors={"placement": ["pre", "post"]})))
    assert said[1] == "Every arm has the baseline's parameters and training FLOPs within 1%."


def test_an_arm_without_a_complete_trial_has_no_time(tmp_path: Path) -> None:
    lost = {("placement=post", 0), ("placement=post", 1)}
    base, other = rows(study(tmp_path, factors={"placement": ["pre", "post"]}, diverged=lost))
    assert base["time"].endswith(" s")
    assert other["time"] == ""


def test_tuning_is_counted_and_a_best_value_at_an_edge_is_said(tmp_path: Path, sections: list[Section]) -> None:
    folder = make_study(tmp_path / "study", seeds=2, steps=20, factors={"placement": ["pre", "post"]})
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    lr = "training.optimizer.lr"
    runs = [
        {"id": f"t{place}{number}", "arm": arm["id"], "seed": 100, "number": number, "tuned": {lr: value}}
        for place, arm in enumerate(plan["arms"]) for number, value in enumerate((0.001, 0.01, 0.1))
    ]  # fmt: skip
    plan["tuning"] = {
        "method": "grid", "params": {lr: {"log": [0.001, 0.1], "linear": None}}, "seeds": [100], "combinations": 3,
        "halving": None, "runs": runs,
    }  # fmt: skip
    for arm, value in zip(plan["arms"], (0.01, 0.1), strict=True):
        arm |= {"tuned": {lr: value}, "tuning": {"identity": arm["id"], "params": [lr]}}
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    tuned = Study(Results(folder))
    base, other = rows(tuned)
    assert (base["tuning"], other["tuning"]) == ("3", "3")
    assert base["best value at an edge"] == ""
    assert other["best value at an edge"] == "lr: the highest that was tried"
    assert list(fairness.sentences(tuned))[-1] == ("Each arm has the same budget for tuning, 3 combinations on 1 seed.")
    del plan["arms"][1]["tuning"], plan["arms"][1]["tuned"]
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    assert list(fairness.sentences(Study(Results(folder))))[-1] == (
        "Each arm that is tuned has the same budget for it, 3 combinations on 1 seed; nothing is tuned in "
        "placement=post."
    )
    ids = re.findall(r' id="([^"]+)"', write(Results(folder), sections).read_text(encoding="utf-8"))
    assert {"fairness", "fairness-arms", "tuning", "tuning-arms"} <= set(ids)
    assert len(ids) == len(set(ids))
