"""Factors and designs become arms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ablate.experiment import load
from ablate.experiment.levels import label, shown
from tests.ablate.experiment.maker import write


def arms(path: Path) -> dict[str, dict[str, Any]]:
    return {arm.name: arm.levels for arm in load(path).grid.arms}


def test_one_at_a_time_is_the_baseline_and_each_other_level_alone(tmp_path: Path) -> None:
    assert arms(write(tmp_path, ("[pre, post]", "[pre, post, sandwich]"))) == {
        "baseline": {"placement": "pre", "residual": "on"},
        "placement=post": {"placement": "post", "residual": "on"},
        "placement=sandwich": {"placement": "sandwich", "residual": "on"},
        "residual=off": {"placement": "pre", "residual": "off"},
    }


def test_full_is_every_combination_with_the_baseline_first(tmp_path: Path) -> None:
    path = write(tmp_path, ("seeds: 6", "design: full"), ("[pre, post]", "[post, pre]"))
    assert list(arms(path)) == [
        "baseline",
        "placement=post, residual=on",
        "placement=post, residual=off",
        "placement=pre, residual=off",
    ]


def test_an_arm_is_the_baseline_with_its_levels(tmp_path: Path) -> None:
    by_name = {arm.name: arm.setup for arm in load(write(tmp_path)).grid.arms}
    base, off = by_name["baseline"], by_name["residual=off"]
    assert off.model.residual.kind == "none"  # type: ignore[attr-defined]
    assert off.model.model_copy(update={"residual": base.model.residual}) == base.model  # type: ignore[attr-defined]
    assert (off.task, off.training) == (base.task, base.training)


def test_a_baseline_may_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, ("seeds: 6", "baseline: {placement: post, residual: off}"))
    assert arms(path) == {
        "baseline": {"placement": "post", "residual": "off"},
        "placement=pre": {"placement": "pre", "residual": "off"},
        "residual=on": {"placement": "post", "residual": "on"},
    }


def test_bundles_set_several_paths(tmp_path: Path) -> None:
    bundles = (
        "levels: {pre: {model.placement: pre}, bare: {model.placement: none, model.residual: none, training.batch: 2}}"
    )
    path = write(
        tmp_path,
        ("path: model.placement, levels: [pre, post]", bundles),
        ("  residual: {switch: model.residual}\n", ""),
    )
    by_name = {arm.name: arm.setup for arm in load(path).grid.arms}
    assert list(by_name) == ["baseline", "placement=bare"]
    bare = by_name["placement=bare"]
    assert (bare.model.placement.kind, bare.model.residual.kind, bare.training.batch) == ("none", "none", 2)  # type: ignore[attr-defined]


def test_a_path_may_go_into_a_component_that_is_at_its_default(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        ("switch: model.residual", "switch: model.mixer.scale"),
        ("  mixer: {kind: attention, heads: 2}\n", ""),
    )
    off = {arm.name: arm.setup for arm in load(path).grid.arms}["residual=off"]
    assert off.model.mixer.scale.kind == "none"  # type: ignore[attr-defined]


def test_a_level_may_be_null_or_a_mapping_or_of_another_type(tmp_path: Path) -> None:
    path = write(tmp_path, ("path: model.placement, levels: [pre, post]", "path: training.clip, levels: [1.0, null]"))
    assert [levels["placement"] for levels in arms(path).values()] == [1.0, None, 1.0]
    path = write(
        tmp_path,
        (
            "path: model.placement, levels: [pre, post]",
            "path: model.feed_forward, levels: [mlp, {kind: mlp, ratio: 1}]",
        ),
    )
    assert list(arms(path)) == ["baseline", "placement=mlp(ratio=1)", "residual=off"]


def test_width_may_be_a_level_although_ratio_has_a_default(tmp_path: Path) -> None:
    path = write(
        tmp_path, ("path: model.placement, levels: [pre, post]", "path: model.feed_forward.width, levels: [null, 8]")
    )
    assert list(arms(path)) == ["baseline", "placement=8", "residual=off"]


def test_equal_arms_fall_together(tmp_path: Path) -> None:
    bundles = "levels: {a: {model.placement: pre}, b: {model.placement: post, model.norm: rms}}"
    path = write(
        tmp_path,
        ("seeds: 6", "design: full"),
        ("path: model.placement, levels: [pre, post]", bundles),
        ("switch: model.residual", "path: model.depth, levels: [2, 1]"),
    )
    assert len(arms(path)) == 4


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (1, 1),
        (True, True),
        ("a", "a"),
        ([1, None], "[1, None]"),
        ({"kind": "x", "a": {"kind": "y"}}, "x(a=y)"),
        ({"a": 1}, "{a=1}"),
    ],
)
def test_labels_keep_scalars_and_shorten_the_rest(value: Any, expected: Any) -> None:
    assert label(value) == expected


def test_labels_are_shown_in_the_words_of_yaml() -> None:
    assert [shown(value) for value in (None, True, False, 1, 1.0, "x")] == ["null", "true", "false", "1", "1.0", "x"]
