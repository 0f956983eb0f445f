from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterable

from ablate.records.layout import StudyFolder
from ablate.sweep.events import Reconciled, TrialStarted
from tests.ablate.sweep.conftest import StartDriver
from tests.ablate.sweep.stub_study import Run, alive, assert_exactly_once, attempts, descendants, make_plan, until

VICTIMS = ["driver", "driver at its start", "nursery", "worker", "worker", "all"] * 2


def test_random_kills_change_nothing(study: StudyFolder, start_driver: StartDriver) -> None:
    plan = make_plan([{"seconds": 0.02}, {"seconds": 0.03}, {"seconds": 0.04}], seeds=4, steps=50, retries=100)
    chance = random.Random(20261130)
    driver = start_driver(plan)
    for victim in chance.sample(VICTIMS, len(VICTIMS)):
        _wait(driver, under_way=victim != "driver at its start", chance=chance)
        assert driver.poll() is None, "the study is too short for so many kills"
        below = descendants(driver.pid)
        _kill({"nursery": below[:1], "worker": below[1:2], "all": [driver.pid, *below]}.get(victim, [driver.pid]))
        if victim not in ("nursery", "worker"):
            driver.wait()
            driver = start_driver(plan)  # at once, while what the killed one started may still be ending
    assert driver.wait(60) == 0

    assert_exactly_once(study, plan)
    again = Run(study, plan)
    assert (again.of(Reconciled), again.of(TrialStarted)) == ([], [])
    for folder in study.trials():
        begun = attempts(folder)
        assert [number for number, _, _ in begun] == sorted({number for number, _, _ in begun})
        assert [step for _, step, _ in begun] == sorted(step for _, step, _ in begun)
    until(lambda: not any(alive(pid) for folder in study.trials() for _, _, pid in attempts(folder)))


def _wait(driver: subprocess.Popen[str], *, under_way: bool, chance: random.Random) -> None:
    if under_way:
        assert driver.stdout
        driver.stdout.readline()
    time.sleep(chance.uniform(0, 0.5))


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
