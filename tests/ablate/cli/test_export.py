"""Which trial `ablate export` means, and what it says of one that has nothing to export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ablate.cli.export import find_trial
from ablate.errors import InputError
from ablate.records.layout import StudyFolder
from tests.study_maker import make_study


def test_a_trial_that_has_not_begun_is_said(tmp_path: Path) -> None:
    waiting = [("placement=post", 0)]
    study = StudyFolder(make_study(tmp_path / "made", factors={"placement": ["pre", "post"]}, seeds=1, waiting=waiting))
    plan = json.loads(study.plan.read_text())
    (trial,) = (each["id"] for each in plan["trials"] if each["arm"] != plan["baseline"])
    begun = find_trial(study.path, "baseline", tmp_path, 0)
    assert begun.result.is_file()
    for tuning, why in ((None, "it has not begun yet"), ({"params": []}, "its arm is still being tuned")):
        arm = next(each for each in plan["arms"] if each["id"] != plan["baseline"])
        arm["tuning"] = tuning and {**tuning, "identity": "aaaa"}
        study.plan.write_text(json.dumps(plan))
        with pytest.raises(InputError) as raised:
            find_trial(study.path, "placement=post", tmp_path, 0)
        assert str(raised.value) == (
            f"error[S412]: trial {trial} has no trained model: {why}\n"
            f"  = help: `ablate status {study.path}` says what to do next"
        )
