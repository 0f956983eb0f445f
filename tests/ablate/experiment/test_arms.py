"""Factors and designs become arms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ablate.experiment import load
from ablate.experiment.levels import label, shown
from ablate.registry import Registry
from tests.ablate.experiment.maker import problems, write

OPTIMIZERS = Registry.installed().kinds("optimizer")


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
        ([1, None], "[1, null]"),
        ({"kind": "x", "a": {"kind": "y"}}, "x(a=y)"),
        ({"a": 1}, "{a=1}"),
    ],
)
def test_labels_keep_scalars_and_shorten_the_rest(value: Any, expected: Any) -> None:
    assert label(value) == expected


def test_labels_are_shown_in_the_words_of_yaml() -> None:
    assert [shown(value) for value in (None, True, False, 1, 1.0, "x")] == ["null", "true", "false", "1", "1.0", "x"]


def test_labels_with_commas_are_in_quotes_so_that_names_of_arms_stay_apart() -> None:
    values = ["a, b=c", "a=b", "x(a=1, b=2)", "[1, 2]", "x(a), b", "on", "1", "", "a\x1b", 'say "a=b"']
    assert [shown(value) for value in values] == [
        '"a, b=c"', '"a=b"', "x(a=1, b=2)", "[1, 2]", '"x(a), b"', "on", '"1"', '""', '"a\\x1b"', r'"say \"a=b\""',
    ]  # fmt: skip


def one(folder: Path, factor: str, *more: tuple[str, str]) -> Path:
    """An experiment of one factor called it."""
    return write(
        folder,
        ("  placement: {path: model.placement, levels: [pre, post]}\n", f"  it: {{{factor}}}\n"),
        ("  residual: {switch: model.residual}\n", ""),
        *more,
    )


def test_the_baselines_level_holds_beside_another_component(tmp_path: Path) -> None:
    factors = "path: model.norm, levels: [layer, rms, none]}\n  eps: {path: model.norm.eps, levels: [1e-5, 1e-3]"
    found = {
        arm.name: getattr(arm.setup.model.norm, "eps", None)  # type: ignore[attr-defined]
        for arm in load(one(tmp_path, factors, ("seeds: 6", "design: full\nseeds: 6"))).grid.arms
    }
    assert found == {  # 1e-5, although the default of rms is 1e-6
        "baseline": 1e-5, "it=layer, eps=0.001": 1e-3, "it=rms, eps=1e-05": 1e-5, "it=rms, eps=0.001": 1e-3,
        "it=none": None,
    }  # fmt: skip


def test_the_baselines_level_gives_way_to_what_another_says(tmp_path: Path) -> None:
    factors = (
        "path: model.norm, levels: [layer, {kind: layer, eps: 1e-2}]}\n"
        "  more: {levels: {plain: {model.norm.eps: 1e-5}, small: {model.depth: 1}}"
    )
    arms = load(one(tmp_path, factors)).grid.arms
    assert [arm.setup.model.norm.eps for arm in arms] == [1e-5, 1e-2, 1e-5]  # type: ignore[attr-defined]


def test_the_baselines_level_is_left_out_where_nothing_reads_it(tmp_path: Path) -> None:
    factors = "path: model.position, levels: [rotary, learned]}\n  base: {path: model.position.base, levels: [1e4, 2e4]"
    path = one(tmp_path, factors, ("depth: 2", "depth: 2\n  position: rotary"))
    assert list(arms(path)) == ["baseline", "it=learned", "base=20000.0"]


def test_a_path_leads_into_what_a_whole_model_has_by_default(tmp_path: Path) -> None:
    model = "kind: decoder, depth: 2, mixer: {kind: attention, heads: 2}"
    factors = (
        f"path: model, levels: [{{{model}, width: 16}}, {{{model}, width: 8}}]}}\n"
        "  eps: {path: model.norm.eps, levels: [1e-5, 1e-3]"
    )
    grid = load(one(tmp_path, factors, ("seeds: 6", "design: full\nseeds: 6"))).grid
    found = [(arm.setup.model.width, arm.setup.model.norm.eps) for arm in grid.arms]  # type: ignore[attr-defined]
    assert found == [(16, 1e-5), (16, 1e-3), (8, 1e-5), (8, 1e-3)]


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        ("path: training.clip, levels: [1.0, .nan]", "S103 12:43 `clip` must be a finite number, not nan | None"),
        ("path: training.clip, levels: [1.0, [.inf]]", "S103 12:43 `clip` must be a number, not a list | None"),
        ("path: training.clip, levels: [1.0, {a: -.inf}]", "S103 12:43 `clip` must be a number, not a mapping | None"),
        ("path: model.kind, levels: [decoder, decodr]",
         "S102 12:44 no model is called `decodr` | did you mean `decoder`?"),
        ("path: model.norm.kind, levels: [layer, [rms]]",
         "S103 12:47 a norm is a name or a mapping with `kind` | None"),
        ("path: model.depth, levels: [2, 4097]", "S103 12:39 `depth` must be at most 4,096, not 4097 | None"),
        ("path: model..norm, levels: [layer]",
         "G201 12:14 nothing reads `model..norm` | there is: kind, width, depth, norm, placement, residual, mixer, "
         "feed_forward, position, dropout, parallel, scale_embedding, layers, output"),
        ('path: "", levels: [layer]',
         "G201 12:14 nothing reads ``: a path starts with model, task or training, or is `budget.steps` | None"),
        ("path: model.layers.0.norm, levels: [layer]", "G201 12:14 nothing reads `model.layers.0.norm` | None"),
        ("path: model.placement, levels: [psot, sandwich]",
         "S102 12:40 no placement is called `psot` | did you mean `post`?"),
        ("levels: {a: {}, b: {model.norm: {kind: rms, eps: 1e-3}, model.norm.eps: 1e-4}}",
         "G208 12:64 the level b of `it` sets `model.norm.eps` twice | None"),
        ("levels: {a: {}, b: {training: {}}}",
         "S104 12:28 `optimizer` is missing in `training` | "
         f"write `optimizer: {{kind: adamw, …}}`; there is: {', '.join(OPTIMIZERS)}"),
    ],
)  # fmt: skip
def test_levels_that_cannot_be(tmp_path: Path, factor: str, expected: str) -> None:
    assert problems(one(tmp_path, factor)) == [expected]


@pytest.mark.parametrize("value", ["3", "[1]", "null", "true"])
def test_a_path_into_what_is_no_component_is_said(tmp_path: Path, value: str) -> None:
    path = one(tmp_path, f"levels: {{a: {{}}, b: {{model.norm: {value}, model.norm.eps: 1e-3}}}}")
    assert "S103 12:40 a norm is a name or a mapping with `kind` | None" in problems(path)


@pytest.mark.parametrize("name", ["", " ", "a ", "a=b", "a,b", "a\\nb", "\\u202e", "x" * 101])
def test_names_of_factors_that_could_not_be_told_apart(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, ("  placement: {", f'  "{name}": {{'))
    [problem] = problems(path)
    assert problem.startswith("S103 12:3 a factor cannot be called `") and problem.isprintable()


@pytest.mark.parametrize("stream", ["a", "null", "on", ""])
def test_an_arm_may_have_random_streams_of_its_own(tmp_path: Path, stream: str) -> None:
    grid = load(one(tmp_path, f'path: training.stream, levels: [null, "{stream}"]')).grid
    assert [arm.setup.training.stream for arm in grid.arms] == [None, stream]
