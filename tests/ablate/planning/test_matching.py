"""Matching: arms of other sizes are brought to the baseline's, in the plan, in their identities and in what is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ablate
from ablate.analysis.comparability import comparability
from ablate.errors import InputError
from ablate.planning import Plan
from ablate.records.layout import StudyFolder, read_json
from tests.ablate.experiment.maker import write
from tests.ablate.planning.setups import plugin

PARTS = """
class _Gated(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))

class Swiglu(FeedForward):
    'SwiGLU: three matrices where the MLP has two. Once the ratio is given, `wide` is dead.'
    kind: Literal["swiglu"] = "swiglu"
    ratio: float = 4.0
    wide: bool = False
    spare: float = 1.0

    def effective(self):
        return self if self.ratio == 4 else self.model_copy(update={"wide": False})

    def build(self, at: Site) -> nn.Module:
        ratio = 6 if self.effective().wide else self.ratio
        return _Gated(at.width, max(1, round(self.spare * ratio * at.width)))

class Plain(FeedForward):
    'Two matrices, with a second option for their size.'
    kind: Literal["plain"] = "plain"
    ratio: float = 4.0
    spare: float = 1.0

    def build(self, at: Site) -> nn.Module:
        inner = round(self.spare * self.ratio * at.width)
        return nn.Sequential(nn.Linear(at.width, inner), nn.GELU(), nn.Linear(inner, at.width))

class Fixed(FeedForward):
    'A size that no option changes.'
    kind: Literal["fixed"] = "fixed"

    def build(self, at: Site) -> nn.Module:
        return _Gated(at.width, 6 * at.width)

class Deaf(FeedForward):
    'Does not read its ratio.'
    kind: Literal["deaf"] = "deaf"
    ratio: float = 4.0

    def build(self, at: Site) -> nn.Module:
        return _Gated(at.width, 6 * at.width)
"""
FACTORS = "placement: {path: model.placement, levels: [pre, post]}\n  residual: {switch: model.residual}"
BY_RATIO = "{params: {to: baseline, adjust: model.feed_forward.ratio, within: 1%}}"
BY_STEPS = "{train_flops: {adjust: budget.steps, within: 2%}}"
MLP, GATED = 2 * 16 * 64 + 64 + 16, 3 * 16 * 64


def experiment(folder: Path, levels: str, match: str | None = None, *changes: tuple[str, str]) -> Path:
    plugin(folder, PARTS)
    matched = f"match: {match}\n" if match else ""
    return write(
        folder,
        (FACTORS, f"ffn: {{path: model.feed_forward, levels: [mlp, {levels}]}}"),
        ("seeds: 6", f"{matched}plugins: [./mine.py]\nseeds: 6"),
        *changes,
    )


def planned(folder: Path, levels: str, match: str | None = None, *changes: tuple[str, str]) -> Plan:
    return ablate.plan(experiment(folder, levels, match, *changes), runs=folder / "runs")


def test_a_gate_at_the_same_ratio_has_half_as_many_parameters_more_and_matching_removes_them(tmp_path: Path) -> None:
    base, swiglu = planned(tmp_path, "swiglu").arms
    assert swiglu["parameters"]["total"] - base["parameters"]["total"] == 2 * (GATED - MLP)
    assert swiglu["matched"] == {}
    made = planned(tmp_path, "swiglu", BY_RATIO)
    assert made.arms[0] == base
    matched = made.arms[1]
    assert matched["matched"] == {"model.feed_forward.ratio": matched["config"]["model"]["feed_forward"]["ratio"]}
    assert round(16 * matched["matched"]["model.feed_forward.ratio"]) == 44
    assert matched["parameters"]["total"] == base["parameters"]["total"] - 2 * MLP + 2 * 3 * 16 * 44
    assert abs(matched["parameters"]["total"] / base["parameters"]["total"] - 1) < 0.01
    assert matched["id"] != swiglu["id"]
    assert not any("parameters" in sentence for sentence in comparability(made.data))


def test_what_matching_chose_is_a_multiple_and_the_plan_says_it(tmp_path: Path) -> None:
    match = BY_RATIO.replace("1%", "5%, multiple_of: 0.5")
    made = planned(tmp_path, "swiglu", match)
    assert made.arms[1]["matched"] == {"model.feed_forward.ratio": 3.0}
    assert made.data["match"]["params"]["multiple_of"] == 0.5
    assert "Matching chose `model.feed_forward.ratio`: 3 for ffn=swiglu." in list(comparability(made.data))


def test_an_arm_within_the_tolerance_is_left_as_it_is(tmp_path: Path) -> None:
    assert planned(tmp_path, "swiglu", BY_RATIO.replace("1%", "20%")).arms == planned(tmp_path, "swiglu").arms


def test_steps_are_the_arms_own_in_the_plan_the_identity_and_the_trial(tmp_path: Path) -> None:
    short = ("seeds: 6", "seeds: 1")
    plain = planned(tmp_path, "swiglu", None, short).arms
    path = experiment(tmp_path, "swiglu", BY_STEPS, short)
    base, swiglu = ablate.plan(path).arms
    steps = round(20 * base["flops"] / swiglu["flops"])
    assert (base["steps"], swiglu["steps"], swiglu["matched"]) == (20, steps, {"budget.steps": steps})
    assert steps == 16
    assert (base["id"], swiglu["config"]) == (plain[0]["id"], plain[1]["config"])
    assert swiglu["id"] != plain[1]["id"]
    results = ablate.run(path, runs=tmp_path / "runs")
    trained = results.curves().groupby("name", observed=True)["step"].max().to_dict()
    assert trained == {"baseline": 20, "ffn=swiglu": 16}
    study = StudyFolder(tmp_path / "runs/small")
    (trial,) = (each for each in ablate.plan(path).trials if each["arm"] == swiglu["id"])
    assert read_json(study.trial(trial["id"]).config)["config"]["steps"] == 16
    assert read_json(study.trial(trial["id"]).result)["steps"] == 16
    assert any(
        "ffn=swiglu trains for 16 steps, the baseline for 20 (-20% training tokens)." in text
        for text in results.caveats()
    )


def test_both_counts_are_solved_by_two_options(tmp_path: Path) -> None:
    both = "{params: {adjust: model.feed_forward.ratio}, train_flops: {adjust: budget.steps, within: 3%}}"
    (_, swiglu) = planned(tmp_path, "fixed", both.replace("params: {adjust: model.feed_forward.ratio}, ", "")).arms
    assert swiglu["matched"].keys() == {"budget.steps"}
    base, swiglu = planned(tmp_path, "swiglu", both.replace("3%", "0.9%"), ("steps: 20", "steps: 2000")).arms
    assert swiglu["matched"].keys() == {"model.feed_forward.ratio", "budget.steps"}
    assert swiglu["flops"] * swiglu["steps"] == pytest.approx(base["flops"] * 2000, rel=0.009)
    assert swiglu["parameters"]["total"] == pytest.approx(base["parameters"]["total"], rel=0.01)


@pytest.mark.parametrize(
    ("levels", "match", "message"),
    [
        (
            "fixed",
            BY_RATIO,
            "it has no `model.feed_forward.ratio` to adjust, and its parameters are 15,104 where the baseline's are "
            "10,144 (+48.9%)",
        ),
        (
            "{kind: mlp, width: 48}",
            BY_RATIO,
            "`model.feed_forward.ratio` takes no other value here (give `ratio` or `width`, not both), and its "
            "parameters are 9,088 where the baseline's are 10,144 (-10.4%)",
        ),
        (
            "deaf",
            BY_RATIO,
            "`model.feed_forward.ratio` changes nothing, and its parameters are 15,104 where the baseline's are "
            "10,144 (+48.9%)",
        ),
        (
            "swiglu",
            BY_RATIO.replace("1%", "0.01%"),
            "nearest is `model.feed_forward.ratio: 2.78` with 10,112 parameters, 0.32% below the baseline's 10,144; "
            "`within` is 0.01%",
        ),
        (
            "swiglu",
            BY_STEPS.replace("2%", "0.5%"),
            "nearest is `budget.steps: 16` with 66,748,416 training FLOPs, 1.4% below the baseline's 67,706,880; "
            "`within` is 0.5%",
        ),
    ],
)
def test_what_cannot_be_matched_says_what_is_nearest(tmp_path: Path, levels: str, match: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        planned(tmp_path, levels, match)
    (diagnostic,) = caught.value.diagnostics
    name = "mlp(width=48)" if levels.startswith("{") else levels
    assert (diagnostic.code, diagnostic.message) == ("G215", f"`ffn={name}` cannot be matched: {message}")
    assert diagnostic.span is not None
    assert diagnostic.span.line == 13


def test_a_count_that_another_undoes_is_an_error(tmp_path: Path) -> None:
    match = "{params: {adjust: model.feed_forward.ratio}, train_flops: {adjust: model.feed_forward.spare}}"
    plain = [("depth: 2", "depth: 2\n  feed_forward: plain"), ("[mlp, swiglu]", "[plain, swiglu]")]
    with pytest.raises(InputError) as caught:
        planned(tmp_path, "swiglu", match, *plain)
    assert [each.message for each in caught.value.diagnostics] == [
        "`ffn=swiglu` cannot be matched: with `model.feed_forward.ratio: 2.78` and `model.feed_forward.spare: 0.96` "
        "its parameters are 1.3% below the baseline's"
    ]


def test_every_arm_that_cannot_be_matched_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        planned(tmp_path, "swiglu, fixed, deaf", BY_RATIO)
    assert [each.message.split(" cannot")[0] for each in caught.value.diagnostics] == ["`ffn=fixed`", "`ffn=deaf`"]


def test_arms_that_matching_makes_one_fall_together_and_run_once(tmp_path: Path) -> None:
    levels = "swiglu, {kind: swiglu, wide: true}"
    apart = planned(tmp_path, levels)
    assert len({arm["id"] for arm in apart.arms}) == 3
    made = planned(tmp_path, levels, BY_RATIO)
    assert [(arm["name"], arm["aliases"]) for arm in made.arms] == [
        ("baseline", []), ("ffn=swiglu", ["ffn=swiglu(wide=true)"]),
    ]  # fmt: skip
    assert len(made.trials) == len({trial["id"] for trial in made.trials}) == 12
    (warning,) = made.warnings
    assert warning.code == "W002"
    assert warning.message == "`ffn=swiglu(wide=true)` and `ffn=swiglu` are the same arm, which runs once"


@pytest.mark.parametrize(
    ("match", "code", "message"),
    [
        (BY_RATIO.replace("1%", "100%"), "S103", "`within` must be less than 1, not 1.0"),
        (BY_RATIO.replace("1%", "-1%"), "S103", None),
        (BY_RATIO.replace("1%", "1%, multiple_of: 0"), "S103", "`multiple_of` must be greater than 0, not 0"),
        (BY_RATIO.replace("1%", "1%, multiple_of: .inf"), "S103", None),
        (BY_RATIO.replace("ratio", "ration"), "G201", None),
        (
            BY_RATIO.replace("ratio", "activation"),
            "G214",
            "`model.feed_forward.activation` is no number in the baseline, so it cannot be solved for",
        ),
        (BY_STEPS.replace("train_flops", "params"), "G214", "`budget.steps` changes no parameter"),
        ("{}", "S103", "`match` takes `params`, `train_flops` or both"),
    ],
)
def test_a_match_that_makes_no_sense_is_an_error_of_the_file(
    tmp_path: Path, match: str, code: str, message: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        planned(tmp_path, "swiglu", match)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert message is None or diagnostic.message == message
    assert diagnostic.span is not None
    assert diagnostic.span.line == 13


def test_an_option_that_a_factor_sets_is_not_solved_for(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        planned(tmp_path, "{kind: swiglu, ratio: 3}", BY_RATIO)
    assert [each.message for each in caught.value.diagnostics] == [
        "`match` sets `model.feed_forward.ratio`, which the factor `ffn` sets too"
    ]


def test_a_whole_number_stays_one(tmp_path: Path) -> None:
    levels = ("model.feed_forward, levels: [mlp, swiglu]", "model.mixer.bias, levels: [true, false]")
    match = "{params: {adjust: model.feed_forward.width, within: 0.5%}}"
    base = ("depth: 2", "depth: 2\n  feed_forward: {kind: mlp, width: 64}")
    arms: list[dict[str, Any]] = planned(tmp_path, "swiglu", match, levels, base).arms
    assert arms[1]["matched"] == {"model.feed_forward.width": 66}
    assert type(arms[1]["matched"]["model.feed_forward.width"]) is int
