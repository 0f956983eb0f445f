"""Conditions: a factor is part of the arms where its `when` holds, and of no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ablate.experiment import load
from ablate.experiment.conditions import Condition
from ablate.registry import Registry
from tests.ablate.experiment.maker import levels, problems, told, write

PLACEMENT = "  placement: {path: model.placement, levels: [pre, post]}\n"
RESIDUAL = "  residual: {switch: model.residual}\n"
NORMS = ", ".join(Registry.installed().kinds("norm"))


def conditional(folder: Path, when: str, *more: tuple[str, str]) -> Path:
    """The factor placement with a condition, beside the factor residual."""
    return write(folder, ("levels: [pre, post]", f"levels: [pre, post], when: {when}"), *more)


def grid(folder: Path, factors: str, *lines: str) -> Path:
    return write(folder, (PLACEMENT + RESIDUAL, factors), ("seeds: 6", "\n".join([*lines, "seeds: 6"])))


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ("{}", True),
        ("{model.depth: 2}", True),
        ("{model.depth: 3}", False),
        ("{model.depth: [1, 2]}", True),
        ("{model.depth: [1, 3]}", False),
        ("{model.norm: layer}", True),
        ("{model.norm.kind: layer}", True),
        ("{model.norm: rms}", False),
        ("{model.norm: [rms, layer]}", True),
        ("{model.norm: {kind: layer}}", True),
        ("{model.norm: {kind: layer, eps: 1e-5}}", True),
        ("{model.norm: {kind: layer, eps: 1e-3}}", False),
        ("{model.norm: [rms, {kind: layer, eps: 1e-3}]}", False),
        ("{model.norm.eps: 1e-5}", True),
        ("{training.optimizer.lr: 0.01}", True),
        ("{training.clip: 1}", True),  # an option that takes fractions has 1.0 for 1
        ("{training.clip: null}", False),
        ("{training.stream: null}", True),
        ("{training.schedule.warmup: 0.1}", False),  # the baseline's schedule has no warmup
        ("{model.layers: []}", True),
        ("{model.mixer.bias: true}", True),
        ("{model.mixer.bias: false}", False),
        ("{model.depth: 2, model.norm: rms}", False),
        ("{task.kind: text, model.norm: layer}", True),
    ],
)
def test_a_condition_holds_by_value_kind_or_component(tmp_path: Path, when: str, *, holds: bool) -> None:
    found = levels(conditional(tmp_path, when))
    assert found == ({
        "baseline": {"placement": "pre", "residual": "on"},
        "placement=post": {"placement": "post", "residual": "on"},
        "residual=off": {"placement": "pre", "residual": "off"},
    } if holds else {"baseline": {"residual": "on"}, "residual=off": {"residual": "off"}})  # fmt: skip


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("{model.norm: rsm}", "S102 12:78 no norm is called `rsm` | did you mean `rms`?"),
        ("{model.norm.kind: [rms, x]}", f"S102 12:89 no norm is called `x` | there is: {NORMS}"),
        ("{model.norm: 3}", "S103 12:78 a norm is a name or a mapping with `kind` | None"),
        ("{model.norm: []}", "S103 12:78 `when` names no value | write the value, or a list of values"),
        ("{model.depth: 2.0}", "S103 12:79 `depth` must be a whole number, not 2.0 | write `2`"),
        ("{model.depth: true}", "S103 12:79 `depth` must be a whole number, not true | None"),
        ("{model.depth: [2, two]}", "S103 12:83 `depth` must be a whole number, not the text `two` | None"),
        ("{training.clip: .inf}", "S103 12:81 `clip` must be a finite number, not inf | None"),
        ("{model.norm: .nan}", "S103 12:78 a norm is a name or a mapping with `kind` | None"),
        (
            "{placement: post}",
            "G201 12:66 nothing reads `placement`: a path starts with model, task or training, or is `budget.steps` | "
            "did you mean `model.placement`?",
        ),
        ("{model.nrom: rms}", "G201 12:66 nothing reads `model.nrom` | did you mean `model.norm`?"),
        (
            '{"": 1}',
            "G201 12:66 nothing reads ``: a path starts with model, task or training, or is `budget.steps` | None",
        ),
    ],
)
def test_a_condition_that_can_never_hold_is_an_error(tmp_path: Path, when: str, expected: str) -> None:
    assert problems(conditional(tmp_path, when)) == [expected]


def test_an_option_of_another_component_than_the_baselines_needs_a_condition(tmp_path: Path) -> None:
    factors = "  position: {path: model.position, levels: [learned, rotary]}\n"
    base = "path: model.position.base, levels: [1e4, 2e4]"
    assert problems(grid(tmp_path, f"{factors}  base: {{{base}}}\n")) == [
        "G201 13:16 nothing reads `model.position.base` where the position is `learned`, as in the baseline | "
        "say when it applies: `when: {model.position.kind: KIND}`"
    ]
    path = grid(tmp_path, f"{factors}  base: {{{base}, when: {{model.position: rotary}}}}\n", "design: full")
    assert levels(path) == {
        "baseline": {"position": "learned"},
        "position=rotary, base=10000.0": {"position": "rotary", "base": 1e4},
        "position=rotary, base=20000.0": {"position": "rotary", "base": 2e4},
    }


@pytest.mark.parametrize("last", [False, True])
def test_conditions_may_look_at_conditional_factors_in_any_order(tmp_path: Path, *, last: bool) -> None:
    lines = [
        "  norm: {path: model.norm, levels: [none, rms], when: {model.depth: 1}}\n",
        "  eps: {path: model.norm.eps, levels: [1e-3, 1e-2], when: {model.norm: rms}}\n",
        "  depth: {path: model.depth, levels: [2, 1]}\n",
    ]
    path = grid(tmp_path, "".join(lines if last else reversed(lines)), "design: full")
    found: list[Any] = [sorted(arm.items(), key=str) for arm in levels(path).values()]
    expected: list[Any] = [
        [("depth", 2)],
        [("depth", 1), ("norm", "none")],
        [("depth", 1), ("eps", 1e-3), ("norm", "rms")],
        [("depth", 1), ("eps", 1e-2), ("norm", "rms")],
    ]
    assert sorted(found) == sorted(expected)


def test_the_first_level_is_the_baselines_where_the_baseline_has_no_such_factor(tmp_path: Path) -> None:
    path = conditional(tmp_path, "{model.residual: none}", ("[pre, post]", "[post, pre]"))
    assert levels(path)["residual=off"] == {"placement": "post", "residual": "off"}


def test_factors_that_exclude_each_other_may_set_one_option(tmp_path: Path) -> None:
    factors = (
        "  norm: {path: model.norm, levels: [layer, rms, none]}\n"
        "  of_layer: {path: model.norm.eps, levels: [1e-5, 1e-3], when: {model.norm.kind: layer}}\n"
        "  of_rms: {path: model.norm.eps, levels: [1e-6, 1e-2], when: {model.norm: rms}}\n"
    )
    path = grid(tmp_path, factors, "design: full")
    assert levels(path) == {
        "baseline": {"norm": "layer", "of_layer": 1e-5},
        "norm=layer, of_layer=0.001": {"norm": "layer", "of_layer": 1e-3},
        "norm=rms, of_rms=1e-06": {"norm": "rms", "of_rms": 1e-6},
        "norm=rms, of_rms=0.01": {"norm": "rms", "of_rms": 1e-2},
        "norm=none": {"norm": "none"},
    }
    eps = [getattr(arm.setup.model.norm, "eps", None) for arm in load(path).grid.arms]  # type: ignore[attr-defined]
    assert eps == [1e-5, 1e-3, 1e-6, 1e-2, None]
    overlapping = grid(tmp_path, factors.replace("{model.norm.kind: layer}", "{model.norm.kind: [rms, layer]}"))
    assert problems(overlapping) == ["G208 14:3 `of_layer` and `of_rms` both set `model.norm.eps` | None"]


def test_conditions_exclude_each_other_if_no_value_fulfils_both() -> None:
    layer, rms = Condition(("norm",), kinds=frozenset(["layer"])), Condition(("norm",), kinds=frozenset(["rms"]))
    either, value = Condition(("norm",), kinds=layer.kinds | rms.kinds), Condition(("norm",), values=frozenset(["1"]))
    assert layer.excludes(rms) and rms.excludes(layer)
    assert not layer.excludes(either) and not layer.excludes(layer)
    assert not layer.excludes(value)  # all options of a component may be those of its kind
    assert not layer.excludes(Condition(("mixer",), kinds=rms.kinds))


def test_levels_that_are_dead_leave_their_factor_out_and_fall_together(tmp_path: Path) -> None:
    factors = "  norm: {path: model.norm, levels: [layer, none]}\n  eps: {path: model.norm.eps, levels: [1e-5, 1e-3]}\n"
    assert levels(grid(tmp_path, factors, "design: full")) == {
        "baseline": {"norm": "layer", "eps": 1e-5},
        "norm=layer, eps=0.001": {"norm": "layer", "eps": 1e-3},
        "norm=none": {"norm": "none"},
    }


def test_a_baseline_without_the_factor_is_one_arm(tmp_path: Path) -> None:
    found = {arm.name: arm.aliases for arm in load(conditional(
        tmp_path, "{model.residual: none}", ("seeds: 6", "design: full\nseeds: 6")
    )).grid.arms}  # fmt: skip
    assert found == {"baseline": (), "placement=pre, residual=off": (), "placement=post, residual=off": ()}


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ("{model.residual: none}", "wherever it is part of one, its level is pre"),
        ("{model.norm: rms}", "it is part of none"),
    ],
)
def test_a_factor_that_no_arm_varies_is_said(tmp_path: Path, when: str, why: str) -> None:
    warnings = load(conditional(tmp_path, when)).grid.warnings
    help = "its `when`, or a part that it needs, must hold in the baseline; or take `full` or `pairs`"
    assert [told(warning) for warning in warnings] == [f"W012 12:3 no arm varies `placement`: {why} | {help}"]


def test_a_list_varies_what_it_likes(tmp_path: Path) -> None:
    path = write(tmp_path, ("seeds: 6", "design: list\narms: [{residual: off}]\nseeds: 6"))
    assert load(path).grid.warnings == ()
