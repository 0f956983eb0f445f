from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ablate import api
from ablate.errors import RefusedError
from ablate.experiment import Experiment
from ablate.records.layout import StudyFolder
from ablate.sweep.events import Interrupted
from ablate.sweep.lock import driving
from ablate.sweep.signals import giving_up

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


@pytest.mark.parametrize("number", NUMBERS)
def test_while_nothing_runs_a_signal_ends_it_at_once(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as stopped, giving_up():
        os.kill(os.getpid(), number)
    assert str(stopped.value) == f"stopped by {number.name}; nothing was started"
    assert signal.getsignal(number) is before


@pytest.fixture
def experiment() -> Experiment:
    return Experiment.of(
        {
            "name": "small",
            "question": "q",
            "task": {"kind": "copy", "length": 4, "symbols": 4},
            "model": {"kind": "rnn_seq2seq", "width": 8, "attention": "none"},
            "training": {"optimizer": {"kind": "adamw", "lr": 0.01}, "batch": 4},
            "factors": {"attention": {"path": "model.attention", "levels": ["none", "luong"]}},
            "seeds": 1,
            "objective": {"metric": "val/accuracy", "goal": "max", "smallest_effect": 0.05},
            "budget": {"steps": 2},
        }
    )


def test_a_signal_while_the_plan_is_made_leaves_nothing(experiment: Experiment, tmp_path: Path) -> None:
    def terminate(done: int, arms: int) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted, match="stopped by SIGTERM; nothing was started"):
        api.sweep_plan(experiment, runs=tmp_path / "runs", on_arm=terminate)
    assert not (tmp_path / "runs").exists()


def test_a_study_that_another_process_runs_is_refused_before_anything_is_planned(
    experiment: Experiment, tmp_path: Path
) -> None:
    planned: list[int] = []
    with (
        driving(StudyFolder(tmp_path / "small")),
        pytest.raises(RefusedError, match=f"is being run by process {os.getpid()} since "),
    ):
        api.sweep_plan(experiment, runs=tmp_path, on_arm=lambda done, arms: planned.append(done))
    assert planned == []
