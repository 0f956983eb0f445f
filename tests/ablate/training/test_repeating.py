"""Trials in one process: none leaves anything behind for the next."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any

import pytest

from ablate.records.layout import read_json
from ablate.records.series import read_series
from ablate.registry import Registry
from ablate.slots import TRAINER, Ended, Job
from ablate.sweep.workers.local import LocalPool
from ablate.training.trial import train
from tests.ablate.sweep.stub_study import descendants
from tests.trial_maker import make_trial


def outcome(folder: Path) -> tuple[Any, ...]:
    """All that a trial computed."""
    record = read_json(folder / "result.json")
    series = [read_series(folder / record["files"][name]).to_pydict() for name in ("curves", "probes")]
    return record["metrics"], record["facts"], *series


def test_the_same_trial_first_and_third_in_one_process_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    """Row 17 of the users' cases."""
    registry = Registry.installed()
    other = {"dropout": 0.2, "placement": "post", "depth": 1}
    for name, model, seed in (("first", {"dropout": 0.1}, 0), ("second", other, 5), ("third", {"dropout": 0.1}, 0)):
        folder = make_trial(tmp_path / name, model=model, seed=seed, steps=20, probes={"every": 5})
        assert train(folder, 1, registry) == "complete"
    assert outcome(tmp_path / "first") == outcome(tmp_path / "third") != outcome(tmp_path / "second")


@pytest.mark.slow
def test_memory_does_not_grow_over_fifty_trials_of_one_worker(tmp_path: Path) -> None:
    """Row 17 of the users' cases."""
    held = []
    with contextlib.closing(LocalPool(1, TRAINER)) as pool:
        for number in range(50):
            folder = make_trial(tmp_path / f"t{number:02d}", steps=30)
            folder.attempt(1).path.mkdir()
            pool.submit(Job(folder.id, str(folder.path), 1))
            while not any(isinstance(report, Ended) for report in pool.reports(1.0)):
                pass
            assert folder.result.exists()
            _, worker = descendants(os.getpid())
            found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{worker}/status").read_text())
            assert found
            held.append((worker, int(found[1])))
    assert len({worker for worker, _ in held}) == 1
    kilobytes = [each for _, each in held]
    assert max(kilobytes[5:]) - kilobytes[4] < 2_000, kilobytes  # it was 20,000 before garbage was collected
    assert outcome(tmp_path / "t00") == outcome(tmp_path / "t49")
