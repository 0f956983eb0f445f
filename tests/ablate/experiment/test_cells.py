"""Grids whose arms would not be what their names say, or whose answer would be void, are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate.errors import RefusedError
from ablate.experiment import load
from ablate.experiment.designs import FractionalDesign
from ablate.experiment.factors import Axis
from ablate.experiment.levels import Level
from tests.ablate.experiment.maker import problems, write

PLACEMENT = "  placement: {path: model.placement, levels: [pre, post]}\n"
RESIDUAL = "  residual: {switch: model.residual}\n"
NORM = "  norm: {path: model.norm, levels: [layer, none]}\n"


def grid(folder: Path, factors: str, *lines: str) -> Path:
    return write(folder, (PLACEMENT, factors), (RESIDUAL, ""), ("seeds: 6", "\n".join([*lines, "seeds: 6"])))


def warned(path: Path) -> list[str]:
    return [f"{each.code} {each.message}" for each in load(path).grid.warnings]


@pytest.mark.parametrize("design", ["one_at_a_time", "pairs"])
def test_a_level_that_is_the_baseline_in_other_words_has_no_effect(tmp_path: Path, design: str) -> None:
    path = grid(tmp_path, PLACEMENT, f"design: {design}")
    path.write_text(path.read_text().replace("depth: 2", "depth: 2\n  norm: none"))
    assert problems(path) == [
        "G216 13:52 `placement=post` has no effect: it is the baseline in other words | something else in `model` "
        "decides here; or say `allow_noop: true` where this is meant"
    ]
    path.write_text(path.read_text() + "allow_noop: true\n")
    assert [(arm.name, arm.aliases) for arm in load(path).grid.arms] == [("baseline", ("placement=post",))]


def test_layers_that_override_every_block_leave_a_factor_without_effect(tmp_path: Path) -> None:
    path = grid(tmp_path, "  norm: {path: model.norm, levels: [layer, rms]}\n")
    path.write_text(path.read_text().replace("depth: 2", "depth: 2\n  layers: [{range: [0, 2], norm: layer}]"))
    assert [problem.split()[0] for problem in problems(path)] == ["G216"]


def test_a_rule_that_leaves_out_one_name_of_an_arm_is_told(tmp_path: Path) -> None:
    path = grid(tmp_path, NORM + PLACEMENT, "design: full", "exclude: [{norm: none, placement: pre, why: so}]")
    assert warned(path) == [
        "W013 this rule leaves out `norm=none, placement=pre`, which is the same arm as `norm=none, placement=post`, "
        "and that runs"
    ]


def test_rules_that_together_leave_nothing_are_an_error(tmp_path: Path) -> None:
    rules = "exclude: [{norm: rms, why: a}, {placement: post, why: b}]"
    path = grid(tmp_path, "  norm: {path: model.norm, levels: [layer, rms]}\n" + PLACEMENT, rules)
    assert problems(path) == ["G212 14:1 these rules together leave out every arm but the baseline | None"]


def test_a_baseline_that_replaces_what_the_model_says_is_told(tmp_path: Path) -> None:
    path = grid(tmp_path, "  norm: {path: model.norm, levels: [layer, rms]}\n", "baseline: {norm: layer}")
    path.write_text(path.read_text().replace("depth: 2", "depth: 2\n  norm: {kind: layer, eps: 1e-3}"))
    assert warned(path) == ["W014 no level of `norm` is what the file says at `model.norm`, so no arm has that"]


EPS = "  eps: {path: model.norm.eps, levels: [1e-2, 1e-6], when: {model.norm.kind: rms}}\n"
NORMS = "  norm: {path: model.norm, levels: [layer, rms]}\n"


def test_a_factor_that_another_change_brings_in_says_which_level_it_has_then(tmp_path: Path) -> None:
    path = grid(tmp_path, NORMS + EPS, "design: pairs")
    assert problems(path) == [
        "G204 13:3 `eps` is no part of the baseline, so which level is it where another change brings it in? | say it: "
        "`baseline: {eps: LEVEL}`"
    ]
    path = grid(tmp_path, NORMS + EPS, "design: pairs", "baseline: {eps: 1e-6}")
    arms = load(path).grid.arms
    assert [arm.name for arm in arms] == ["baseline", "norm=rms", "norm=rms, eps=0.01"]
    assert [arm.setup.model.norm.eps for arm in arms] == [1e-5, 1e-6, 1e-2]  # type: ignore[attr-defined]


def test_a_fraction_takes_no_condition(tmp_path: Path) -> None:
    path = grid(tmp_path, NORMS + EPS + PLACEMENT, "design: fractional", "baseline: {eps: 1e-6}")
    assert problems(path) == [
        "G211 13:3 a fraction takes no factor with a condition, and `eps` has a `when` | take `design: full`"
    ]


@pytest.mark.parametrize("rule", ["exclude: [{norm: rms, placement: post, why: so}]", ""])
def test_a_fraction_needs_all_of_its_arms(tmp_path: Path, rule: str) -> None:
    factors = (NORMS if rule else NORM) + PLACEMENT + RESIDUAL
    path = write(tmp_path, (PLACEMENT + RESIDUAL, factors), ("seeds: 6", f"design: fractional\n{rule}\nseeds: 6"))
    (told,) = problems(path)
    assert "the fraction has 8 arms, and 6 are left, so its factors are no longer balanced" in told


def test_conditions_in_a_circle_are_an_error(tmp_path: Path) -> None:
    factors = (
        "  norm: {path: model.norm, levels: [layer, rms], when: {model.placement: pre}}\n"
        "  placement: {path: model.placement, levels: [pre, post], when: {model.norm: layer}}\n"
    )
    assert problems(grid(tmp_path, factors, "design: full")) == [
        "G219 12:50 the conditions of `norm` and `placement` depend on each other | make the levels of one of them "
        "bundles that set both"
    ]


def test_so_many_factors_that_no_fraction_is_known_are_refused_with_the_designs_that_there_are(tmp_path: Path) -> None:
    factors = "".join(
        f"  f{index}: {{levels: {{a: {{}}, b: {{training.clip: {index}.5}}}}, when: {{training.batch: {index + 1}}}}}\n"
        for index in range(127)
    )
    with pytest.raises(RefusedError, match=r"smaller designs: `one_at_a_time` 768, `pairs` [\d,]+"):
        load(grid(tmp_path, factors, "design: full"))


@pytest.mark.parametrize(("factors", "resolution"), [(127, 4), (100, 5)])
def test_a_fraction_is_made_where_no_better_one_is_known(factors: int, resolution: int) -> None:
    level, other = Level("a", {}, ()), Level("b", {}, ())
    axes = [Axis(f"f{index}", (level, other), level) for index in range(factors)]
    assert FractionalDesign(axes, resolution).size >= 2 * factors


def test_a_prediction_finds_an_arm_by_any_of_its_names(tmp_path: Path) -> None:
    path = grid(
        tmp_path, NORM + PLACEMENT, "design: pairs", "expect: [{arm: {norm: none, placement: post}, effect: worse}]"
    )
    (found,) = load(path).grid.expected
    assert found.name == "norm=none, placement=post"
    assert found.arm is not None and found.arm.name == "norm=none"
    assert found.arm.aliases == (found.name,)


def test_matching_does_not_adjust_the_task(tmp_path: Path) -> None:
    path = grid(tmp_path, NORMS, "match: {train_flops: {to: baseline, adjust: task.context}}")
    assert problems(path) == [
        "G214 13:45 `task.context` is part of the task, and all arms are judged on the same | adjust an option of "
        "`model`, or `budget.steps`"
    ]
