"""Two levels that are the same: what is spelled in one of them and is so anyway."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ablate.experiment.maker import problems, write

DEFAULTS = "is what it has anyway: options at their default change nothing"


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ("path: model.feed_forward, levels: [mlp, {kind: mlp, activation: gelu}]",
         f"48 two levels of `it` are the same: mlp and mlp(activation=gelu) | `activation: gelu` {DEFAULTS}"),
        ("path: model.feed_forward, levels: [{kind: mlp, activation: gelu}, mlp]",
         f"74 two levels of `it` are the same: mlp(activation=gelu) and mlp | `activation: gelu` {DEFAULTS}"),
        ("path: model.feed_forward, levels: [{kind: mlp, ratio: 4.0}, {kind: mlp, activation: gelu}]",
         "68 two levels of `it` are the same: mlp(ratio=4.0) and mlp(activation=gelu) | "
         f"`ratio: 4.0, activation: gelu` {DEFAULTS}"),
        ("path: model.mixer, levels: [{kind: attention, heads: 2}, {heads: 2, kind: attention, scale: inverse_sqrt}]",
         "65 two levels of `it` are the same: attention(heads=2) and attention(heads=2, scale=inverse_sqrt) | "
         f"`scale: inverse_sqrt` {DEFAULTS}"),
        ("levels: {a: {model.norm: rms}, b: {model.norm: rms, training.clip: 1.0}}",
         "42 two levels of `it` are the same: a and b | `training.clip: 1.0` is what the baseline has anyway"),
        ("levels: {a: {}, b: {model.norm: layer}}",
         "27 two levels of `it` are the same: a and b | `model.norm: layer` is what the baseline has anyway"),
        ("levels: {a: {model.norm: rms}, b: {model.norm: rms, model.norm.eps: 1e-6}}",
         "42 two levels of `it` are the same: a and b | "
         "`model.norm.eps: 1e-06` changes nothing there: it is so anyway, or nothing reads it"),
        ("levels: {a: {model.norm: none}, b: {model.norm: none, model.norm.eps: 3}}",
         "43 two levels of `it` are the same: a and b | "
         "`model.norm.eps: 3` changes nothing there: it is so anyway, or nothing reads it"),
        ("path: training.clip, levels: [1, 1.0]", "41 two levels of `it` are the same: 1 and 1.0 | None"),
    ],
)  # fmt: skip
def test_what_has_no_effect_is_named(tmp_path: Path, levels: str, expected: str) -> None:
    path = write(tmp_path, ("placement: {path: model.placement, levels: [pre, post]}", f"it: {{{levels}}}"))
    assert problems(path) == [f"G202 12:{expected}"]
