"""Two studies against each other: what is paired, what is refused, what flipped and why."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ablate
from ablate.analysis.comparing import Comparison
from ablate.errors import InputError, RefusedError
from tests.study_maker import HOSTILE, make_study

PLACEMENT = {"placement": ["pre", "post"]}
Values = Mapping[str, list[float]]
"""Outcomes by arm, one a seed."""


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., Path]:
    def make(name: str, values: Values | None = None, **more: Any) -> Path:
        given: dict[str, Any] = {"factors": PLACEMENT, "seeds": 3, "steps": 20} | more
        if values is not None:
            given["outcomes"] = lambda arm, levels, seed: values[arm][seed]
            given["seeds"] = more.get("seeds", len(values["baseline"]))
        return make_study(tmp_path / name, name=name, **given)

    return make


def edit(folder: Path, change: Callable[[dict[str, Any]], None], trials: bool = False) -> Path:
    """Change a study's plan, or each of its records."""
    for path in folder.glob("trials/*/result.json") if trials else [folder / "plan.json"]:
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value))
    return folder


def effects(found: Comparison) -> dict[str, Mapping[Any, Any]]:
    return {row["name"]: row for row in found.effects().to_dict("records")}


def flipped(a: Path, b: Path) -> dict[str, tuple[str, str, str]]:
    frame = ablate.compare(a, b).verdicts()
    frame = frame[frame["flipped"]]
    return {row["name"]: (row["a"], row["b"], row["why"]) for row in frame.to_dict("records")}


# --- effects ----------------------------------------------------------------------------------------------------------


def test_an_effect_is_b_minus_a_seed_by_seed(study: Callable[..., Path]) -> None:
    a = study("a", {"baseline": [1.0, 1.1, 1.2], "placement=post": [2.0, 2.0, 2.0]})
    b = study("b", {"baseline": [1.1, 1.3, 1.5], "placement=post": [2.0, 2.0, 2.0]})
    found = ablate.compare(a, b)
    row = effects(found)["baseline"]
    assert (row["pairs"], row["planned"], row["agree"]) == (3, 3, 3)
    assert row["mean_a"] == pytest.approx(1.1)
    assert row["mean_b"] == pytest.approx(1.3)
    # The differences 0.1, 0.2 and 0.3 have the mean 0.2 and the standard error 0.1 / sqrt(3); Student's t of 2 degrees
    # is 4.3027 at 97.5%, and 6.2053 at 98.75%, for two arms together.
    assert row["effect"] == pytest.approx(0.2)
    assert (row["low95"], row["high95"]) == pytest.approx((0.2 - 4.3027 * 0.057735, 0.2 + 4.3027 * 0.057735), abs=1e-4)
    assert (row["low"], row["high"]) == pytest.approx((0.2 - 6.2053 * 0.057735, 0.2 + 6.2053 * 0.057735), abs=1e-4)
    assert row["verdict"] == "undecided"
    assert row["sentence"].startswith("B's baseline is undecided against A's: +0.200 nats val/loss [95% simultaneous")
    assert effects(found)["placement=post"]["verdict"] == "identical"


def test_the_worst_arm_comes_first(study: Callable[..., Path]) -> None:
    a = study("a", {"baseline": [1.0] * 6, "placement=post": [1.0] * 6})
    b = study("b", {"baseline": [0.8] * 6, "placement=post": [1.5, 1.4, 1.5, 1.4, 1.5, 1.4]})
    found = ablate.compare(a, b)
    assert found.effects()[["name", "verdict"]].to_numpy().tolist() == [
        ["placement=post", "worse"],
        ["baseline", "better"],
    ]
    assert found.worse() == ["placement=post"]
    assert ablate.compare(b, a).worse() == ["baseline"]


def test_equal_studies_are_identical_and_differ_in_nothing(study: Callable[..., Path]) -> None:
    found = ablate.compare(study("a"), study("b"))
    assert found.differences().empty
    assert set(found.effects()["verdict"]) == {"identical"}
    assert not found.verdicts()["flipped"].any()
    assert found.worse() == []
    assert found.notes() == ["2 arms of 2 have the same configuration in both, and the same values."]
    moved = study("c", {"baseline": [1.0, 1.1, 1.2], "placement=post": [1.0, 1.1, 1.2]})
    assert ablate.compare(study("d"), moved).notes() == [
        "2 arms of 2 have the same configuration in both: what differs in them comes from the code, the versions or "
        "the machine."
    ]


def test_only_common_seeds_are_paired(study: Callable[..., Path]) -> None:
    found = ablate.compare(study("a", seeds=[0, 1, 2, 7]), study("b", seeds=[2, 1, 9]))
    assert found.seeds == (2, 1)
    assert set(found.effects()["pairs"]) == {2}
    assert set(found.effects()["verdict"]) == {"identical"}  # by seed, though in another order
    assert found.notes()[:2] == [
        "Only A has 2 seeds, no part of any effect here: 0 and 7.",
        "Only B has 1 seed, no part of any effect here: 9.",
    ]


def test_one_common_seed_has_no_interval(study: Callable[..., Path]) -> None:
    row = effects(ablate.compare(study("a"), study("b", seeds=1, outcomes={"baseline": 2.0})))["baseline"]
    assert row["verdict"] == "one seed, no interval"
    assert row["low"] != row["low"]
    assert "CI" not in row["sentence"]


def test_diverged_seeds_are_counted_and_no_pair(study: Callable[..., Path]) -> None:
    a = study("a", seeds=6)
    b = study("b", seeds=6, diverged=[("baseline", 1), ("placement=post", 0), ("placement=post", 5)])
    found = ablate.compare(a, b)
    row = effects(found)["placement=post"]
    assert (row["pairs"], row["diverged_a"], row["diverged_b"], row["ended_b"]) == (4, 0, 2, 6)
    assert row["sentence"].startswith("2 of 6 seeds of B's placement=post diverged; among those that finished it is")
    assert found.worse() == ["baseline", "placement=post"]
    back = ablate.compare(b, a)
    assert set(back.effects()["verdict"]) == {"not comparable"}
    assert "A's diverged in 2 of 6 seeds" in effects(back)["placement=post"]["sentence"]
    assert back.worse() == []


def test_what_diverges_in_both_alike_is_not_worse(study: Callable[..., Path]) -> None:
    cells = [("placement=post", seed) for seed in range(3)]
    found = ablate.compare(study("a", diverged=cells), study("b", diverged=cells))
    assert effects(found)["placement=post"]["verdict"] == "diverged"
    assert found.worse() == []


def test_what_failed_is_missing_and_said(study: Callable[..., Path]) -> None:
    found = ablate.compare(study("a", failed=[("placement=post", seed) for seed in range(3)]), study("b"))
    row = effects(found)["placement=post"]
    assert (row["pairs"], row["verdict"]) == (0, "undecided")
    assert row["sentence"] == "B's placement=post is undecided: no data: 3 of 3 seeds of A's failed."


def test_more_is_better_where_the_goal_says_so(study: Callable[..., Path]) -> None:
    accuracy = {"metric": "val/accuracy", "goal": "max"}
    a = study("a", {"baseline": [0.5] * 6, "placement=post": [0.5] * 6}, **accuracy)
    b = study("b", {"baseline": [0.6] * 6, "placement=post": [0.4] * 6}, **accuracy)
    found = ablate.compare(a, b)
    assert {name: row["verdict"] for name, row in effects(found).items()} == {
        "placement=post": "worse",
        "baseline": "better",
    }


# --- arms -------------------------------------------------------------------------------------------------------------


def test_arms_go_together_by_name_then_levels_then_configuration(study: Callable[..., Path]) -> None:
    a = study("a", factors={"placement": ["pre", "post"], "scale": ["on", "off"], "ratio": [4, 1]})
    b = study("b", design="full", factors={"placement": ["pre", "post"], "scale": ["on", "off"], "ratio": [4, 1]})
    found = ablate.compare(a, b)
    assert set(found.effects()["name"]) == {
        "baseline",
        "placement=post, scale=on, ratio=4 (in A: placement=post)",
        "placement=pre, scale=off, ratio=4 (in A: scale=off)",
        "placement=pre, scale=on, ratio=1 (in A: ratio=1)",
    }
    assert found.only_a == []
    assert len(found.only_b) == 4
    renamed = study("renamed", factors={"where": ["pre", "post"]})
    first = json.loads((a / "plan.json").read_text())["arms"][1]["id"]
    edit(renamed, lambda plan: rename(plan, first))
    assert "where=post (in A: placement=post)" in set(ablate.compare(a, renamed).effects()["name"])


def rename(plan: dict[str, Any], id: str) -> None:
    """Give the second arm of a plan another identity."""
    old = plan["arms"][1]["id"]
    plan["arms"][1]["id"] = id
    for trial in plan["trials"]:
        trial["arm"] = id if trial["arm"] == old else trial["arm"]


def test_levels_that_look_alike_are_kept_apart(study: Callable[..., Path]) -> None:
    def scaled(arm: str, levels: Mapping[str, Any], seed: int) -> float:
        return 2.0 if levels["placement"] is None else 1.0

    factors = {"placement": ["pre", None, "null", 1, 1.0, True]}
    a = study("a", factors=factors, outcomes=scaled)
    b = study("b", factors=factors, outcomes=scaled)
    assert ablate.compare(a, b).effects()["verdict"].tolist() == ["identical"] * 6


def test_arms_of_one_study_alone_are_named(study: Callable[..., Path]) -> None:
    found = ablate.compare(study("a", factors={"scale": ["on", "off"]}), study("b"))
    assert (found.only_a, found.only_b) == (["scale=off"], ["placement=post"])
    assert "Only A has 1 arm: scale=off." in found.notes()


# --- differences ------------------------------------------------------------------------------------------------------


def test_differences_name_path_values_and_arms(study: Callable[..., Path]) -> None:
    factors = {"placement": ["pre", "post"], "ratio": [4, 1], "scale": ["on", "off"], "residual": ["add", "none"]}

    def other(plan: dict[str, Any]) -> None:
        for arm in plan["arms"]:
            arm["config"]["training"]["optimizer"]["lr"] = 1e-3
            arm["config"]["model"]["tie"] = None
            if arm["name"] != "ratio=1":
                arm["config"]["model"]["norm"] = {"kind": "rms", "eps": 1e-5}
        plan["arms"][1]["config"]["training"]["clip"] = None

    a = study("a", factors=factors, seeds=2)
    b = edit(study("b", factors=factors, seeds=3, smallest_effect=0.05), other)
    rows = {row["path"]: row for _, row in ablate.compare(a, b).differences().iterrows()}
    told = {path: [row["a"], row["b"], row["arms"]] for path, row in rows.items()}
    tie = told.pop("model.tie")
    assert told == {
        "seeds": ["[0, 1]", "[0, 1, 2]", ""],
        "objective.smallest_effect": ["0.02", "0.05", ""],
        "training.optimizer.lr": ["0.01", "0.001", "all arms"],
        "model.norm.kind": ["layer", "rms", "all arms but ratio=1"],
        "training.clip": ["1.0", "null", "placement=post"],
    }
    assert pd.isna(tie[0])  # where there is no such option, which a null is
    assert tie[1:] == ["null", "all arms"]


def test_a_key_that_one_plan_lacks_and_the_other_has_as_null_is_no_difference(study: Callable[..., Path]) -> None:
    def nulls(plan: dict[str, Any]) -> None:
        plan |= {"tuning": None, "git": None, "match": None}
        for arm in plan["arms"]:
            arm |= {"matched": None}

    a = edit(study("a"), lambda plan: plan.pop("git"))
    b = edit(study("b"), nulls)
    assert ablate.compare(a, b).differences().empty
    tune = {"rates": [1e-3, 1e-2], "best": {"baseline": 1e-3, "placement=post": 1e-3}}
    paths = set(ablate.compare(b, study("c", tune=tune)).differences()["path"])
    assert {"git.commit", "tuning.method", "tuned.training.optimizer.lr"} <= paths
    assert not paths & {"tuning", "git", "tuned", "match"}


def test_arms_with_other_tuned_values_are_not_the_same_configuration(study: Callable[..., Path]) -> None:
    def tuned(name: str, rate: float) -> Path:
        best = {"baseline": 1e-3, "placement=post": rate}
        return study(name, tune={"rates": [1e-3, 1e-2], "best": best})

    found = ablate.compare(tuned("a", 1e-3), tuned("b", 1e-2))
    same = {name: row["same_configuration"] for name, row in effects(found).items()}
    assert same == {"baseline": True, "placement=post": False}
    assert found.notes()[-1].startswith("1 arm of 2 has the same configuration in both")


def test_code_and_versions_are_those_that_the_records_have(study: Callable[..., Path]) -> None:
    def other(record: dict[str, Any]) -> None:
        record["versions"]["torch"] = "3.0"
        record["components"][0]["source"] = "fedcba987654"

    frame = ablate.compare(study("a"), edit(study("b"), other, trials=True)).differences()
    assert frame.to_numpy().tolist() == [
        ["versions.torch", "2.13.0", "3.0", ""],
        ["code.norm.layer", "version 1, ablate-arch 0.1.0, source 0123456789ab",
         "version 1, ablate-arch 0.1.0, source fedcba987654", ""],
    ]  # fmt: skip


def test_what_a_record_has_as_null_is_null(study: Callable[..., Path]) -> None:
    def other(record: dict[str, Any]) -> None:
        record["device"] = record["components"][0]["source"] = None

    frame = ablate.compare(study("a"), edit(study("b"), other, trials=True)).differences()
    assert frame[["path", "b"]].to_numpy().tolist() == [
        ["run.device", "null"], ["code.norm.layer", "version 1, ablate-arch 0.1.0, source null"],
    ]  # fmt: skip


# --- flips ------------------------------------------------------------------------------------------------------------

CLEAR: dict[str, list[float]] = {"baseline": [1.0] * 6, "placement=post": [1.1, 1.11, 1.1, 1.11, 1.1, 1.11]}


def test_a_flip_by_another_smallest_effect(study: Callable[..., Path]) -> None:
    why = "the smallest effect that matters is 0.2, it was 0.02"
    told = flipped(study("a", CLEAR), study("b", CLEAR, smallest_effect=0.2))
    assert told == {"placement=post": ("worse", "no practical difference", why)}


def test_a_flip_by_another_goal(study: Callable[..., Path]) -> None:
    told = flipped(study("a", CLEAR), study("b", CLEAR, goal="max"))
    assert told == {"placement=post": ("worse", "better", "the goal is max, it was min")}


def test_a_flip_by_an_effect_that_moved_says_who_moved(study: Callable[..., Path]) -> None:
    b = study("b", CLEAR | {"baseline": [1.2] * 6})
    why = (
        "the effect is -0.095, it was +0.105 (on common seeds the arm moved by +0, the baseline by +0.2)"
    )  # fmt: skip
    assert flipped(study("a", CLEAR), b) == {"placement=post": ("worse", "better", why)}


def test_a_flip_by_a_wider_interval_says_how_many_pairs(study: Callable[..., Path]) -> None:
    values = {"baseline": [1.0] * 6, "placement=post": [1.05, 1.06] * 3}
    moved = {arm: [value + 1 for value in row] for arm, row in values.items()}
    b = study("b", moved, waiting=[("placement=post", seed) for seed in (2, 3, 4, 5)])
    ((old, new, why),) = flipped(study("a", values), b).values()
    assert (old, new) == ("worse", "undecided")
    # Two differences, 0.05 and 0.06, against three of each: t of 1 degree is 12.706, of 5 degrees 2.5706.
    assert why == "the interval is ±0.0635, it was ±0.00575 (2 pairs have both values, it was 6)"


def test_a_flip_by_more_seeds_alone_says_so(study: Callable[..., Path]) -> None:
    values = {"baseline": [1.0] * 6, "placement=post": [1.05, 1.06] * 3}
    few, many = study("few", values, seeds=2), study("many", values, seeds=6)
    assert flipped(few, many) == {"placement=post": ("undecided", "worse", "4 more seeds")}
    assert flipped(many, few) == {"placement=post": ("worse", "undecided", "4 fewer seeds")}
    assert "2 arms of 2 have the same configuration in both, and the same values." in ablate.compare(few, many).notes()


def test_a_main_effect_flips_by_more_seeds_too(study: Callable[..., Path]) -> None:
    def outcome(arm: str, levels: Mapping[str, Any], seed: int) -> float:
        return 1.0 + (0.05 + 0.01 * (seed % 2) if levels["scale"] == "off" else 0.0)

    given = {"design": "full", "factors": {"placement": ["pre", "post"], "scale": ["on", "off"]}, "outcomes": outcome}
    why = flipped(study("few", seeds=2, **given), study("many", seeds=6, **given))
    assert why == {"scale=off": ("undecided", "worse", "4 more seeds")}


def test_a_flip_by_seeds_that_diverge(study: Callable[..., Path]) -> None:
    b = study("b", CLEAR, diverged=[("placement=post", seed) for seed in range(4)])
    ((old, new, why),) = flipped(study("a", CLEAR), b).values()
    assert (old, new, why) == ("worse", "diverged", "4 of 6 seeds diverged, it was 0 of 6")
    b = study("c", CLEAR, diverged=[("baseline", 0)])
    ((_, new, why),) = flipped(study("d", CLEAR), b).values()
    assert (new, why) == ("not comparable", "baseline diverged in 1 of 6 seeds, it was 0 of 6")


def test_a_flip_that_one_of_many_changes_would_have_made_alone_names_that_one(study: Callable[..., Path]) -> None:
    gone = study("b", CLEAR, diverged=[(arm, seed) for arm in CLEAR for seed in range(6)])
    why = "6 of 6 seeds diverged, it was 0 of 6"
    assert flipped(study("a", CLEAR), gone) == {"placement=post": ("worse", "diverged", why)}


def test_a_flip_that_no_single_change_explains_names_all(study: Callable[..., Path]) -> None:
    wide = {"baseline": [1.0] * 6, "placement=post": [1.4, 0.6, 1.4, 0.6, 1.4, 0.5]}
    ((old, new, why),) = flipped(study("a", CLEAR), study("b", wide)).values()
    assert (old, new) == ("worse", "undecided")
    assert why.count(" together with ") == 1


def test_a_value_that_fails_flips_with_its_reason(study: Callable[..., Path]) -> None:
    b = study("b", CLEAR, failed=[("placement=post", seed) for seed in range(6)])
    assert flipped(study("a", CLEAR), b) == {"placement=post": ("worse", "undecided", "6 of 6 seeds failed")}


def test_main_effects_flip_too(study: Callable[..., Path]) -> None:
    given = {"design": "full", "factors": {"placement": ["pre", "post"], "scale": ["on", "off"]}, "seeds": 6}
    b = study("b", outcomes=lambda arm, levels, seed: 1.0 + 0.3 * (levels["scale"] == "off"), **given)
    found = {row["name"]: row for _, row in ablate.compare(study("a", **given), b).verdicts().iterrows()}
    post = found["placement=post"]
    assert post[["kind", "a", "b", "flipped"]].tolist() == ["main effect", "worse", "identical", True]
    assert post["why"].startswith("the effect is +0, it was +0.1")
    assert not found["scale=off"]["flipped"]


# --- refusals ---------------------------------------------------------------------------------------------------------


def task(**options: Any) -> Callable[[dict[str, Any]], None]:
    def change(plan: dict[str, Any]) -> None:
        for arm in plan["arms"]:
            arm["config"]["task"] |= options

    return change


@pytest.mark.parametrize(
    ("more", "change", "reason"),
    [
        ({"seeds": [7, 8]}, None, "no seed is in both: A has 0, 1 and 2; B has 7 and 8"),
        ({"metric": "val/accuracy"}, None, "A is judged by val/loss, B by val/accuracy"),
        ({}, task(kind="copying"), "the tasks differ, `text` and `copying`"),
        ({}, task(context=32), "the evaluation data may differ, by the task's context 64 and 32"),
        ({}, lambda plan: plan["units"].update({"val/loss": "bits"}), "val/loss is in nats and in bits"),
        ({}, lambda plan: plan["data"].update(hash="f" * 64), "the data differ, their hashes are "),
    ],
)
def test_what_cannot_be_paired_is_refused_with_its_reason(
    study: Callable[..., Path], more: dict[str, Any], change: Callable[[dict[str, Any]], None] | None, reason: str
) -> None:
    a, b = study("a"), study("b", **more)
    if change:
        edit(b, change)
    with pytest.raises(RefusedError) as caught:
        ablate.compare(a, b)
    assert f" cannot be paired: {reason}" in str(caught.value)


def test_arms_that_share_nothing_are_refused(study: Callable[..., Path]) -> None:
    def called(plan: dict[str, Any]) -> None:
        for arm in plan["arms"]:
            arm |= {"name": f"other {arm['name']}", "levels": {"norm": arm["name"]}}
        rename(plan, "0" * 16)
        plan["arms"] = plan["arms"][1:]
        plan["baseline"] = plan["arms"][0]["id"]
        plan["trials"] = [trial for trial in plan["trials"] if trial["arm"] == plan["baseline"]]

    with pytest.raises(RefusedError, match="no arm is in both: A has baseline and placement=post; B has other placem"):
        ablate.compare(study("a"), edit(study("b"), called))


def test_a_study_is_not_compared_with_itself(study: Callable[..., Path], tmp_path: Path) -> None:
    a = study("a")
    (tmp_path / "link").symlink_to(a)
    with pytest.raises(RefusedError, match="are one study"):
        ablate.compare(a, tmp_path / "link")


def test_a_study_in_which_nothing_has_ended_is_an_error(study: Callable[..., Path]) -> None:
    cells = [(arm, seed) for arm in ("baseline", "placement=post") for seed in range(3)]
    with pytest.raises(InputError, match="S404"):
        ablate.compare(study("a"), study("b", waiting=cells))


def test_an_arm_on_other_data_is_not_comparable_alone(study: Callable[..., Path]) -> None:
    def change(plan: dict[str, Any]) -> None:
        plan["arms"][1]["config"]["task"]["context"] = 32

    row = effects(ablate.compare(study("a"), edit(study("b"), change)))
    assert row["baseline"]["verdict"] == "identical"
    assert (row["placement=post"]["verdict"], row["placement=post"]["pairs"]) == ("not comparable", 0)
    assert row["placement=post"]["sentence"] == (
        "B's placement=post is not comparable to A's: the evaluation data may differ, by the task's context 64 and 32."
    )


def test_a_file_that_lies_elsewhere_holds_the_same_data(study: Callable[..., Path]) -> None:
    a, b = edit(study("a"), task(path="/here/text.txt")), edit(study("b"), task(path="/there/text.txt"))
    assert set(ablate.compare(a, b).effects()["verdict"]) == {"identical"}


# --- in a notebook ----------------------------------------------------------------------------------------------------


def test_a_notebook_shows_it_with_hostile_text_as_text(study: Callable[..., Path]) -> None:
    factors = {"placement": ["pre", HOSTILE]}
    found = ablate.compare(study("a", factors=factors), study("b", factors=factors, seeds=2, outcomes={"baseline": 2}))
    shown = found._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert shown.count("<li>") == len(found.effects()) + found.verdicts()["flipped"].sum() + len(found.notes())
    assert "nan" not in shown
    assert repr(found) == "Comparison('b' against 'a': 2 arms)"


def test_its_frames_are_the_callers_own(study: Callable[..., Path]) -> None:
    found = ablate.compare(study("a"), study("b"))
    frame = found.effects()
    frame["effect"] = 7.0
    assert set(found.effects()["effect"]) == {0.0}
