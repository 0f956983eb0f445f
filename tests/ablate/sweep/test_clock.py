"""A clock that is set back between two calls: nothing goes by the time of day, and attempts by their number."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

import pytest

from ablate.records.layout import StudyFolder
from ablate.sweep import loop
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
    monkeypatch.setattr(loop, "now", lambda: datetime.fromtimestamp(began - AHEAD, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    for _ in range(2):
        Run(study, plan, retry="failed")
    assert [(number, step) for number, step, _ in attempts(study.trial("t000"))] == [(1, 0), (2, 2), (3, 4)]
    assert_exactly_once(study, plan)
    again = Run(study, plan)
    assert (again.of(Reconciled), again.of(TrialStarted)) == ([], [])
