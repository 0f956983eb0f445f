from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.analysis.pairing import Contrast, contrast, ranked_direction, seeds_to_settle
from ablate.analysis.results import Results
from ablate.analysis.verdict import WORDS, Evidence, Objective, judge, worst_first
from tests.study_maker import make_study

LOSS = Objective("val/loss", "nats", "min", 0.02)
ACCURACY = Objective("val/accuracy", "", "max", 0.02)


def between(effect: float, low: float, high: float, pairs: int = 6, agree: int | None = None) -> Contrast:
    return Contrast(pairs, effect, low, high, low, high, 0.01, 0.03, pairs if agree is None else agree, False, 0.03)


def evidence(c: Contrast, diverged: int = 0, ranks: int = 0, baseline_diverged: int = 0) -> Evidence:
    return Evidence(
        name="post", against="baseline", contrast=c, planned=6, diverged=diverged, ended=c.pairs + diverged,
        baseline_diverged=baseline_diverged, baseline_ended=6, ranks=ranks, stuck=0, baseline_stuck=0, settle=14,
        unigram_entropy=3.24,
    )  # fmt: skip


def said(e: Evidence, objective: Objective = LOSS) -> tuple[str, str]:
    verdict = judge(e, objective)
    return verdict.word, verdict.sentence


def test_worse() -> None:
    assert said(evidence(between(0.081, 0.052, 0.110))) == (
        "worse",
        "post is worse than baseline by +0.081 nats val/loss [95% simultaneous CI +0.052, +0.110]; "
        "6 of 6 seeds agree; smallest effect that matters 0.020.",
    )


def test_better() -> None:
    assert said(evidence(between(-0.081, -0.110, -0.052, agree=5))) == (
        "better",
        "post is better than baseline by -0.081 nats val/loss [95% simultaneous CI -0.110, -0.052]; "
        "5 of 6 seeds agree; smallest effect that matters 0.020.",
    )


def test_size_uncertain() -> None:
    assert said(evidence(between(0.03, 0.005, 0.055))) == (
        "worse, size uncertain",
        "post is worse than baseline, size uncertain, by +0.030 nats val/loss [95% simultaneous CI +0.005, +0.055]; "
        "6 of 6 seeds agree; smallest effect that matters 0.020.",
    )


def test_no_practical_difference_even_where_the_interval_excludes_zero() -> None:
    assert said(evidence(between(0.008, 0.002, 0.014))) == (
        "no practical difference",
        "post makes no practical difference to baseline: +0.008 nats val/loss [95% simultaneous CI +0.002, +0.014] "
        "lies within ±0.020.",
    )


def test_undecided_names_the_seeds_that_would_settle_it() -> None:
    """An arm whose mean is better, with an interval that includes 0."""
    assert said(evidence(between(-0.012, -0.034, 0.010, agree=4))) == (
        "undecided",
        "post is undecided against baseline: -0.012 nats val/loss [95% simultaneous CI -0.034, +0.010]; "
        "4 of 6 seeds agree; about 14 seeds would settle it; smallest effect that matters 0.020.",
    )


def test_identical() -> None:
    assert said(evidence(contrast([0.0] * 6, 5))) == (
        "identical",
        "post is identical to baseline: the same val/loss in all 6 seeds.",
    )


def test_one_seed_prints_no_interval_even_where_it_is_zero() -> None:
    assert said(evidence(contrast([0.08], 5))) == (
        "one seed, no interval",
        "post differs from baseline by +0.080 nats val/loss in one seed, which gives no interval.",
    )
    assert said(evidence(contrast([0.0], 5)))[0] == "one seed, no interval"


def test_no_pair_at_all() -> None:
    assert said(evidence(contrast([], 5))) == (
        "undecided",
        "post is undecided: no seed has completed both it and baseline.",
    )
    assert said(replace(evidence(contrast([], 5)), no_data="3 of 3 seeds failed")) == (
        "undecided",
        "post is undecided: no data: 3 of 3 seeds failed.",
    )


def test_over_half_of_the_seeds_diverged() -> None:
    word, sentence = said(evidence(between(-0.5, -0.6, -0.4, pairs=2), diverged=4, ranks=1, baseline_diverged=1))
    assert word == "diverged"
    assert sentence == "post diverged in 4 of 6 seeds [95% Wilson CI 30% to 90%]."


def test_half_of_the_seeds_diverged_is_not_over_half() -> None:
    assert said(evidence(between(0.5, 0.4, 0.6, pairs=3), diverged=3, ranks=1))[0] == "worse"


def test_the_baseline_diverged() -> None:
    assert said(evidence(between(0.081, 0.052, 0.110), baseline_diverged=1)) == (
        "not comparable",
        "post is not comparable: baseline diverged in 1 of 6 seeds.",
    )


def test_ranks_that_disagree_with_the_mean() -> None:
    assert said(evidence(between(-0.05, -0.08, -0.03, pairs=4), diverged=2, ranks=1)) == (
        "not comparable",
        "2 of 6 seeds of post diverged; among those that finished it is better than baseline on average, yet worse "
        "once the diverged ones are ranked as worst, so it is not comparable.",
    )


def test_a_diverged_seed_leads_the_sentence_and_forbids_better() -> None:
    assert said(evidence(between(-0.05, -0.08, -0.03, pairs=5), diverged=1, ranks=-1)) == (
        "undecided",
        "1 of 6 seeds of post diverged; among those that finished it is better than baseline by -0.050 nats val/loss "
        "[95% simultaneous CI -0.080, -0.030]; 5 of 5 seeds agree; undecided all the same, since what diverges is not "
        "called better; smallest effect that matters 0.020.",
    )
    assert said(evidence(between(-0.03, -0.055, -0.005, pairs=5), diverged=1, ranks=-1))[0] == "undecided"


def test_a_diverged_seed_leads_the_sentence_of_a_worse_one() -> None:
    word, sentence = said(evidence(between(0.05, 0.03, 0.07, pairs=5), diverged=1, ranks=1))
    assert word == "worse"
    assert sentence.startswith("1 of 6 seeds of post diverged; among those that finished it is worse than baseline by")


def test_stuck_is_named_when_most_seeds_are() -> None:
    e = replace(evidence(between(1.5, 1.4, 1.6)), stuck=4)
    assert judge(e, LOSS).stuck
    assert said(e)[1] == (
        "post is worse than baseline by +1.500 nats val/loss [95% simultaneous CI +1.400, +1.600]; 6 of 6 seeds agree; "
        "it is stuck: 4 of 6 seeds end within 0.05 nats of the unigram entropy, 3.24 nats; "
        "smallest effect that matters 0.020."
    )
    assert "stuck" not in said(replace(e, stuck=3))[1]


def test_stuck_is_blamed_on_a_level_only_where_its_reference_is_stuck_less(tmp_path: Path) -> None:
    e = replace(evidence(between(1.5, 1.4, 1.6)), stuck=5)
    some = said(replace(e, baseline_stuck=1))[1]
    assert (
        "it is stuck: 5 of 6 seeds end within 0.05 nats of the unigram entropy, 3.24 nats (baseline: 1 of 6);" in some
    )
    assert "stuck" not in said(replace(e, baseline_stuck=5))[1]
    factors = {"residual": ["add", "none"], "placement": ["pre", "post"]}

    def outcome(name: str, levels: Mapping[str, Any], seed: int) -> float:
        """Only residual=none is at the unigram entropy, where placement moves it a little."""
        slope = 0.02 if levels["placement"] == "post" else 0.0
        return (3.24 if levels["residual"] == "none" else 1.7 + 10 * slope) + slope + 0.001 * seed

    study = make_study(tmp_path / "study", design="full", factors=factors, outcomes=outcome)
    told = {verdict.name: verdict.sentence for verdict in Results(study).verdicts()}
    assert "it is stuck: 12 of 12 trials" in told["residual=none"]
    assert "stuck" not in told["placement=post at residual=none"]


def test_a_share_is_a_number_alone() -> None:
    objective = replace(ACCURACY, unit="share")
    assert "better than baseline by +0.081 val/accuracy [" in said(evidence(between(0.081, 0.052, 0.110)), objective)[1]


def test_a_bound_near_zero_is_not_printed_as_zero() -> None:
    sentence = said(evidence(between(0.03, 0.0001, 0.06)))[1]
    assert "[95% simultaneous CI +0.0001, +0.0600]" in sentence


@pytest.mark.parametrize(
    ("smallest", "shown"), [(0.5, "+3.14 "), (2.0, "+3.1 "), (20.0, "+3 "), (0.0005, "+3.14159 "), (0.0, "+3.1416 ")]
)
def test_numbers_have_the_digits_that_matter(smallest: float, shown: str) -> None:
    assert shown in said(evidence(between(3.14159, 3.0, 3.3)), replace(LOSS, smallest_effect=smallest))[1]


def test_where_more_is_better_the_signs_turn() -> None:
    assert said(evidence(between(0.081, 0.052, 0.110)), ACCURACY) == (
        "better",
        "post is better than baseline by +0.081 val/accuracy [95% simultaneous CI +0.052, +0.110]; 6 of 6 seeds agree; "
        "smallest effect that matters 0.020.",
    )


def test_sentences_are_sorted_worst_first() -> None:
    effects = {
        "better": between(-0.5, -0.6, -0.4), "slightly": between(-0.03, -0.05, -0.001), "none": between(0, -0.01, 0.01),
        "unknown": between(0.0, -1.0, 1.0), "bad": between(0.1, 0.05, 0.15), "worst": between(0.9, 0.8, 1.0),
    }  # fmt: skip
    found = [judge(replace(evidence(c), name=name), LOSS) for name, c in effects.items()]
    gone = judge(replace(evidence(between(0, -1, 1, pairs=1), diverged=5), name="gone"), LOSS)
    names = [verdict.name for verdict in worst_first([*found, gone], LOSS)]
    assert names == ["gone", "worst", "bad", "unknown", "none", "slightly", "better"]


# --- every input ----------------------------------------------------------------------------------------------------

seeds = st.lists(st.one_of(st.floats(-3, 3), st.none()), min_size=1, max_size=8)
"""Differences by seed, None where the arm diverged."""
goals = st.sampled_from(["min", "max"])


def measured(differences: list[float | None], objective: Objective, baseline_diverged: int, family: int) -> Evidence:
    finite = [value for value in differences if value is not None]
    diverged = len(differences) - len(finite)
    c = contrast(finite, family)
    return Evidence(
        name="arm", against="baseline", contrast=c, planned=len(differences), diverged=diverged,
        ended=len(differences), baseline_diverged=baseline_diverged, baseline_ended=len(differences),
        ranks=ranked_direction([objective.worse(value) for value in finite], diverged), stuck=0, baseline_stuck=0,
        settle=seeds_to_settle(c.effect, c.sd, objective.smallest_effect, family),
    )  # fmt: skip


@settings(deadline=None)
@given(seeds, goals, st.floats(0, 1), st.integers(0, 1), st.integers(1, 20))
def test_every_effect_has_one_verdict_that_its_interval_bears_out(
    differences: list[float | None], goal: str, smallest: float, baseline_diverged: int, family: int
) -> None:
    objective = Objective("val/loss", "nats", goal, smallest)
    e = measured(differences, objective, baseline_diverged, family)
    verdict = judge(e, objective)
    c = e.contrast
    assert verdict.word in WORDS
    if "better" in verdict.word or "worse" in verdict.word:
        assert c.low > 0 or c.high < 0
        assert ("worse" in verdict.word) == (objective.worse(c.effect) > 0)
    if verdict.word in ("better", "worse"):
        assert c.low > smallest or c.high < -smallest
    if verdict.word == "no practical difference":
        assert max(abs(c.low), abs(c.high)) < smallest
    if e.diverged:
        assert "better" not in verdict.word
    if not math.isfinite(c.low):
        assert "simultaneous" not in verdict.sentence
    assert "nan" not in verdict.sentence.lower()
    assert "inf" not in verdict.sentence.lower()


@settings(deadline=None)
@given(seeds, st.floats(0, 1), st.integers(0, 1))
def test_turning_signs_and_goal_together_changes_no_word(
    differences: list[float | None], smallest: float, baseline_diverged: int
) -> None:
    less, more = Objective("m", "", "min", smallest), Objective("m", "", "max", smallest)
    turned = [None if value is None else -value for value in differences]
    one = judge(measured(differences, less, baseline_diverged, 3), less)
    two = judge(measured(turned, more, baseline_diverged, 3), more)
    assert one.word == two.word
