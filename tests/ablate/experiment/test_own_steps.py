"""Levels that set `budget.steps`, so that arms train for their own number of steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate import plan
from ablate.experiment import load
from ablate.experiment.identity import digest
from ablate.experiment.tracing import trace
from ablate.planning.price import Measured, price, shape_of
from ablate.sweep.preparing import Configs
from tests.ablate.experiment.maker import problems, told, write

RESIDUAL = "  residual: {switch: model.residual}\n"
LEVELS = "path: model.placement, levels: [pre, post]"


def steps(path: Path) -> dict[str, int]:
    return {arm.name: arm.steps for arm in load(path).grid.arms}


def varied(folder: Path, factor: str, *changes: tuple[str, str]) -> Path:
    """The experiment with this factor `time` beside `placement`."""
    return write(folder, (RESIDUAL, f"  time: {{{factor}}}\n"), *changes)


def test_a_path_gives_arms_their_own_steps_and_the_same_setup(tmp_path: Path) -> None:
    path = varied(tmp_path, "path: budget.steps, levels: [10, 20, 40]")
    assert steps(path) == {"baseline": 20, "placement=post": 20, "time=10": 10, "time=40": 40}
    base, post, short, long = (digest(arm.setup) for arm in load(path).grid.arms)
    assert base == short == long != post


def test_a_bundle_sets_steps_beside_other_paths(tmp_path: Path) -> None:
    path = varied(tmp_path, "levels: {a: {}, b: {model.width: 32, budget.steps: 10}}", ("seeds: 6", "design: full"))
    assert list(steps(path).values()) == [20, 10, 20, 10]


def test_the_baseline_may_have_steps_of_its_own(tmp_path: Path) -> None:
    path = varied(tmp_path, "path: budget.steps, levels: [10, 40]", ("seeds: 6", "baseline: {time: 40}"))
    assert steps(path) == {"baseline": 40, "placement=post": 40, "time=10": 10}
    assert [told(each) for each in load(path).grid.warnings] == [
        "W014 14:12 no level of `time` is what the file says at `budget.steps`, so no arm has that | "
        "make it a level, or write the steps of the baseline's level there"
    ]


def test_a_factor_applies_where_the_steps_are(tmp_path: Path) -> None:
    time = "path: budget.steps, levels: [20, 40]"
    when = (LEVELS, f"{LEVELS}, when: {{budget.steps: [30, 40]}}")
    path = varied(tmp_path, time, when, ("seeds: 6", "design: full"))
    assert [arm.levels for arm in load(path).grid.arms] == [
        {"time": 20}, {"placement": "pre", "time": 40}, {"placement": "post", "time": 40}
    ]  # fmt: skip
    path = varied(tmp_path, f"{time}, when: {{model.placement: post}}", ("seeds: 6", "design: full"))
    assert list(steps(path).values()) == [20, 20, 40]


@pytest.mark.parametrize("value", ["0", "-3", "1.5", "20.0", "many", "null", "true", "[20]", "1000000000"])
def test_a_wrong_value_is_told_as_in_the_budget(tmp_path: Path, value: str) -> None:
    (inside,) = problems(write(tmp_path, ("steps: 20", f"steps: {value}")))
    (level,) = problems(varied(tmp_path, f"path: budget.steps, levels: [20, {value}]"))
    (bundle,) = problems(varied(tmp_path, f"levels: {{a: {{}}, b: {{budget.steps: {value}}}}}"))
    code, place, said = inside.split(" ", 2)
    assert (code, place.split(":")[0]) == ("S103", "16")
    assert level == f"{code} 13:43 {said}"
    assert bundle == f"{code} 13:44 {said}"


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        ("path: budget.steps, levels: [20, 40, 40]", "G202 13:47 two levels of `time` are the same: 40 and 40 | None"),
        ("levels: {a: {}, b: {budget.steps: 20}}",
         "G202 13:29 two levels of `time` are the same: a and b | `budget.steps: 20` is what the baseline has anyway"),
        ("path: budget.steps, levels: [10, 40]",
         "G204 13:3 no level of `time` equals what the baseline has, `20` | "
         "add that level, or say which level is the baseline's: `baseline: {time: LEVEL}`"),
        ("path: budget.step, levels: [20, 40]",
         "G201 13:16 nothing reads `budget.step`: a path starts with model, task or training, or is `budget.steps` | "
         "did you mean `budget.steps`?"),
        ("levels: {a: {}, b: {budget: {steps: 40}}}",
         "G201 13:30 nothing reads `budget`: a path starts with model, task or training, or is `budget.steps` | "
         "of the budget, arms differ in `budget.steps` alone"),
        ("switch: budget.steps", "G206 13:18 `budget.steps` is neither a component nor a yes-or-no option | None"),
        ("path: budget.steps, levels: [20, 40]}\n  more: {path: budget.steps, levels: [20, 80]",
         "G208 14:3 `time` and `more` both set `budget.steps` | None"),
    ],
)  # fmt: skip
def test_what_a_factor_of_steps_cannot_be(tmp_path: Path, factor: str, expected: str) -> None:
    assert problems(varied(tmp_path, factor)) == [expected]


def test_what_a_factor_varies_nothing_else_sets(tmp_path: Path) -> None:
    path = varied(tmp_path, "path: budget.steps, levels: [20, 40]")
    for value in (5, 40):  # one that is no level, and one that is
        assert problems(path, sets=[f"budget.steps={value}"]) == [
            "G218 1:15 `--set` sets `budget.steps`, which the factor `time` varies | "
            "leave the factor out, or change its levels in the file"
        ]
    match = ("seeds: 6", "match: {train_flops: {adjust: budget.steps}}\nseeds: 6")
    assert problems(varied(tmp_path, "path: budget.steps, levels: [20, 40]", match)) == [
        "G214 14:31 `match` sets `budget.steps`, which the factor `time` sets too | "
        "choose another option, or leave this one to one of the two"
    ]
    bundle = "levels: {a: {}, b: {model.width: 32, budget.steps: 10}}"
    assert problems(varied(tmp_path, bundle, match)) == [
        "G214 14:31 `match` sets `budget.steps`, which the factor `time` sets too | "
        "leave `steps` out of the levels: `match` chooses it"
    ]


def test_arms_that_differ_in_steps_alone_are_two_and_others_fall_together(tmp_path: Path) -> None:
    mixer = (LEVELS, "path: model.mixer, levels: [{kind: attention, heads: 2}, none]")
    full = ("seeds: 6", "design: full")
    bundles = "levels: {a: {}, b: {model.mixer.heads: 4%s}}"  # of which a mixer that is none has nothing
    assert len(load(varied(tmp_path, bundles % "", mixer, full)).grid.arms) == 3
    arms = load(varied(tmp_path, bundles % ", budget.steps: 40", mixer, full)).grid.arms
    assert [(arm.steps, arm.aliases) for arm in arms] == [(20, ()), (40, ()), (20, ()), (40, ())]
    assert len({digest(arm.setup) for arm in arms}) == 3


def test_a_plan_identifies_counts_and_traces_an_arm_by_its_own_steps(tmp_path: Path) -> None:
    path = varied(tmp_path, "path: budget.steps, levels: [20, 40]", (LEVELS, "path: model.width, levels: [16]"))
    base, long = (made := plan(load(path))).arms
    (alone,) = (arm for arm in plan(load(path, sets=["budget.steps=40", "factors={}"])).arms)
    assert long["id"] == alone["id"] != base["id"]
    assert (long["steps"], long["matched"], long["config"]) == (40, {}, base["config"])
    assert [each.code for each in made.warnings] == ["W012"]  # the guard calls it no no-op
    cost = price(made.data, 1, {shape_of(base): Measured(1.0, None)})
    assert list(cost.trial_seconds.values()) == [26.0, 47.0]  # 6 and 7 of them are probed
    found = {each.path: (each.value, each.source) for each in trace(made.data, long)}
    assert found["budget.steps"] == (40, f"{path}:13")
    (trial,) = (each["id"] for each in made.trials if each["arm"] == long["id"] and each["seed"] == 0)
    assert Configs(made.data)[trial]["config"]["steps"] == 40


def test_an_excluded_cell_is_identified_by_its_own_steps(tmp_path: Path) -> None:
    rule = ("seeds: 6", "design: full\nexclude: [{time: 40, placement: post, why: known}]")
    time = "path: budget.steps, levels: [20, 40]"
    (excluded,) = plan(load(varied(tmp_path, time, rule))).data["excluded"]
    ids = {arm["name"]: arm["id"] for arm in plan(load(varied(tmp_path, time, ("seeds: 6", "design: full")))).arms}
    assert excluded["id"] == ids[excluded["name"]]
