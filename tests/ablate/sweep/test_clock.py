"""A clock that is set back or stands still: nothing goes by the time of day, and attempts by their number."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

import pytest

from ablate.records.layout import StudyFolder, read_json
from ablate.sweep import backlog
from ablate.sweep.events import Reconciled, TrialStarted
from tests.ablate.sweep.stub_study import Run, assert_exactly_once, attempts, make_plan

AHEAD = 10 * 365 * 24 * 3600.0
"""Seconds by which the clock of the first call was ahead."""


def test_a_clock_that_is_set_back_changes_nothing(study: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan([{"raises": "no", "attempts": [1, 2], "after": 3, "checkpoint": 2}, {}])
    Run(study, plan)
    for path in sorted(study.path.rglob("*"), reverse=True):
        later = path.stat().st_mtime + AHEAD
        os.utime(path, (later, later))
    began = time.time()
    monkeypatch.setattr(time, "time", lambda: began - AHEAD)
    monkeypatch.setattr(
        backlog, "now", lambda: datetime.fromtimestamp(began - AHEAD, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    )
    for _ in range(2):
        Run(study, plan, retry="failed")
    assert [(number, step) for number, step, _ in attempts(study.trial("t000"))] == [(1, 0), (2, 2), (3, 4)]
    assert_exactly_once(study, plan)
    again = Run(study, plan)
    assert (again.of(Reconciled), again.of(TrialStarted)) == ([], [])


def test_trials_of_one_second_and_of_any_name_do_not_clash(study: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "now", lambda: "2026-01-31T12:00:00Z")
    plan = make_plan([{"raises": "no", "attempts": [1]}, {}, {"raises": "no", "attempts": [1]}, {}], seeds=2)
    for arm, name in zip(plan["arms"], ["a/../../b", "x" * 300, "x" * 299 + "y", "a/../../b "], strict=True):
        arm["name"] = name
        arm["levels"] = {"x/y": name}
    Run(study, plan, parallel=4)
    Run(study, plan, parallel=4, retry="failed")
    assert_exactly_once(study, plan)
    made = sorted(path.name for path in (study.path / "trials").iterdir())
    assert made == sorted(trial["id"] for trial in plan["trials"])
    names = {arm["id"]: arm["name"] for arm in plan["arms"]}
    for trial in plan["trials"]:
        manifest = read_json(study.trial(trial["id"]).config)
        assert (manifest["arm_name"], manifest["seed"]) == (names[trial["arm"]], trial["seed"])
