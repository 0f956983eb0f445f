"""Whether `match` and `tune` can be used beside the factors."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate.errors import RefusedError
from ablate.experiment import load
from tests.ablate.experiment.maker import problems, told, write

LR = "training.optimizer.lr"
RANGE = f"{{{LR}: {{log: [1e-4, 1e-2], n: 3}}}}"


def with_line(folder: Path, line: str, *more: tuple[str, str]) -> Path:
    return write(folder, ("seeds: 6", f"{line}\nseeds: 6"), *more)


@pytest.mark.parametrize(
    "match",
    [
        "{params: {adjust: model.feed_forward.ratio}}",
        "{params: {to: baseline, adjust: model.width, within: 0, multiple_of: 8}}",
        "{train_flops: {adjust: budget.steps, within: 2%}}",
        "{params: {adjust: model.width}, train_flops: {adjust: budget.steps}}",
    ],
)
def test_what_can_be_matched(tmp_path: Path, match: str) -> None:
    assert load(with_line(tmp_path, f"match: {match}")).grid.warnings == ()


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("{}", "S103 14:8 `match` takes `params`, `train_flops` or both | None"),
        ("{params: {adjust: budget.steps}}",
         "G214 14:26 `budget.steps` changes no parameter | adjust a width: `model.feed_forward.ratio`, say"),
        ("{params: {adjust: model.norm}}",
         "G214 14:26 `model.norm` is no number in the baseline, so it cannot be solved for | "
         "adjust an option that is a number, as a width or a ratio"),
        ("{params: {adjust: model.mixer.causal}}",
         "G214 14:26 `model.mixer.causal` is no number in the baseline, so it cannot be solved for | "
         "adjust an option that is a number, as a width or a ratio"),
        ("{params: {adjust: model.feed_forward.width}}",
         "G214 14:26 `model.feed_forward.width` is no number in the baseline, so it cannot be solved for | "
         "adjust an option that is a number, as a width or a ratio"),
        ("{params: {adjust: model.widht}}",
         "G201 14:26 nothing reads `model.widht` | did you mean `model.width`?"),
        ('{params: {adjust: ""}}',
         "G201 14:26 nothing reads ``: a path starts with model, task or training, or is `budget.steps` | None"),
        ("{params: {adjust: placement}}",
         "G201 14:26 nothing reads `placement`: a path starts with model, task or training, or is `budget.steps` | "
         "did you mean `model.placement`?"),
        ("{params: {adjust: model.ratio}}",
         "G201 14:26 nothing reads `model.ratio` | did you mean `model.feed_forward.ratio`?"),
        ("{params: {adjust: model.width}, train_flops: {adjust: model.width}}",
         "G214 14:62 `model.width` cannot be solved for parameters and for training FLOPs at once | "
         "match training FLOPs by `budget.steps`"),
        ("{params: {adjust: model.width, within: 100%}}",
         "S103 14:47 `within` must be less than 1, not 1.0 | None"),
        ("{params: {adjust: model.width, within: 100}}",
         "S103 14:47 `within` must be less than 1, not 100 | None"),
        ("{params: {adjust: model.width, within: 1}}",
         "S103 14:47 `within` must be less than 1, not 1 | write `1%`"),
        ("{params: {adjust: model.width, within: 2.5}}",
         "S103 14:47 `within` must be less than 1, not 2.5 | write `2.5%`"),
        ("{params: {adjust: model.width, within: lots}}",
         "S103 14:47 `lots` is no share: write it as `1%` or `0.01` | None"),
        ("{params: {adjust: model.width, multiple_of: 0}}",
         "S103 14:52 `multiple_of` must be greater than 0, not 0 | None"),
    ],
)  # fmt: skip
def test_what_cannot_be_matched(tmp_path: Path, match: str, expected: str) -> None:
    assert problems(with_line(tmp_path, f"match: {match}")) == [expected]


@pytest.mark.parametrize(
    "levels",
    [
        "path: model.feed_forward.ratio, levels: [4.0, 2.0]",
        "path: model.feed_forward, levels: [mlp, {kind: mlp, ratio: 2}]",
        "levels: {a: {}, b: {model.feed_forward: {kind: mlp, ratio: 2}}}",
    ],
)
def test_what_a_factor_sets_is_neither_matched_nor_tuned(tmp_path: Path, levels: str) -> None:
    factor = ("path: model.placement, levels: [pre, post]", levels)
    help = "choose another option, or leave this one to one of the two"
    matched = with_line(tmp_path, "match: {params: {adjust: model.feed_forward.ratio}}", factor)
    assert problems(matched) == [
        f"G214 14:26 `match` sets `model.feed_forward.ratio`, which the factor `placement` sets too | {help}"
    ]
    tuned = with_line(tmp_path, "tune: {params: {model.feed_forward.ratio: {values: [4, 2]}}, seeds: [9]}", factor)
    assert problems(tuned) == [
        f"G217 14:43 `tune` sets `model.feed_forward.ratio`, which the factor `placement` sets too | {help}"
    ]


@pytest.mark.parametrize(
    "levels",
    [
        "path: model.feed_forward, levels: [{kind: mlp, ratio: 4}, {kind: mlp, ratio: 4, activation: relu}]",
        "levels: {a: {}, b: {model.norm: rms, model.feed_forward.ratio: 2}}",
        "levels: {a: {}, b: {model.feed_forward: {kind: mlp, ratio: 2, activation: relu}}}",
    ],
)
def test_an_option_that_levels_spell_beside_others_is_left_out_of_them(tmp_path: Path, levels: str) -> None:
    factor = ("path: model.placement, levels: [pre, post]", levels)
    matched = with_line(tmp_path, "match: {params: {adjust: model.feed_forward.ratio}}", factor)
    assert problems(matched) == [
        "G214 14:26 `match` sets `model.feed_forward.ratio`, which the factor `placement` sets too | "
        "leave `ratio` out of the levels: `match` chooses it"
    ]
    tuned = with_line(tmp_path, "tune: {params: {model.feed_forward.ratio: {values: [4, 2]}}, seeds: [9]}", factor)
    assert problems(tuned) == [
        "G217 14:43 `tune` sets `model.feed_forward.ratio`, which the factor `placement` sets too | "
        "leave `ratio` out of the levels: `tune` chooses it"
    ]


@pytest.mark.parametrize(
    ("tune", "combinations"),
    [
        (f"{{params: {RANGE}, seeds: [9]}}", 3),
        (f"{{params: {{{LR}: {{values: [1e-3, 1]}}, model.norm.eps: {{linear: [1e-6, 1e-5], n: 4}}}}, seeds: [9]}}", 8),
        ("{params: {training.clip: {values: [null, 1.0]}, model.norm: {values: [layer, rms]}}, seeds: [9]}", 4),
        (f"{{method: tpe, trials: 5, params: {{{LR}: {{log: [1e-4, 1e-2]}}}}, seeds: [8, 9]}}", 5),
        (f"{{method: random, trials: 5, params: {{{LR}: {{linear: [1e-4, 1e-2]}}}}, seeds: [9]}}", 5),
    ],
)  # fmt: skip
def test_what_can_be_tuned(tmp_path: Path, tune: str, combinations: int) -> None:
    experiment = load(with_line(tmp_path, f"tune: {tune}"))
    assert experiment.settings.tune and experiment.settings.tune.combinations == combinations
    assert experiment.grid.warnings == ()


@pytest.mark.parametrize(
    ("search", "points"),
    [
        ("{log: [1e-4, 1e-2], n: 3}", [1e-4, 1e-3, 1e-2]),
        ("{linear: [0.1, 0.5], n: 5}", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("{log: [1e-300, 1e300], n: 3}", [1e-300, 1.0, 1e300]),
        ("{values: [3e-3, 1]}", [3e-3, 1]),
    ],
)
def test_the_values_of_a_grid(tmp_path: Path, search: str, points: list[float]) -> None:
    experiment = load(with_line(tmp_path, f"tune: {{params: {{{LR}: {search}}}, seeds: [9]}}"))
    assert experiment.settings.tune
    assert experiment.settings.tune.params[LR].points() == points


@pytest.mark.parametrize(
    ("tune", "expected"),
    [
        ("{params: {}, seeds: [9]}", "S103 14:16 `params` must have at least 1 item, not 0 | None"),
        (f"{{params: {RANGE}, seeds: []}}", "S103 14:75 `seeds` must have at least 1 item, not 0 | None"),
        (f"{{params: {RANGE}, seeds: [9, 3]}}",
         "G217 14:79 seed 3 is reported, so it cannot be tuned on: the best value would be chosen by its noise | "
         "take seeds that `seeds` does not name"),
        (f"{{params: {RANGE}, seeds: [9, 9]}}", "G217 14:79 seed 9 is named twice | None"),
        (f"{{params: {RANGE}, seeds: [-1]}}", "G217 14:76 a seed is at least 0 and less than 2^63 | None"),
        (f"{{params: {RANGE}, seeds: [9223372036854775808]}}",
         "G217 14:76 a seed is at least 0 and less than 2^63 | None"),
        (f"{{params: {RANGE}, seeds: [9], trials: 3}}",
         "G217 14:80 `trials` is for `random` and `tpe`: a grid tries every combination | None"),
        (f"{{method: tpe, trials: 4, params: {RANGE}, seeds: [9], widen: true}}",
         "G217 14:111 `widen` is for the ranges of a grid: a list has no next value, and what is drawn has no edge | "
         "take it out, or search a range by `method: grid`"),
        (f"{{params: {RANGE}, seeds: [9], halving: {{reduction: 3, rungs: 3}}}}",
         "G217 14:89 the first rung is at step 0: 20 steps do not divide by 3 so often | "
         "take fewer `rungs`, or more steps"),
        (f"{{method: tpe, params: {RANGE}, seeds: [9]}}",
         "G217 14:16 `method: tpe` needs `trials`, the number of combinations that each arm tries | "
         "add `trials: 12`, say"),
        ("{params: {training.optimizer.learn: {values: [1]}}, seeds: [9]}",
         "G201 14:17 nothing reads `training.optimizer.learn` | there is: lr, kind, beta1, beta2, eps, weight_decay"),
        ("{params: {budget.steps: {values: [1]}}, seeds: [9]}",
         "G217 14:17 `budget.steps` cannot be tuned: what trains longer is better by that alone | "
         "make it a factor, or give levels their own steps"),
        ("{params: {placement: {values: [pre]}}, seeds: [9]}",
         "G201 14:17 nothing reads `placement`: a path starts with model, task or training, or is `budget.steps` | "
         "did you mean `model.placement`?"),
    ],
)  # fmt: skip
def test_what_cannot_be_tuned(tmp_path: Path, tune: str, expected: str) -> None:
    assert problems(with_line(tmp_path, f"tune: {tune}")) == [expected]


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("{log: [1e-4, 1e-2]}", "G217 14:40 a grid needs `n`, the number of values of the range | add `n: 6`, say"),
        ("{log: [1e-2, 1e-4], n: 3}",
         "S103 14:40 the range [0.01, 0.0001] is empty: the lowest value comes first | None"),
        ("{log: [0, 1e-2], n: 3}", "S103 14:40 a logarithmic range begins above 0 | None"),
        ("{log: [1e-2], n: 3}", "S103 14:46 `log` must have at least 2 items, not 1 | None"),
        ("{log: [1, .inf], n: 3}", "S103 14:50 `log[1]` must be a finite number, not inf | None"),
        ("{linear: [-1, 1], n: 3}", "S103 14:50 `lr` must be greater than 0, not -1.0 | None"),
        ("{log: [1, 2], n: 1}", "S103 14:57 `n` must be at least 2, not 1 | None"),
        ("{log: [1, 2], n: 1000000000000}", "S103 14:57 `n` must be at most 10,000, not 1000000000000 | None"),
        ("{values: []}", "S103 14:49 `values` must have at least 1 item, not 0 | None"),
        ("{values: [1e-3], n: 1}", "S103 14:60 `n` must be at least 2, not 1 | None"),
        ("{values: [1e-3], n: 2}", "S103 14:40 `n` belongs to a range; `values` are taken as they are | None"),
        ("{values: [1e-3, .nan]}", "S103 14:56 `lr` must be a finite number, not nan | None"),
        ("{values: [1e-3, high]}", "S103 14:56 `lr` must be a number, not the text `high` | None"),
        ("{values: [1e-3, 0.001]}", "G217 14:56 the value 0.001 is named twice | None"),
        ("{values: [1, 1.0]}", "G217 14:53 the value 1.0 is named twice | None"),
        ("{values: [1], log: [1, 2]}",
         "S103 14:40 a tuned option is `{log: [LOW, HIGH], n: N}`, `{linear: [LOW, HIGH], n: N}` or "
         "`{values: [...]}` | None"),
    ],
)  # fmt: skip
def test_what_an_option_cannot_be_searched_in(tmp_path: Path, search: str, expected: str) -> None:
    assert problems(with_line(tmp_path, f"tune: {{params: {{{LR}: {search}}}, seeds: [9]}}")) == [expected]


def test_a_whole_number_is_tuned_by_values(tmp_path: Path) -> None:
    assert problems(with_line(tmp_path, "tune: {params: {model.width: {log: [8, 64], n: 4}}, seeds: [9]}")) == [
        "G217 14:30 `model.width` is a whole number, and a range has fractions | write its `values: [...]`"
    ]
    assert load(with_line(tmp_path, "tune: {params: {model.width: {values: [8, 64]}}, seeds: [9]}"))


def test_tuning_trials_count(tmp_path: Path) -> None:
    path = with_line(tmp_path, f"tune: {{params: {RANGE}, seeds: [8, 9]}}", ("steps: 20", "steps: 20, max_trials: 35"))
    with pytest.raises(RefusedError) as caught:
        load(path)
    assert str(caught.value) == (
        "refused: the design `one_at_a_time` makes 3 arms, with 6 seeds and 6 tuning trials each 36 trials, "
        "and `budget.max_trials` is 35"
    )


def test_an_arm_that_lacks_a_tuned_option_is_said(tmp_path: Path) -> None:
    path = with_line(tmp_path, "tune: {params: {model.norm.eps: {values: [1e-5, 1e-3]}}, seeds: [9]}",
                     ("switch: model.residual", "switch: model.norm"))  # fmt: skip
    assert [told(warning) for warning in load(path).grid.warnings] == [
        "W006 14:17 `residual=off`: there is no `model.norm.eps` to tune, so fewer combinations are tried than for the "
        "others | None"
    ]


def test_a_bundle_with_a_learning_rate_of_its_own_is_said(tmp_path: Path) -> None:
    bundles = "levels: {pre: {model.placement: pre}, post: {model.placement: post, training.optimizer.lr: 3e-4}}"
    path = write(tmp_path, ("path: model.placement, levels: [pre, post]", bundles))
    assert [told(warning) for warning in load(path).grid.warnings] == [
        "W006 12:106 `placement=post` has a learning rate of its own, and the other arms were given none | tune every "
        "arm: `tune: {params: {training.optimizer.lr: {log: [1e-4, 3e-2], n: 6}}, seeds: [100]}`"
    ]
    rates = "path: training.optimizer.lr, levels: [1e-2, 3e-4]"
    alone = write(tmp_path, ("path: model.placement, levels: [pre, post]", rates))
    assert load(alone).grid.warnings == ()
