"""Differences that are skewed over the seeds are told of, and others seldom."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ablate.analysis.results import Results
from ablate.analysis.skewness import limits, skewed, skewness
from tests.study_maker import make_study

PLACEMENT = {"placement": ["pre", "post", "none"]}
ONE_SIDED = [0.0, 0.0, 0.0, 0.0, 0.0, 0.3]
"""Five zeros and one: the most skewed that six values can be, 4 / √5 = 1.79."""


def test_skewness_by_hand() -> None:
    # Mean 1/3, so m2 = (1/9 + 1/9 + 4/9) / 3 = 2/9 and m3 = (-1/27 - 1/27 + 8/27) / 3 = 2/27: g1 = 1 / √2.
    assert skewness(np.array([0.0, 0.0, 1.0])) == pytest.approx(0.5**0.5)
    rows = np.array([[0.0, 0.0, -3.0], [1.0, 2.0, 3.0], [0.1, 0.1, 0.1]])
    assert skewness(rows) == pytest.approx([-(0.5**0.5), 0.0, 0.0])
    assert skewness(np.array(ONE_SIDED)) == pytest.approx(4 / 5**0.5)
    values = np.random.default_rng(1).exponential(size=50)
    assert skewness(values) == pytest.approx(stats.skew(values))


@pytest.mark.parametrize("pairs", [(6,), (6,) * 5, (5, 6, 6, 10)])
def test_normal_noise_passes_a_limit_in_one_study_of_twenty(pairs: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    largest, mean = limits(pairs)
    passed, studies = 0, 2_000
    for _ in range(studies):
        baseline = rng.normal(size=max(pairs))
        each = np.array([skewness(rng.normal(size=count) - baseline[:count]) for count in pairs])
        passed += bool(abs(each).max() > largest or abs(each.mean()) > mean)
    assert stats.binom.ppf(0.001, studies, 0.04) <= passed <= stats.binom.ppf(0.999, studies, 0.06)


def test_with_one_effect_both_limits_are_one() -> None:
    largest, mean = limits((6,))
    assert largest == mean


def test_a_skewed_arm_is_named_with_its_limit() -> None:
    even = {f"arm {i}": np.linspace(-1, i, 6) for i in range(4)}
    assert skewed(even) == []
    (said,) = skewed({**even, "odd one": np.array(ONE_SIDED)})
    assert said == (
        "Differences look skewed over the seeds: the skewness of odd one is +1.79, beyond "
        f"±{limits((6,) * 5)[0]:.2f}. Normal noise passes such a limit in 5% of studies of this size. Where the noise "
        "of an arm and of the baseline differ in shape, intervals miss more often than they say: let more seeds "
        "confirm these verdicts."
    )


def test_arms_that_lean_together_are_named_though_none_is_beyond_its_limit() -> None:
    slightly = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 1.3])
    assert skewness(slightly) < limits((6,) * 8)[0]
    (said,) = skewed({f"arm {i}": (1 + i) * slightly for i in range(8)})
    words = f"that of all 8 effects is +1.44 on average, beyond ±{limits((6,) * 8)[1]:.2f}, and largest in arm "
    assert said.startswith(f"Differences look skewed over the seeds: {words}")
    (turned,) = skewed({f"arm {i}": -(1 + i) * slightly for i in range(8)})
    assert "is -1.44 on average" in turned


def test_four_seeds_say_nothing_and_neither_do_equal_arms() -> None:
    assert skewed({"a": np.array([0.0, 0.0, 0.0, 0.3])}) == []
    assert skewed({"a": np.zeros(6)}) == []
    assert skewed({}) == []


def outcome(name: str, levels: Mapping[str, Any], seed: int) -> float:
    """Two arms with the noise of the baseline, mirrored, and one with a seed that goes wrong."""
    shared = [0.01, -0.02, 0.03, 0.0, -0.01, 0.02][seed]
    own = {"placement": 0.02 * (seed - 2.5), "scale": 0.05 + ONE_SIDED[seed]}
    return 1.7 + shared + sum(own[factor] for factor, level in levels.items() if level in ("post", "off"))


@pytest.mark.parametrize(("design", "where"), [("one_at_a_time", "scale=off"), ("full", "scale=off")])
def test_the_caveats_of_a_study_have_it(tmp_path: Path, design: str, where: str) -> None:
    factors = {"placement": ["pre", "post"], "scale": ["on", "off"]}
    study = make_study(tmp_path / "study", design=design, factors=factors, outcomes=outcome)
    (said,) = (caveat for caveat in Results(study).caveats() if "skewed" in caveat)
    assert said.startswith(f"Differences look skewed over the seeds: the skewness of {where} is +1.79, beyond ±1.4")


def test_a_study_whose_noise_is_alike_has_no_such_caveat(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", factors=PLACEMENT)
    assert not any("skewed" in caveat for caveat in Results(study).caveats())
