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

import ablate
from ablate.analysis.effects import effects
from ablate.analysis.factorial import Factorial
from ablate.analysis.pairing import contrast, wilson
from ablate.records import frames
from tests.studies import aa, calibration, simulation
from tests.studies.simulation import ALIKE, SKEWED, Case, Found
from tests.study_maker import make_study

ROOT = Path(__file__).parents[3]

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


# --- the study whose tables are in reports/calibration, at a small size ---------------------------------------------


@pytest.mark.parametrize("name", simulation.NOISE)
def test_noise_has_mean_zero_and_variance_one(name: str) -> None:
    values = simulation.NOISE[name](np.random.default_rng(5), (400_000,))
    assert values.mean() == pytest.approx(0, abs=0.01)
    loose = 0.3 if name in ("log-normal", "t, 3 df") else 0.02
    assert values.var() == pytest.approx(float(name != "none"), abs=loose)


def test_effects_all_at_once_are_those_of_the_report() -> None:
    differences = np.random.default_rng(0).normal(1.0, 1.0, (50, 3, 6))
    estimates = simulation.Estimates.of(differences)
    found = contrast(differences[4, 1], family=3)
    assert estimates.effect[4, 1] - estimates.together[4, 1] == pytest.approx(found.low)
    assert estimates.effect[4, 1] + estimates.alone[4, 1] == pytest.approx(found.high95)
    assert len(np.unique(estimates.words(0.8))) >= 3
    assert simulation.check(differences, 0.8) == 0


def test_what_disagrees_with_the_report_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.random.default_rng(0).normal(1.0, 1.0, (5, 3, 6))
    monkeypatch.setattr("tests.studies.simulation.ALPHA", 0.04)
    assert simulation.check(differences, 0.8) == 15


def test_a_share_of_studies_has_wilsons_interval() -> None:
    share = simulation.Share.of(np.arange(200) < 10)
    assert (share.value, share.low, share.high) == pytest.approx((0.05, *wilson(10, 200)))
    assert str(simulation.Share.of(np.array([]))) == "–"


@pytest.mark.parametrize("effects", [False, True], ids=["null", "effects"])
@pytest.mark.parametrize("seeds", [3, 6])
@pytest.mark.parametrize("shapes", ALIKE, ids=lambda shapes: shapes.name)
def test_noise_that_arms_and_baseline_share_misleads_rarely(shapes: Any, seeds: int, effects: bool) -> None:
    found = simulation.simulate(Case(shapes, 5, seeds, effects), 1_000)
    assert found.misled.value <= stats.binom.ppf(0.999, 1_000, 0.05) / 1_000
    assert 0.93 <= found.alone.value <= (0.97 if shapes.name == "normal" else 1)
    assert found.disagreements == 0
    assert not calibration.misses(found)


def test_skewed_differences_mislead_and_the_report_warns() -> None:
    by_name = {shapes.name: shapes for shapes in SKEWED}
    found = simulation.simulate(Case(by_name["log-normal in the arms, none in the baseline"], 20, 6, False), 500)
    assert found.false.low > 0.5
    assert found.warned.low > 0.9
    assert calibration.misses(found) == [f"better or worse is false in {found.false}% of studies"]


def test_true_effects_are_found_and_false_words_counted() -> None:
    found = simulation.simulate(Case(ALIKE[0], 5, 10, True), 1_000)
    assert found.told.low > 0.95
    assert 0 < found.misled.value < 0.05


def required(found: dict[str, list[Found]]) -> list[Found]:
    return [row for name in calibration.REQUIRED for row in found[name]]


def test_the_published_tables_have_every_case_and_say_what_misses() -> None:
    published = (ROOT / "reports" / "calibration" / "README.md").read_text()
    made = calibration.page(calibration.sections(5), 5)

    def cases(text: str) -> list[list[str]]:
        return [line.split(" | ")[:3] for line in text.splitlines() if line.startswith("| ")]

    assert cases(published) == cases(made)
    assert f"{simulation.STUDIES:,} times" in published
    promised, _, rest = published.partition("## Skewed differences")
    assert promised.count("| holds |") == 72
    assert "**miss**" not in promised
    assert "**miss**" in rest


@pytest.mark.slow
def test_the_whole_study_misses_nothing_that_is_required() -> None:
    found = calibration.sections()
    assert {name: len(rows) for name, rows in found.items()} == {"null": 36, "judged": 36, "skewed": 54}
    assert [(row.case, calibration.misses(row)) for row in required(found) if calibration.misses(row)] == []
    assert sum(row.disagreements for rows in found.values() for row in rows) == 0
    assert all(row.false.high - row.false.low < 0.01 for row in required(found))  # so 5% is told from 6%


# --- the A/A experiment ---------------------------------------------------------------------------------------------


def same_arms(folder: Path, arms: int, outcomes: dict[str, float] | None = None) -> Path:
    streams = [None, *(f"s{i:02}" for i in range(1, arms + 1))]
    means = {f"stream=s{i:02}": 1.68 for i in range(1, arms + 1)} | {"baseline": 1.68} | (outcomes or {})
    return make_study(folder, name="aa", factors={"stream": streams}, outcomes=means)


def test_an_a_a_study_passes_unless_its_arms_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aa, "STUDIES", 10_000)
    judged = aa.judge(same_arms(tmp_path / "same", 10))
    assert judged.passes
    assert (judged.arms, judged.seeds) == (10, 6)
    assert judged.bound in (1, 2)
    other = aa.judge(same_arms(tmp_path / "other", 10, {"stream=s01": 1.9, "stream=s02": 1.9, "stream=s03": 1.4}))
    assert (other.claimed, other.passes) == (3, False)
    assert str(other) == (
        "3 of 10 arms, with 6 seeds, are called better or worse; a calibrated analysis calls so at most "
        f"{other.bound} in 99% of such experiments: MISS"
    )


@pytest.mark.slow
def test_the_a_a_experiment_finds_no_more_than_chance_allows(tmp_path: Path) -> None:
    results = ablate.run(ROOT / "experiments" / "aa.yaml", runs=tmp_path)
    judged = aa.judge(results.folder)
    assert (judged.arms, judged.seeds) == (40, 6)
    assert judged.passes, judged


def test_what_is_no_a_a_study_is_refused(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", factors={"placement": ["pre", "post"]})
    with pytest.raises(ValueError, match="is no complete A/A study"):
        aa.judge(study)


def test_an_a_a_study_that_is_not_there_yet_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = make_study(tmp_path / "study", factors={"stream": [None, "s01"]}, waiting=[("stream=s01", 5)])
    assert aa.main(study) == 1
    assert capsys.readouterr().err == f"{study} is no complete A/A study\n"
    assert aa.main(tmp_path / "none") == 1
    assert "Traceback" not in capsys.readouterr().err
