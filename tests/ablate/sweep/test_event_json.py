from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from ablate.records.usage import Use
from ablate.sweep.event_json import as_json, kind, of_json
from ablate.sweep.events import (
    BatchSplit,
    Beat,
    Counts,
    Crowded,
    Event,
    Failure,
    Growing,
    IndexBehind,
    Outcome,
    Paused,
    Pruned,
    Reconciled,
    Stopping,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    TrialProgress,
    TrialStarted,
    Tuned,
    WorkerLost,
)

COUNTS = Counts(6, 1, 0, 1, 1, 3)
FAILURE = Failure("t1", "scale=off", 1, 2, "RuntimeError: no", Path("runs/x/log.txt"), ("a", "b"))
EVENTS: list[Event] = [
    SweepStarted(COUNTS, 4, 2, "val/loss", 4.0),
    Crowded(1, "for lack of memory: one may take 2.1 GB, and 0.9 GB are free; there are 2 cores"),
    Reconciled(None, "was new"),
    IndexBehind("locked", 3, given_up=True),
    Growing("4 trials go on from step 10, where the same trial of fewer steps ended"),
    TrialStarted("t1", "scale=off", 1, 2, 0, 1.5, 0.25),
    TrialProgress("t1", 0, 3, 10, 2.5, 100.0),
    BatchSplit("t1", "scale=off", 1, 8),
    TrialEnded("t1", "scale=off", 1, 2, 0, "failed", None, "RuntimeError: no", 1.5, FAILURE),
    Paused("t3", "scale=off", 1, 0, 4, 2.5),
    Pruned("t3", "scale=off", 1, 4),
    Tuned("scale=off", {"training.optimizer.lr": 0.01}, 2.5, 8),
    WorkerLost("t1", "scale=off", 1, 1, 0, "SIGKILL", again=True),
    Stopping("SIGTERM", Use("wall", 10, 11)),
    Beat(COUNTS),
    SweepEnded(Outcome(COUNTS, (FAILURE,)), interrupted=True),
]


def test_every_event_has_a_name_and_comes_back_as_it_was() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(Event))
    assert [kind(type(event)) for event in EVENTS] == [
        "sweep_started", "crowded", "reconciled", "index_behind", "growing", "trial_started", "trial_progress",
        "batch_split", "trial_ended",
        "paused", "pruned", "tuned", "worker_lost",
        "stopping", "beat", "sweep_ended",
    ]  # fmt: skip
    for event in EVENTS:
        assert of_json(json.loads(json.dumps(as_json(event), allow_nan=False))) == event


def test_values_are_plain() -> None:
    assert as_json(EVENTS[8]) == {
        "event": "trial_ended",
        "trial": "t1",
        "arm": "scale=off",
        "seed": 1,
        "attempt": 2,
        "slot": 0,
        "end": "failed",
        "value": None,
        "reason": "RuntimeError: no",
        "seconds": 1.5,
        "failure": {
            "trial": "t1",
            "arm": "scale=off",
            "seed": 1,
            "attempt": 2,
            "error": "RuntimeError: no",
            "log": "runs/x/log.txt",
            "log_tail": ["a", "b"],
            "end": "failed",
            "cause": None,
        },
    }
    assert as_json(TrialProgress("t1", 0, 3, 10, float("nan"), float("inf"))) == {
        "event": "trial_progress", "trial": "t1", "slot": 0, "step": 3, "steps": 10, "loss": None,
        "tokens_per_second": None,
    }  # fmt: skip


@pytest.mark.parametrize("value", [{}, {"event": "rained"}, {"event": "reconciled", "trial": 3}])
def test_what_is_no_event_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"no event of a sweep|validation error"):
        of_json(value)
