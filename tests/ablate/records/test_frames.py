from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ablate.errors import InputError
from ablate.records import frames
from ablate.records.layout import StudyFolder
from tests.study_maker import HOSTILE, hold_lock, make_study


def trial_folder(study: Path, name: str, seed: int) -> Path:
    frame = frames.trials(study)
    row = frame[(frame["name"] == name) & (frame["seed"] == seed)].iloc[0]
    return StudyFolder(study).trial(row["trial"]).path


def row(study: Path, name: str, seed: int) -> dict[str, Any]:
    frame = frames.trials(study)
    return {str(k): v for k, v in frame[(frame["name"] == name) & (frame["seed"] == seed)].iloc[0].to_dict().items()}


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Every end that a running study of this design can have."""
    return make_study(
        tmp_path / "mixed",
        seeds=2,
        diverged={("placement=post", 0): "nonfinite", ("placement=post", 1): "loss_above_initial"},
        failed={("ratio=1", 0): HOSTILE},
        running=[("scale=off", 1)],
        waiting=[("ratio=2", 1)],
        excluded=[{"levels": {"placement": "post", "scale": "off", "residual": None, "ratio": 4}, "why": "too hot"}],
    )


def test_trials_has_one_row_for_each_planned_trial_in_the_plans_order(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", seeds=[3, 11])
    frame = frames.trials(study)
    assert list(frame["seed"]) == [3] * 6 + [11] * 6
    assert list(frame["name"][:6]) == [
        "baseline", "placement=post", "scale=off", "residual=none", "ratio=1", "ratio=2"
    ]  # fmt: skip
    assert (frame["end"] == "complete").all()
    assert frame["trial"].is_unique


def test_trials_has_what_the_record_says_with_its_types(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", seeds=1, steps=40, outcomes={"scale=off": 1.9})
    got = row(study, "scale=off", 0)
    record = json.loads((trial_folder(study, "scale=off", 0) / "result.json").read_text())
    assert got["val/loss"] == record["metrics"]["val/loss"]
    assert got["val/bits_per_char"] == pytest.approx(got["val/loss"] / math.log(2))
    assert (got["steps"], got["tokens"], got["attempt"]) == (40, 40 * 1024, 1)
    assert (got["factor.scale"], got["factor.ratio"]) == ("off", 4)
    assert (got["unigram_entropy"], got["initial_loss"], got["clip_rate"]) == (3.24, 4.9, 0.31)
    assert got["seconds"] > 0
    assert got["tokens_per_second"] == pytest.approx(40 * 1024 / got["seconds"])
    assert (got["peak_memory"], got["parameters"], got["sealed"]) == (300_000_000, 163712, record["sealed"])
    dtypes = frames.trials(study).dtypes
    whole = ("bad_step", "first_bad_step", "attempt", "steps", "tokens", "peak_memory", "parameters")
    assert {str(dtypes[c]) for c in whole} == {"Int64"}
    assert dtypes["factor.scale"] == np.dtype(object)


def test_every_state_is_counted_once_and_they_sum_to_planned(mixed: Path) -> None:
    assert frames.counts(mixed) == {
        "complete": 7, "diverged": 2, "failed": 1, "timed_out": 0, "pruned": 0, "excluded": 2, "running": 0,
        "waiting": 2, "planned": 14,
    }  # fmt: skip


def test_an_open_attempt_runs_only_while_a_driver_holds_the_lock(mixed: Path) -> None:
    lost = row(mixed, "scale=off", 1)
    assert (lost["end"], lost["reason"], lost["attempt"]) == ("waiting", "attempt 1 was interrupted", 1)
    with hold_lock(mixed):
        assert frames.lock_held(StudyFolder(mixed).lock)
        assert row(mixed, "scale=off", 1)["end"] == "running"
        assert frames.counts(mixed)["running"] == 1
    assert not frames.lock_held(StudyFolder(mixed).lock)


def test_a_lock_that_was_never_made_is_not_held(tmp_path: Path) -> None:
    assert not frames.lock_held(tmp_path / "lock")


def test_a_diverged_trial_has_its_rule_and_step_and_no_metric(mixed: Path) -> None:
    got = row(mixed, "placement=post", 0)
    assert (got["end"], got["rule"], got["bad_step"]) == ("diverged", "nonfinite", 39)
    assert got["reason"] == "nonfinite at step 39"
    assert (got["first_bad"], got["first_bad_step"], got["first_bad_module"]) == ("output", 39, "block.2.feed_forward")
    assert math.isnan(got["val/loss"])
    other = row(mixed, "placement=post", 1)
    assert (other["rule"], other["first_bad"], other["first_bad_module"]) == ("loss_above_initial", "", "")
    assert pd.isna(other["first_bad_step"])


def test_a_failed_trial_has_the_error_of_its_newest_attempt_unchanged(mixed: Path) -> None:
    got = row(mixed, "ratio=1", 0)
    assert (got["end"], got["reason"], got["attempt"]) == ("failed", HOSTILE, 2)
    assert pd.isna(got["steps"])
    assert math.isnan(got["seconds"])


def test_a_trial_that_timed_out_is_no_failed_one(mixed: Path) -> None:
    end = trial_folder(mixed, "ratio=1", 0) / "a002" / "end.json"
    end.write_text(json.dumps({"end": "timed_out", "error": "20 minutes are over", "at": "2026-11-30T06:20:00Z"}))
    assert row(mixed, "ratio=1", 0)["end"] == "timed_out"
    assert frames.counts(mixed)["timed_out"] == 1


def test_an_excluded_cell_has_a_row_a_seed_with_its_reason_and_no_identity(mixed: Path) -> None:
    frame = frames.trials(mixed)
    cell = frame[frame["end"] == "excluded"]
    assert list(cell["seed"]) == [0, 1]
    assert list(cell["trial"]) == ["", ""]
    assert set(cell["reason"]) == {"too hot"}
    assert set(cell["name"]) == {"placement=post, scale=off, residual=null, ratio=4"}


def test_an_infinite_loss_is_a_divergence_whatever_the_record_calls_it(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", seeds=1)
    result = trial_folder(study, "scale=off", 0) / "result.json"
    record = json.loads(result.read_text())
    record["metrics"]["val/loss"] = math.inf
    result.write_text(json.dumps(record))
    got = row(study, "scale=off", 0)
    assert (got["end"], got["reason"]) == ("diverged", "nonfinite at step 100")
    assert math.isnan(got["val/loss"])


def test_what_is_beside_the_objective_and_infinite_is_missing(tmp_path: Path) -> None:
    study = StudyFolder(make_study(tmp_path / "study", seeds=1, steps=20))
    place = next(study.trials()).result
    record = json.loads(place.read_text())
    record |= {"tokens_per_second": math.inf, "seconds": -math.inf}
    record["facts"]["clip_rate"] = record["metrics"]["val/bits_per_char"] = math.inf
    place.write_text(json.dumps(record))
    row = frames.trials(study.path).set_index("trial").loc[record["trial"]]
    assert row["end"] == "complete"
    assert row["val/loss"] == record["metrics"]["val/loss"]
    assert row[["tokens_per_second", "seconds", "clip_rate", "val/bits_per_char"]].isna().all()


def test_levels_of_any_type_stay_their_own(tmp_path: Path) -> None:
    levels = [None, 1, 1.0, True, "null", "1"]
    study = make_study(tmp_path / "study", factors={"width": levels}, seeds=1)
    column = frames.trials(study)["factor.width"]
    assert [type(level) for level in column] == [type(level) for level in levels]
    assert list(column) == levels
    assert column.map(frames.spelled).nunique() == 6
    assert list(column.map(frames.spelled)) == ["null", "1", "1.0", "true", '"null"', '"1"']


def test_a_null_level_survives_a_groupby_and_a_csv(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", factors={"position": ["learned", None]}, seeds=2)
    frame = frames.trials(study)
    spelled = frame.assign(level=frame["factor.position"].map(frames.spelled))
    assert spelled.groupby("level")["val/loss"].count().to_dict() == {"learned": 2, "null": 2}
    assert spelled[["level"]].to_csv(index=False).split() == ["level", "learned", "null", "learned", "null"]


def test_trials_that_are_no_longer_planned_are_not_read(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", seeds=2)
    plan = json.loads(StudyFolder(study).plan.read_text())
    dropped = plan["trials"].pop()
    StudyFolder(study).plan.write_text(json.dumps(plan))
    (StudyFolder(study).trial(dropped["id"]).result).write_text("not even JSON")
    assert len(frames.trials(study)) == 11
    assert dropped["id"] not in set(frames.curves(study)["trial"].unique())


@pytest.mark.parametrize("content", ["", '{"schema": 1, "trial": "x', "[]", "{}", '{"end": "vanished"}'])
def test_a_damaged_record_is_an_error_that_names_the_file_and_the_remedy(tmp_path: Path, content: str) -> None:
    study = make_study(tmp_path / "study", seeds=1)
    result = trial_folder(study, "scale=off", 0) / "result.json"
    result.write_text(content)
    with pytest.raises(InputError) as caught:
        frames.trials(study)
    text = str(caught.value)
    assert "error[S403]: `result.json` cannot be read" in text
    assert f" --> {result}" in text
    assert f"remove the folder `{result.parent}` and run the experiment again" in text


def test_a_record_of_another_trial_is_an_error(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", seeds=1)
    here, there = trial_folder(study, "scale=off", 0), trial_folder(study, "ratio=1", 0)
    shutil.copy(there / "result.json", here / "result.json")
    with pytest.raises(InputError, match="it is not the record of this trial"):
        frames.trials(study)


def test_a_damaged_end_is_an_error(mixed: Path) -> None:
    end = trial_folder(mixed, "ratio=1", 0) / "a002" / "end.json"
    end.write_text('{"end": "fai')
    with pytest.raises(InputError, match=r"`end\.json` cannot be read"):
        frames.trials(mixed)


def test_there_must_be_a_study(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        frames.trials(tmp_path / "nothing")
    assert str(caught.value) == (
        f"error[S401]: there is no study at `{tmp_path / 'nothing'}`\n"
        "  = help: check the path, or run the experiment first with `ablate run`"
    )
    with pytest.raises(InputError, match=r"error.S402.: .* holds no plan.json"):
        frames.counts(tmp_path)


@pytest.mark.parametrize("content", ["", "{}", '{"schema": 2}'])
def test_a_plan_that_cannot_be_read_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(InputError, match=r"error.S403.: `plan\.json` cannot be read"):
        frames.read_plan(tmp_path)


def test_curves_are_those_of_the_files_with_the_trial_beside(mixed: Path) -> None:
    curves = frames.curves(mixed)
    trial = row(mixed, "baseline", 1)
    mine = curves[curves["trial"] == trial["trial"]]
    assert set(mine["name"]) == {"baseline"}
    assert set(mine["seed"]) == {1}
    steps = mine.loc[mine["metric"] == "train/loss", "step"]
    assert list(steps) == list(range(100))
    last = mine[(mine["metric"] == "val/loss") & (mine["step"] == 100)]["value"]
    assert list(last) == [trial["val/loss"]]
    assert list(curves["name"].cat.categories) == list(dict.fromkeys(frames.trials(mixed)["name"]))[:6]


def test_curves_keep_what_is_not_finite(mixed: Path) -> None:
    curves = frames.curves(mixed)
    bad = curves[(curves["name"] == "placement=post") & (curves["seed"] == 0) & (curves["metric"] == "train/loss")]
    assert len(bad) == 40
    assert bad["value"].isna().sum() == 1


def test_only_sealed_trials_have_series(mixed: Path) -> None:
    frame = frames.trials(mixed)
    sealed = set(frame.loc[frame["end"].isin(["complete", "diverged"]), "trial"])
    assert set(frames.curves(mixed)["trial"].unique()) == sealed
    assert set(frames.probes(mixed, frame=frame)["trial"].unique()) == sealed


def test_probes_have_layers_roles_and_parts(mixed: Path) -> None:
    probes = frames.probes(mixed)
    assert list(probes.columns) == [
        "trial", "arm", "name", "seed", "step", "metric", "layer", "role", "part", "value"
    ]  # fmt: skip
    norms = probes[(probes["name"] == "baseline") & (probes["seed"] == 0) & (probes["metric"] == "grad_norm")]
    assert set(norms["role"]) == {"q", "k", "v", "o", "w1", "w2", "norm", "embed", "position", "head"}
    assert norms.loc[norms["role"] == "embed", "layer"].isna().all()
    assert set(norms["layer"].dropna()) == {0, 1, 2}
    assert set(probes.loc[probes["metric"] == "entropy", "part"]) == {"head.0", "head.1", "head.2", "head.3"}
    assert probes.loc[probes["metric"] == "stream_rms", ["role", "part"]].isna().all().all()


def test_a_study_without_sealed_trials_has_empty_series(tmp_path: Path) -> None:
    study = make_study(
        tmp_path / "study", factors={"placement": ["pre", "post"]}, seeds=1, waiting=[("baseline", 0)],
        failed=[("placement=post", 0)],
    )  # fmt: skip
    assert frames.curves(study).empty
    assert list(frames.probes(study).columns)[:5] == ["trial", "arm", "name", "seed", "step"]


@pytest.mark.parametrize("damage", ["missing", "truncated", "other"])
def test_a_damaged_series_is_an_error(tmp_path: Path, damage: str) -> None:
    study = make_study(tmp_path / "study", seeds=1)
    attempt = trial_folder(study, "ratio=1", 0) / "a001"
    if damage == "missing":
        (attempt / "curves.arrow").unlink()
    elif damage == "truncated":
        (attempt / "curves.arrow").write_bytes((attempt / "curves.arrow").read_bytes()[:200])
    else:
        shutil.copy(attempt / "probes.arrow", attempt / "curves.arrow")
    with pytest.raises(InputError, match=r"error.S403.: `curves\.arrow` cannot be read"):
        frames.curves(study)


def test_torch_is_not_imported() -> None:
    code = (
        "import sys, ablate.records.frames, ablate.analysis.results\n"
        "sys.exit(any(name.partition('.')[0] in ('torch', 'pytorch_lightning') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
