"""What a hundred kills at the worst moments leave of a study of the real trainer: nothing that can be seen."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from optuna.trial import TrialState

import ablate
from ablate.records import frames
from ablate.records.layout import StudyFolder
from ablate.sweep.driver import sweep
from ablate.sweep.events import Event, Reconciled, TrialStarted
from ablate_plugins.executor import Local
from tests.ablate.sweep.stub_study import alive, descendants, entries, environment, until
from tests.ablate.sweep.windows import FOLDER, Windows

EXPERIMENT = """\
schema: 1
name: chaos
task: {kind: text, source: python-docs, context: 16, windows: 16}
model: {kind: decoder, width: 16, depth: 2, dropout: 0.1, mixer: {kind: attention, heads: 2, dropout: 0.1}}
training:
  optimizer: {kind: adamw, lr: 1e-2}
  schedule: {kind: cosine, warmup: 0.1}
  batch: 4
factors:
  placement: {path: model.placement, levels: [pre, post, res_post, sandwich]}
seeds: 6
objective: {metric: val/loss, smallest_effect: 0.02}
budget: {steps: 800, retries: 1000, checkpoint_seconds: 0.1}
"""
OF_TIME = ["attempt", "seconds", "tokens_per_second", "peak_memory", "started", "sealed"]
"""Columns of a trial's row that say how long it took, when, and in how many attempts."""
Kill = tuple[str, str]
"""In which window (``training`` is after a few steps of some trial), and whom."""
KILLS = 100
"""At least as many."""
STRETCH = 30
"""Steps at most that a trial makes before it is killed in the middle of training: the study is to outlast all kills."""
MANY: list[Kill] = [
    *[("training", "worker")] * 44,
    *[("training", "driver")] * 5,
    *[("training", "driver at its start")] * 2,
    *[("training", "nursery")] * 4,
    *[("training", "all")] * 4,
    *[(f"checkpoint-{when}", "worker") for when in ("half", "before", "after") for _ in range(9)],
    *[(f"checkpoint-{when}", "all") for when in ("half", "before")],
]
FEW: list[Kill] = [
    *[(f"sealing-{when}", "worker") for when in ("before", "after") for _ in range(4)],
    *[(f"sealing-{when}", "all") for when in ("before", "after")],
    *[(f"telling-{when}", "driver") for when in ("before", "after") for _ in range(2)],
    *[(f"telling-{when}", "all") for when in ("before", "after")],
]
"""Those that need the end of a trial, of which a study has not many: they come all along."""


def schedule(chance: random.Random) -> list[Kill]:
    """All kills in a random order that gives each of the few its turn at even distances."""
    many, few = chance.sample(MANY, len(MANY)), chance.sample(FEW, len(FEW))
    parts = [many[number * len(many) // len(few) : (number + 1) * len(many) // len(few)] for number in range(len(few))]
    return [kill for part, last in zip(parts, few, strict=True) for kill in (*part, last)]


class Disturbed:
    """A study whose processes are killed, and its driver started again."""

    def __init__(self, study: StudyFolder, plan: Path, windows: Path, chance: random.Random) -> None:
        self.windows = Windows(windows)
        self.seen: set[int] = set()
        """Every process of the engine that was seen."""
        self.died_in: Counter[str] = Counter()
        """How many processes were ended in each window."""
        self._command = [sys.executable, "-m", "tests.ablate.sweep.windowed_driver", str(study.path), str(plan)]
        self._environment = environment() | {FOLDER: str(windows)}
        self._log = windows / "driver.log"
        self._chance = chance
        self.start()

    def start(self) -> None:
        with self._log.open("a") as log:
            self.driver = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log, process_group=0
            )
        self.seen.add(self.driver.pid)

    def kill(self, window: str, victim: str) -> None:
        """End the victim in the window, and see that the study goes on."""
        if victim == "driver at its start":
            self._again([self.driver.pid])
            time.sleep(self._chance.uniform(0, 1))
            self._again([self.driver.pid])
            return
        moment = f"training-{self._chance.randint(1, STRETCH)}" if window == "training" else window
        self.windows.arm(moment)
        self._until(lambda: self.windows.inside(moment))
        inside, below = self.windows.inside(moment), self._below()
        if victim in ("worker", "nursery"):
            _kill(inside[:1] if victim == "worker" else below[:1])
        else:
            self._again([self.driver.pid, *(below if victim == "all" else [])])
        killed = inside[:1] if victim == "worker" else inside
        until(lambda: not any(map(alive, killed)))
        self.windows.disarm()
        self.died_in[window] += len(killed)

    def _again(self, victims: list[int]) -> None:
        """Kill them, and start another driver at once, while what the killed one started may still be ending."""
        killed = self.driver
        _kill(victims)
        killed.wait()
        self.start()

    def _below(self) -> list[int]:
        """The nursery, and the workers."""
        below = descendants(self.driver.pid)
        self.seen.update(below)
        return below

    def _until(self, condition: Callable[[], Any]) -> None:
        def checked() -> Any:
            assert self.driver.poll() is None, f"the driver ended: {self._log.read_text()[-4000:]}"
            return condition()

        until(checked, 300)


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def disturb(tmp_path: Path) -> Iterator[Callable[..., Disturbed]]:
    made: list[Disturbed] = []

    def start(study: StudyFolder, plan: dict[str, Any], chance: random.Random) -> Disturbed:
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(plan))
        made.append(Disturbed(study, path, tmp_path / "windows", chance))
        return made[0]

    yield start
    for each in made:
        each.driver.kill()
        each.driver.wait()


@pytest.mark.slow
def test_a_hundred_kills_change_no_bit(tmp_path: Path, disturb: Callable[..., Disturbed]) -> None:
    (tmp_path / "chaos.yaml").write_text(EXPERIMENT)
    plan = dict(ablate.plan(tmp_path / "chaos.yaml").data)
    calm, study = StudyFolder(tmp_path / "calm"), StudyFolder(tmp_path / "disturbed")
    sweep(calm, plan | {"budget": plan["budget"] | {"checkpoint_seconds": 60}}, Local(parallel=2))

    chance = random.Random(20261130)
    kills = schedule(chance)
    assert len(kills) >= KILLS
    disturbed = disturb(study, plan, chance)
    for kill in kills:
        disturbed.kill(*kill)
    assert disturbed.driver.wait(600) == 0

    wanted = Counter(window for window, victim in kills if victim != "driver at its start")
    assert {window: disturbed.died_in[window] >= count for window, count in wanted.items()} == dict.fromkeys(
        wanted, True
    )
    for read in (frames.curves, frames.probes):
        pd.testing.assert_frame_equal(read(study.path), read(calm.path), check_exact=True)
    expected = frames.trials(calm.path).drop(columns=OF_TIME)
    pd.testing.assert_frame_equal(frames.trials(study.path).drop(columns=OF_TIME), expected, check_exact=True)

    planned = Counter(trial["id"] for trial in plan["trials"])
    assert Counter(folder.id for folder in study.trials() if folder.result.exists()) == planned
    found = entries(study, name="chaos")
    assert Counter(entry.user_attrs["trial"] for entry in found if entry.state == TrialState.COMPLETE) == planned
    assert {entry.state for entry in found} == {TrialState.COMPLETE}, "no kill is a failure"
    events: list[Event] = []
    sweep(study, plan, Local(parallel=2), on_event=events.append)
    assert not [event for event in events if isinstance(event, Reconciled | TrialStarted)]
    until(lambda: not any(map(alive, disturbed.seen | set(disturbed.windows.noted()))))
