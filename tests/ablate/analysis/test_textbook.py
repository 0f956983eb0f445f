"""The analysis agrees with R's published numbers on textbook data, and with scipy and statsmodels on any data.

The data are typed in and made into the folder of a study, which the public frames then read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.anova import AnovaRM
from statsmodels.stats.multitest import multipletests

from ablate.analysis import anova, pairing
from ablate.analysis.factorial import Factorial
from ablate.analysis.results import Results
from tests.study_maker import make_study

SLEEP = {
    "1": [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    "2": [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
}
"""Extra hours of sleep of ten people by drug: Student 1908, The Probable Error of a Mean; R's ``datasets::sleep``."""

NPK = [
    "011 49.5 110 62.8 000 46.8 101 57.0", "100 59.8 111 58.5 001 55.5 010 56.0", "010 62.8 111 55.8 100 69.5 001 55.0",
    "100 62.0 111 48.8 001 45.5 010 44.2", "110 52.0 000 51.5 101 49.8 011 48.8", "101 57.2 110 59.0 011 53.2 000 56.0",
]  # fmt: skip
"""Pounds of peas a plot by block (a row) and by whether it got N, P and K: Venables and Ripley 2002, Modern Applied
Statistics with S, section 6.7; R's ``datasets::npk``. Each block has half of the eight combinations."""

OATS = {
    "Victory": ["111 130 157 174", "61 91 97 100", "68 64 112 86", "74 89 81 122", "62 90 100 116", "53 74 118 113"],
    "Golden.rain": ["117 114 161 141", "70 108 126 149", "60 102 89 96", "64 103 132 133", "80 82 94 126",
                    "89 82 86 104"],
    "Marvellous": ["105 140 118 156", "96 124 121 144", "89 129 132 124", "70 89 104 117", "63 70 109 99",
                   "97 99 119 121"],
}  # fmt: skip
"""Quarter pounds of oats a plot by variety, block (a text) and 0, 0.2, 0.4 and 0.6 cwt of nitrogen: Yates 1935, Complex
experiments; R's ``MASS::oats``."""


def test_paired_effects_are_those_of_rs_t_test(tmp_path: Path) -> None:
    """R's ``t.test(extra ~ group, data = sleep, paired = TRUE)``, as printed in de Vries and Meys, R For Dummies."""
    study = make_study(
        tmp_path / "study", factors={"drug": ["2", "1"]}, seeds=10, goal="max", smallest_effect=0.5,
        outcomes=lambda name, levels, seed: SLEEP[levels["drug"]][seed],
    )  # fmt: skip
    (row,) = Results(study).effects().to_dict("records")
    assert (row["pairs"], row["effect"]) == (10, pytest.approx(-1.58))
    assert row["p"] == pytest.approx(0.002833, abs=5e-7)
    assert (row["low95"], row["high95"]) == pytest.approx((-2.4598858, -0.7001142), abs=5e-8)
    assert (row["low"], row["high"]) == (row["low95"], row["high95"])  # one effect is all of its family
    found = pairing.contrast(np.subtract(SLEEP["1"], SLEEP["2"]), family=1)
    assert found.effect / (found.sd / math.sqrt(found.pairs)) == pytest.approx(-4.0621, abs=5e-5)
    assert (found.effect, found.p) == pytest.approx((row["effect"], row["p"]))


def by_term(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["term"]: {str(key): value for key, value in row.items()} for row in frame.to_dict("records")}


def test_the_analysis_of_variance_is_rs_on_incomplete_blocks(tmp_path: Path) -> None:
    """R's ``summary(aov(yield ~ block + N*P*K, npk))``, as the example of ``help(npk)`` prints it.

    R finds N:P:K not estimable, since it is the difference between blocks; ours has no such term.
    """
    plots = [dict(zip(row.split()[::2], map(float, row.split()[1::2]), strict=True)) for row in NPK]

    def code(levels: Mapping[str, Any]) -> str:
        return "".join(str(levels[nutrient]) for nutrient in "NPK")

    cells = [("baseline" if not n + p + k else f"N={n}, P={p}, K={k}", f"{n}{p}{k}")
             for n in (0, 1) for p in (0, 1) for k in (0, 1)]  # fmt: skip
    study = make_study(
        tmp_path / "study", design="full", factors={"N": [0, 1], "P": [0, 1], "K": [0, 1]}, seeds=6, goal="max",
        outcomes=lambda name, levels, seed: plots[seed][code(levels)],
        waiting={(name, block) for name, cell in cells for block in range(6) if cell not in plots[block]},
    )  # fmt: skip
    results = Results(study)
    found = by_term(results.anova())
    published = {
        "(seed)": (5, 343.2950, 4.447, 0.01594), "N": (1, 189.2817, 12.259, 0.00437), "P": (1, 8.4017, 0.544, 0.47490),
        "K": (1, 95.2017, 6.166, 0.02880), "N:P": (1, 21.2817, 1.378, 0.26317), "N:K": (1, 33.1350, 2.146, 0.16865),
        "P:K": (1, 0.4817, 0.031, 0.86275),
    }  # fmt: skip
    for term, (df, sum_sq, f, p) in published.items():
        row = found[term]
        assert (row["df"], row["left_out"]) == (df, "")
        assert row["sum_sq"] == pytest.approx(sum_sq, abs=5e-4)
        assert row["F"] == pytest.approx(f, abs=5e-4)
        assert row["p"] == pytest.approx(p, abs=5e-6)
    assert (found["(residual)"]["df"], found["(residual)"]["sum_sq"]) == (12, pytest.approx(185.2867, abs=5e-4))
    assert anova.how(results.plan, results.trials()) == (
        "24 of 48 trials; unbalanced: Type III sums, each term beyond all others; nothing was filled in for 24 waiting."
    )


def test_the_factorial_effects_are_rs_on_complete_blocks(tmp_path: Path) -> None:
    """R's ``summary(aov(Y ~ Nf*V + Error(B/V), data = oats))``, as the example of ``help(oats)`` prints it.

    R takes the varieties' plots as strata of their own; without them the two residuals, 6013 and 7969, are one.
    """
    yields = {(variety, block): [float(y) for y in plots.split()]
              for variety, blocks in OATS.items() for block, plots in enumerate(blocks)}  # fmt: skip
    doses = [0.0, 0.2, 0.4, 0.6]
    study = make_study(
        tmp_path / "study", design="full", factors={"V": list(OATS), "N": doses}, seeds=6, goal="max",
        outcomes=lambda name, levels, seed: yields[levels["V"], seed][doses.index(levels["N"])],
    )  # fmt: skip
    results = Results(study)
    found = by_term(results.anova())
    published = {
        "(seed)": (5, 15875),
        "V": (2, 1786),
        "N": (3, 20020),
        "V:N": (6, 322),
        "(residual)": (55, 6013 + 7969),
    }
    for term, (df, sum_sq) in published.items():
        assert (found[term]["df"], found[term]["sum_sq"]) == (df, pytest.approx(sum_sq, abs=1))
    assert found["N"]["F"] == pytest.approx((20020 / 3) / ((6013 + 7969) / 55), rel=1e-4)
    assert anova.how(results.plan, results.trials()) == (
        "72 of 72 trials; balanced, so that the sums do not depend on what else is in the model."
    )
    # The means that ``model.tables(oats.aov2, type = "means")`` prints there, by nitrogen and by variety.
    means = {"N": [79.39, 98.89, 114.22, 123.39], "V": [97.63, 104.50, 109.79]}
    effects = results.main_effects().set_index("name")["effect"]
    for dose, mean in zip(doses[1:], means["N"][1:], strict=True):
        assert effects[f"N={dose}"] == pytest.approx(mean - means["N"][0], abs=0.011)
    for variety, mean in zip(list(OATS)[1:], means["V"][1:], strict=True):
        assert effects[f"V={variety}"] == pytest.approx(mean - means["V"][0], abs=0.011)


# --- any data -------------------------------------------------------------------------------------------------------

numbers = st.floats(-100, 100).map(lambda value: round(value, 3))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(numbers, numbers), min_size=3, max_size=12), st.integers(1, 40))
def test_any_contrast_is_scipys(pairs: list[tuple[float, float]], family: int) -> None:
    ours, theirs = np.array(pairs).T
    differences = ours - theirs
    if np.ptp(differences) < 1e-6:
        return  # scipy warns of rounding there; such differences have tests of their own
    found, reference = pairing.contrast(differences, family), stats.ttest_rel(ours, theirs)
    assert found.p == pytest.approx(reference.pvalue, rel=1e-6, abs=1e-12)
    for bounds, level in (((found.low95, found.high95), 0.95), ((found.low, found.high), 1 - 0.05 / family)):
        expected = reference.confidence_interval(level)
        assert bounds == pytest.approx((expected.low, expected.high), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("factors", [1, 2, 3])
def test_any_main_effect_of_two_levels_is_a_repeated_measures_anova(tmp_path: Path, factors: int) -> None:
    """Within each seed every factor has two levels, so that F = t^2, for main effects and two-way interactions."""
    names = [f"f{place}" for place in range(factors)]
    results = Results(make_study(tmp_path / "study", design="full", factors={key: [0, 1] for key in names}, steps=10))
    trials = results.trials()

    @settings(deadline=None, max_examples=8)
    @given(st.integers(0, 10_000), st.integers(3, 6), st.booleans())
    def agrees(draw: int, seeds: int, skewed: bool) -> None:
        rng = np.random.default_rng(draw)
        noise = rng.exponential(1, len(trials)) if skewed else rng.normal(0, 1, len(trials))
        some = trials.assign(**{"val/loss": noise})[trials["seed"] < seeds]
        found = Factorial(results.plan, some)
        wide = pd.DataFrame({"y": some["val/loss"], "seed": some["seed"]})
        for key in names:
            wide[key] = some[f"factor.{key}"].astype(int)
        table = AnovaRM(wide, "y", "seed", within=names).fit().anova_table
        for row in found.main_effects().to_dict("records"):
            reference = table.loc[row["factor"]]
            assert (row["seeds"], row["p"]) == (seeds, pytest.approx(reference["Pr > F"], rel=1e-6))
            assert row["partial_eta2"] == pytest.approx(reference["F Value"] / (reference["F Value"] + seeds - 1))
        for row in found.interactions().to_dict("records"):
            assert row["p"] == pytest.approx(table.loc[f"{row['factor']}:{row['other']}", "Pr > F"], rel=1e-6)

    agrees()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(0, 5))
def test_holm_over_a_family_with_tests_to_come_is_statsmodels(p: list[float], to_come: int) -> None:
    """A planned test without a p yet counts as the largest, as if its p were 1."""
    adjusted = multipletests([*p, *[1.0] * to_come], method="holm")[1][: len(p)]
    assert pairing.holm([*p, *[math.nan] * to_come], len(p) + to_come)[: len(p)] == pytest.approx(list(adjusted))
