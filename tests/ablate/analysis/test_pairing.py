from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from ablate.analysis import pairing

ARM = np.array([1.75, 1.81, 1.79, 1.84, 1.77, 1.80])
BASE = np.array([1.66, 1.70, 1.71, 1.72, 1.69, 1.65])
values = st.lists(st.floats(-100, 100), min_size=2, max_size=10)


def test_a_contrast_by_hand() -> None:
    # differences 1, 2, 3: mean 2, sd 1, standard error 1/sqrt(3); t(2, 0.975) = 4.3027
    c = pairing.contrast([1.0, 2.0, 3.0], family=1)
    assert (c.pairs, c.effect, c.sd, c.agree, c.identical) == (3, 2.0, 1.0, 3, False)
    assert c.high95 - c.effect == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert (c.low, c.high) == (c.low95, c.high95)
    # t = 2 * sqrt(3) = 3.4641 with 2 degrees of freedom
    assert c.p == pytest.approx(0.0741799, rel=1e-5)
    assert c.p_sign_flip == 2 / 8


def test_a_contrast_agrees_with_scipy() -> None:
    c = pairing.contrast(ARM - BASE, family=5)
    reference = stats.ttest_rel(ARM, BASE)
    assert c.p == pytest.approx(reference.pvalue)
    alone, together = reference.confidence_interval(0.95), reference.confidence_interval(1 - 0.05 / 5)
    assert (c.low95, c.high95) == pytest.approx((alone.low, alone.high))
    assert (c.low, c.high) == pytest.approx((together.low, together.high))


def test_one_difference_has_no_interval_and_none_has_no_estimate() -> None:
    one, none = pairing.contrast([0.3], family=2), pairing.contrast([], family=2)
    assert (one.pairs, one.effect) == (1, 0.3)
    assert all(math.isnan(x) for x in (one.low, one.high, one.low95, one.high95, one.p, one.p_sign_flip))
    assert none.pairs == 0
    assert math.isnan(none.effect)
    assert not none.identical


def test_differences_that_are_all_zero_are_identical() -> None:
    c = pairing.contrast([0.0, -0.0, 0.0], family=3)
    assert c.identical
    assert (c.effect, c.low, c.high, c.p, c.p_sign_flip, c.agree) == (0, 0, 0, 1, 1, 3)


def test_equal_differences_have_an_interval_of_no_width() -> None:
    c = pairing.contrast([0.1] * 6, family=3)
    assert (c.low, c.high, c.sd, c.p) == (c.effect, c.effect, 0.0, 0.0)
    assert not c.identical


@settings(deadline=None)
@given(values)
def test_sign_flip_is_the_share_of_all_flips(differences: list[float]) -> None:
    seen = abs(sum(differences))
    slack = 1e-9 * (1 + sum(map(abs, differences)))
    flips = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
             for signs in itertools.product((1, -1), repeat=len(differences))]  # fmt: skip
    low = sum(flip >= seen + slack for flip in flips) / len(flips)
    high = sum(flip >= seen - slack for flip in flips) / len(flips)
    assert low <= pairing.sign_flip(differences) <= high


def test_sign_flip_agrees_with_scipy() -> None:
    reference = stats.permutation_test(
        (ARM.tolist(), BASE.tolist()), lambda x, y: float(np.mean(x - y)), permutation_type="samples", n_resamples=9999
    )  # 2^6 flips are fewer than so many resamples, so every one is gone through
    assert pairing.sign_flip(ARM - BASE) == pytest.approx(reference.pvalue)


@pytest.mark.parametrize(("pairs", "p"), [(1, 1.0), (4, 0.125), (5, 0.0625), (6, 0.03125)])
def test_the_smallest_sign_flip_p(pairs: int, p: float) -> None:
    assert pairing.smallest_sign_flip(pairs) == p
    assert pairing.sign_flip(np.arange(1.0, pairs + 1)) == p


def test_beyond_twenty_pairs_the_sign_flip_test_draws_flips_and_repeats_itself() -> None:
    rng = np.random.default_rng(3)
    differences = rng.normal(0.2, 1, 30)
    drawn = pairing.sign_flip(differences)
    assert drawn == pairing.sign_flip(differences)
    assert drawn == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.02)
    assert pairing.sign_flip(np.ones(30)) == pytest.approx(1 / 100_001)


def test_holm_counts_planned_tests_that_have_no_p_yet() -> None:
    adjusted = pairing.holm([0.01, math.nan, 0.02], 3)
    assert adjusted[0] == pytest.approx(0.03)
    assert math.isnan(adjusted[1])
    assert adjusted[2] == pytest.approx(0.04)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_statsmodels(case: tuple[int, int]) -> None:
    count, total = case
    assert pairing.wilson(count, total) == pytest.approx(proportion_confint(count, total, method="wilson"), abs=1e-9)


def test_wilson_of_nothing_is_unknown() -> None:
    assert all(math.isnan(bound) for bound in pairing.wilson(0, 0))


def test_correlation_and_variance_ratio_by_hand() -> None:
    x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
    assert pairing.correlation(x, y) == pytest.approx(0.5)
    # var(x - y) = var(0, -1, 1) = 1 over 1 + 1
    assert pairing.variance_ratio(x, y) == pytest.approx(0.5)
    assert pairing.correlation(ARM, BASE) == pytest.approx(stats.pearsonr(ARM, BASE).statistic)


def test_correlation_and_variance_ratio_that_do_not_exist_are_unknown() -> None:
    two, flat = np.array([1.0, 2.0]), np.ones(4)
    assert math.isnan(pairing.correlation(two, two))
    assert math.isnan(pairing.correlation(flat, np.arange(4.0)))
    assert math.isnan(pairing.variance_ratio(flat, flat))
    assert math.isnan(pairing.variance_ratio(two[:1], two[:1]))


def test_what_no_float_holds_is_unknown_and_no_interval_is_infinite() -> None:
    found = pairing.contrast([1e300, 2e300, 3e300], 2)
    assert (found.pairs, found.effect, found.agree, found.p_sign_flip) == (3, 2e300, 3, 0.25)
    assert np.isnan([found.low, found.high, found.low95, found.high95, found.p, found.sd]).all()
    wide = pairing.contrast([1e153, -1e153], 10**300)
    assert wide.sd == pytest.approx(math.sqrt(2) * 1e153)
    assert np.isnan([wide.low, wide.high]).all()  # the interval of so large a family is beyond what a float holds
    assert wide.high95 == pytest.approx(1e153 * stats.t.isf(0.025, 1))
    assert math.isnan(pairing.contrast([1.7e308, 1.7e308], 1).effect)


def test_what_has_no_unit_is_the_same_for_numbers_of_any_size() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, (2, 12))
    for find in (pairing.correlation, pairing.variance_ratio):
        assert find(a * 2.0**1000, b * 2.0**1000) == find(a, b)
    assert pairing.sign_flip(a * 2.0**1022) == pairing.sign_flip(a)


def test_ranks_put_diverged_seeds_worst() -> None:
    better = [-0.4, -0.3, -0.2, -0.1]
    assert pairing.ranked_direction(better, 0) == -1
    # ranks 1 to 4 for better against 5 for worse, then against 5.5 and 5.5
    assert pairing.ranked_direction(better, 1) == -1
    assert pairing.ranked_direction(better, 2) == 1
    assert pairing.ranked_direction([], 0) == 0
    assert pairing.ranked_direction([0.0, 0.0], 0) == 0


def test_seeds_to_settle_is_the_first_number_whose_interval_is_narrow_enough() -> None:
    effect, sd, smallest, family = 0.015, 0.03, 0.02, 5
    n = pairing.seeds_to_settle(effect, sd, smallest, family)
    assert n is not None

    def half(seeds: int) -> float:
        return float(stats.t.ppf(1 - 0.05 / 10, seeds - 1) * sd / math.sqrt(seeds))

    assert half(n) < effect <= half(n - 1)


def test_seeds_to_settle_may_mean_showing_that_there_is_nothing() -> None:
    near_zero = pairing.seeds_to_settle(0.001, 0.03, 0.02, 1)
    assert near_zero is not None
    assert near_zero < 20  # inside the band is near; excluding zero would take thousands


def test_seeds_to_settle_is_unknown_where_it_is_out_of_reach() -> None:
    assert pairing.seeds_to_settle(0.0, 1.0, 0.0, 1) is None
    assert pairing.seeds_to_settle(0.0001, 10.0, 0.0001, 1) is None
    assert pairing.seeds_to_settle(math.nan, math.nan, 0.02, 1) is None
