"""The noise floor, by hand: a study whose baseline ran once more with seed 0."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from ablate.analysis.results import Results
from ablate.records.layout import StudyFolder
from tests.study_maker import make_study

MEANS = {0: 1.5, 1: 1.7, 2: 1.6}
"""The baseline's outcomes by seed; their sd is 0.1."""


def outcomes(name: str, levels: object, seed: int) -> float:
    return MEANS[seed] + (0.3 if name != "baseline" else 0.0)


def repeated(folder: Path, by: float | None = 0.0) -> Results:
    """A study with a repeat whose final value is other by so much; None for one that has not run."""
    study = StudyFolder(make_study(folder, factors={"placement": ["pre", "post"]}, seeds=3, outcomes=outcomes))
    plan = json.loads(study.plan.read_text())
    plan["repeats"] = [{"id": "again", "arm": plan["baseline"], "seed": 0, "repeat": 1}]
    study.plan.write_text(json.dumps(plan))
    if by is not None:
        first = next(t["id"] for t in plan["trials"] if (t["arm"], t["seed"]) == (plan["baseline"], 0))
        shutil.copytree(study.trial(first).path, study.trial("again").path)
        record: dict[str, Any] = json.loads(study.trial("again").result.read_text())
        record |= {"trial": "again", "metrics": record["metrics"] | {"val/loss": 1.5 + by}}
        study.trial("again").result.write_text(json.dumps(record))
    return Results(study.path)


def told(results: Results) -> str:
    (sentence,) = [caveat for caveat in results.caveats() if caveat.startswith("Noise floor")]
    return sentence


def test_a_repeat_is_set_beside_the_seeds_and_is_in_nothing_else(tmp_path: Path) -> None:
    results = repeated(tmp_path / "study", by=0.004)
    (row,) = results.noise_floor().to_dict("records")
    assert (row["seed"], row["repeat"], row["end"]) == (0, 1, "complete")
    assert (row["value"], row["again"], row["difference"], row["sd"]) == pytest.approx((1.5, 1.504, 0.004, 0.1))
    plain = Results(make_study(tmp_path / "plain", factors={"placement": ["pre", "post"]}, seeds=3, outcomes=outcomes))
    assert plain.noise_floor().empty
    assert list(plain.noise_floor().columns) == list(results.noise_floor().columns)
    assert results.counts() == plain.counts()
    assert results.effects().equals(plain.effects())
    assert [verdict.sentence for verdict in results.verdicts()] == [verdict.sentence for verdict in plain.verdicts()]


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        (0.0, "differs by 0 nats val/loss (bit-identical); between seeds the sd is 0.1 nats."),
        (
            0.03,
            "differs by 0.03 nats val/loss (not bit-identical); between seeds the sd is 0.1 nats; that is no less than "
            "the smallest effect that matters, so effects of that size may be rounding.",
        ),
        (None, "gives no difference: the second run has not ended yet."),
    ],
)
def test_what_is_said_of_it(tmp_path: Path, by: float | None, sentence: str) -> None:
    assert told(repeated(tmp_path / "study", by)) == f"Noise floor: the baseline run twice with seed 0 {sentence}"


def test_a_repeat_of_a_seed_that_the_baseline_has_no_trial_of_has_nothing_to_differ_from(tmp_path: Path) -> None:
    study = StudyFolder(repeated(tmp_path / "study", by=0.004).folder)
    plan = json.loads(study.plan.read_text())
    plan["trials"] = [each for each in plan["trials"] if (each["arm"], each["seed"]) != (plan["baseline"], 0)]
    study.plan.write_text(json.dumps(plan))
    results = Results(study.path)
    (row,) = results.noise_floor().to_dict("records")
    assert math.isnan(row["value"]) and math.isnan(row["difference"])
    assert (row["again"], row["identical"]) == (pytest.approx(1.504), False)
    assert told(results).endswith("with seed 0 gives no difference: the first run has no value.")


def test_a_repeat_that_differs_on_the_way_is_not_bit_identical(tmp_path: Path) -> None:
    results = repeated(tmp_path / "study", by=0.0)
    other = next(t for t in results.plan["trials"] if (t["arm"], t["seed"]) == (results.plan["baseline"], 1))
    study = StudyFolder(results.folder)
    shutil.copy(study.trial(other["id"]).attempt(1).curves, study.trial("again").attempt(1).curves)
    assert "differs by 0 nats val/loss (not bit-identical)" in told(Results(study.path))
