"""Rules: what a grid leaves out, and what is expected of its arms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ablate.experiment import load
from ablate.experiment.arms import Grid
from tests.ablate.experiment.maker import levels, names, problems, told, write


def ruled(folder: Path, rules: str, *more: tuple[str, str], design: str = "full") -> Path:
    return write(folder, ("seeds: 6", f"design: {design}\nexclude: {rules}\nseeds: 6"), *more)


def grid(path: Path) -> Grid:
    return load(path).grid


def test_a_rule_leaves_out_every_cell_that_has_all_of_its_levels(tmp_path: Path) -> None:
    path = ruled(tmp_path, "[{placement: post, why: known}]", ("[pre, post]", "[pre, post, sandwich]"))
    assert names(path) == [
        "baseline",
        "placement=pre, residual=off",
        "placement=sandwich, residual=on",
        "placement=sandwich, residual=off",
    ]
    found = grid(path).excluded
    assert [(each.name, each.why, each.rule) for each in found] == [
        ("placement=post, residual=on", "known", 0),
        ("placement=post, residual=off", "known", 0),
    ]
    kinds = [each.trained and (each.trained.model.placement.kind, each.trained.model.residual.kind) for each in found]  # type: ignore[attr-defined]
    assert kinds == [("post", "add"), ("post", "none")]
    both = ruled(tmp_path, "[{placement: post, residual: off, why: known}]")
    assert [each.name for each in grid(both).excluded] == ["placement=post, residual=off"]


@pytest.mark.parametrize("word", ["off", "OFF", "'off'", "false", "False"])
def test_the_levels_of_a_switch_have_several_words(tmp_path: Path, word: str) -> None:
    assert [each.name for each in grid(ruled(tmp_path, f"[{{residual: {word}, why: x}}]")).excluded] == [
        "placement=pre, residual=off",
        "placement=post, residual=off",
    ]


@pytest.mark.parametrize("level", ["{kind: rms, eps: 1e-3}", "{eps: 0.001, kind: rms}", "rms(eps=0.001)"])
def test_a_level_that_is_a_mapping_is_meant_by_its_value_or_its_label(tmp_path: Path, level: str) -> None:
    path = ruled(tmp_path, f"[{{placement: {level}, why: x}}]",
                 ("path: model.placement, levels: [pre, post]",
                  "path: model.norm, levels: [layer, rms, {kind: rms, eps: 1e-3}]"))  # fmt: skip
    assert [each.chosen["placement"].label for each in grid(path).excluded] == ["rms(eps=0.001)"] * 2


def test_a_level_is_meant_by_its_type_too(tmp_path: Path) -> None:
    change = ("path: model.placement, levels: [pre, post]", "path: training.clip, levels: [1.0, null]")
    assert [each.name for each in grid(ruled(tmp_path, "[{placement: null, why: x}]", change)).excluded] == [
        "placement=null, residual=on",
        "placement=null, residual=off",
    ]
    assert problems(ruled(tmp_path, '[{placement: "null", why: x}]', change)) == [
        'G203 15:23 `placement` has no level `"null"` | did you mean `null`?'
    ]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{placement: post}", ["S104 15:11 `why` is missing in `exclude[0]` | say the reason; the report gives it"]),
        ("{placement: post, why: ' '}", ["S103 15:34 `why` must be text that says the reason | None"]),
        ("{placement: post, why: 3}", ["S103 15:34 `why` must be text that says the reason | None"]),
        ("{why: so}", ["S103 15:11 `exclude[0]` names no level | write `{FACTOR: LEVEL, why: …}`"]),
        ("{}", [
            "S104 15:11 `why` is missing in `exclude[0]` | say the reason; the report gives it",
            "S103 15:11 `exclude[0]` names no level | write `{FACTOR: LEVEL, why: …}`",
        ]),
        ("{placement: pots, why: so}", ["G203 15:23 `placement` has no level `pots` | did you mean `post`?"]),
        ("{placement: .nan, why: so}", ["G203 15:23 `placement` has no level `nan` | its levels are pre, post"]),
        ("{residual: yes, why: so}", ["G203 15:22 `residual` has no level `yes` | did you mean `on`?"]),
        ("{residual: 0, why: so}", ["G203 15:22 `residual` has no level `0` | did you mean `off`?"]),
        ("{plcement: post, why: so}", ["G205 15:12 no factor is called `plcement` | did you mean `placement`?"]),
        ("{x: 1, y: 2, why: so}", [
            "G205 15:12 no factor is called `x` | there is: placement, residual",
            "G205 15:18 no factor is called `y` | there is: placement, residual",
        ]),
        ("{placement: pre, residual: on, why: so}", [
            "G212 15:11 this rule leaves out the baseline, which is placement=pre, residual=on | None"
        ]),
        ("rms", ["S103 15:11 `exclude[0]` must be a mapping, not the text `rms` | None"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_rule(tmp_path: Path, rule: str, expected: list[str]) -> None:
    assert problems(ruled(tmp_path, f"[{rule}]")) == expected


def test_a_rule_that_matches_nothing_is_said(tmp_path: Path) -> None:
    path = ruled(tmp_path, "[{placement: post, residual: off, why: so}]", design="one_at_a_time")
    assert [told(warning) for warning in grid(path).warnings] == [
        "W004 15:11 this rule leaves nothing out | nothing has all of these levels; remove the rule, or mend it"
    ]
    assert len(names(path)) == 3


def test_a_rule_that_another_goes_before_does_match_something(tmp_path: Path) -> None:
    path = ruled(tmp_path, "[{placement: post, why: one}, {placement: post, residual: off, why: two}]")
    assert grid(path).warnings == ()
    assert [each.why for each in grid(path).excluded] == ["one", "one"]


@pytest.mark.parametrize("first", ["", "{placement: post, why: so}, "])
def test_a_rule_that_leaves_nothing_over_is_refused(tmp_path: Path, first: str) -> None:
    bundles = "path: model.placement, levels: [pre, post]", "path: model.depth, levels: [2]"
    rules = f"[{first.replace('post', '2').replace('so}', 'so, residual: off}')}{{residual: off, why: so}}]"
    path = ruled(tmp_path, rules, bundles, design="one_at_a_time")
    expected = "this rule leaves out every arm but the baseline | None"
    assert [each.partition(" ")[2].partition(" ")[2] for each in problems(path)] == [expected] * (2 if first else 1)


def test_a_rule_speaks_of_factors_that_are_part_of_a_cell(tmp_path: Path) -> None:
    path = ruled(tmp_path, "[{placement: post, why: so}]",
                 ("levels: [pre, post]", "levels: [pre, post], when: {model.residual: none}"))  # fmt: skip
    assert levels(path) == {
        "baseline": {"residual": "on"},
        "placement=pre, residual=off": {"placement": "pre", "residual": "off"},
    }


def test_an_arm_that_is_no_valid_setup_may_be_excluded(tmp_path: Path) -> None:
    change = ("path: model.placement, levels: [pre, post]", "path: model.depth, levels: [2, 1]")
    layers = ("depth: 2", "depth: 2\n  layers: [{range: [1, 2], norm: rms}]")
    assert [each.split(" ")[0] for each in problems(write(tmp_path, change, layers))] == ["S103"]
    # Levels must be valid beside the baseline, so what is refused here is the combination.
    both = "levels: {wide: {}, narrow: {model.width: 8}}"
    heads = ("switch: model.residual", "path: model.mixer.heads, levels: [2, 4]")
    found = grid(ruled(tmp_path, "[{placement: narrow, residual: 4, why: so}]",
                       ("path: model.placement, levels: [pre, post]", both), heads)).excluded  # fmt: skip
    assert [each.name for each in found] == ["placement=narrow, residual=4"]


ITS_ARMS = " | its arms are placement=post; residual=off"


def expecting(folder: Path, *entries: str, design: str = "full") -> Path:
    return write(folder, ("seeds: 6", f"design: {design}\nexpect: [{', '.join(entries)}]\nseeds: 6"))


def test_a_prediction_finds_its_arm(tmp_path: Path) -> None:
    path = expecting(
        tmp_path,
        "{arm: {placement: post}, effect: worse, source: Xiong}",
        "{arm: {residual: off, placement: post}, effect: diverged}",
    )
    found: list[Any] = [
        (each.name, each.arm and each.arm.name, each.level, each.effect, each.source) for each in grid(path).expected
    ]
    assert found == [
        ("placement=post", None, ("placement", "post"), "worse", "Xiong"),  # in a full design a main effect
        ("residual=off, placement=post", "placement=post, residual=off", None, "diverged", ""),
    ]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{arm: {placement: post, residual: off}, effect: worse}",
         "G213 15:16 `expect[0]` speaks of an arm that the design does not have" + ITS_ARMS),
        ("{arm: {placement: pre}, effect: worse}",
         "G213 15:16 `expect[0]` speaks of the baseline, which arms are compared with" + ITS_ARMS),
        ("{arm: {}, effect: worse}",
         "G213 15:16 `expect[0]` speaks of the baseline, which arms are compared with" + ITS_ARMS),
        ("{arm: {placement: [post]}, effect: worse}",
         "G203 15:28 `placement` has no level `[post]` | did you mean `post`?"),
        ("{arm: {place: post}, effect: worse}",
         "G205 15:17 no factor is called `place` | did you mean `placement`?"),
        ("{arm: baseline, effect: worse}", "S103 15:16 `arm` must be a mapping, not the text `baseline` | None"),
    ],
)  # fmt: skip
def test_a_prediction_of_no_arm_is_refused(tmp_path: Path, entry: str, expected: str) -> None:
    assert problems(expecting(tmp_path, entry, design="one_at_a_time")) == [expected]


def test_a_prediction_of_an_excluded_arm_is_refused(tmp_path: Path) -> None:
    path = expecting(tmp_path, "{arm: {placement: post}, effect: worse}", design="one_at_a_time")
    path.write_text(path.read_text().replace("seeds: 6", "exclude: [{placement: post, why: so}]\nseeds: 6"))
    assert problems(path) == [
        "G213 15:16 `expect[0]` speaks of an arm that the design does not have | its arms are residual=off"
    ]
