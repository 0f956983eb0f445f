"""Calibration is measured: how often a study without any effect says that there is one, and what intervals cover."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ablate.analysis.effects import effects
from ablate.analysis.factorial import Factorial
from ablate.records import frames
from tests.study_maker import make_study

STUDIES = 300
BOUND = int(stats.binom.ppf(0.999, STUDIES, 0.05))
"""So many of the studies are wrong at most in 999 of 1,000 cases if the true rate is the nominal 5%."""


def study(folder: Path, design: str) -> tuple[dict[str, Any], pd.DataFrame]:
    """A plan with a smallest effect of nothing, so that every interval that excludes zero is a false verdict."""
    factors = {"a": ["x", "y"], "b": ["p", "q"], "c": ["m", "n"]} if design == "full" else {"a": list("xuvwyz")}
    path = make_study(folder, design=design, factors=factors, seeds=6, steps=10)
    plan = copy.deepcopy(frames.read_plan(path))
    plan["objective"]["smallest_effect"] = 0.0
    return plan, frames.trials(path)


def simulate(rng: np.random.Generator, trials: pd.DataFrame, paired: float) -> pd.DataFrame:
    """The same trials with losses that differ by chance only; ``paired`` is the correlation within a seed."""
    seeds = {seed: rng.normal() for seed in sorted(trials["seed"].unique())}
    own = rng.normal(size=len(trials))
    shared = trials["seed"].map(seeds).to_numpy(dtype=float)
    return trials.assign(**{"val/loss": 1.7 + 0.03 * (np.sqrt(paired) * shared + np.sqrt(1 - paired) * own)})


def says_something(words: pd.Series[Any]) -> bool:
    return bool(words.str.startswith(("better", "worse")).any())


@pytest.mark.parametrize("paired", [0.0, 0.8])
def test_studies_without_an_effect_rarely_claim_one(tmp_path: Path, paired: float) -> None:
    plan, trials = study(tmp_path / "study", "one_at_a_time")
    rng = np.random.default_rng(20_261_130)
    false, uncorrected, covered = 0, 0, 0
    for _ in range(STUDIES):
        frame = effects(plan, simulate(rng, trials, paired))
        covers = (frame["low95"] <= 0) & (frame["high95"] >= 0)
        false += says_something(frame["verdict"])
        uncorrected += not covers.all()
        covered += int(covers.sum())
    assert false <= BOUND
    assert uncorrected > BOUND  # so the bound can tell simultaneous intervals from others
    assert covered / (STUDIES * 5) == pytest.approx(0.95, abs=0.015)


def test_factorial_studies_without_an_effect_rarely_claim_one(tmp_path: Path) -> None:
    plan, trials = study(tmp_path / "study", "full")
    rng = np.random.default_rng(20_261_130)
    main, interactions, told = 0, 0, 0
    for _ in range(STUDIES):
        factorial = Factorial(plan, simulate(rng, trials, 0.5))
        main += says_something(factorial.main_effects()["verdict"])
        interactions += bool(factorial.interactions()["large"].any())
        told += any(verdict.word.startswith(("better", "worse")) for verdict in factorial.verdicts())
    assert 0 < main <= told <= BOUND
    assert 0 < interactions <= BOUND


def test_intervals_find_an_effect_that_is_there(tmp_path: Path) -> None:
    plan, trials = study(tmp_path / "study", "one_at_a_time")
    rng = np.random.default_rng(1)
    shift = trials["name"].map(dict(zip(trials["name"].unique(), itertools.chain([0.0], itertools.repeat(0.1)),
                                        strict=False))).to_numpy(dtype=float)  # fmt: skip
    found = covered = 0
    for _ in range(50):
        frame = simulate(rng, trials, 0.8)
        got = effects(plan, frame.assign(**{"val/loss": frame["val/loss"] + shift}))
        found += int((got["verdict"] == "worse").sum())
        covered += int(((got["low"] <= 0.1) & (got["high"] >= 0.1)).all())
    assert found > 0.9 * 50 * 5
    assert covered >= stats.binom.ppf(0.01, 50, 0.95)
