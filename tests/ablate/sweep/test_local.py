from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from ablate.records.layout import StudyFolder
from ablate.sweep.driver import sweep
from ablate.sweep.events import SweepStarted
from ablate.sweep.local import LocalPool
from tests.ablate.sweep.stub_study import STUB, Run, assert_exactly_once, attempts, descendants, make_plan, parents


@pytest.fixture
def pool() -> Iterator[LocalPool]:
    with contextlib.closing(LocalPool(2, STUB)) as pool:
        yield pool


def test_an_open_pool_serves_one_sweep_after_another_with_the_same_workers(
    pool: LocalPool, study: StudyFolder, tmp_path: Path
) -> None:
    plan = make_plan([{}] * 4)
    studies = [study, StudyFolder(tmp_path / "second")]
    for each in studies:
        sweep(each, plan, pool, trainer=STUB)
        assert_exactly_once(each, plan)
    folders = [folder for each in studies for folder in each.trials()]
    assert len({pid for folder in folders for _, _, pid in attempts(folder)}) == 2
    (nursery,) = {parent for folder in folders for parent in parents(folder)}
    assert nursery != os.getpid()


def test_closing_ends_every_process(study: StudyFolder) -> None:
    pool = LocalPool(2, STUB)
    sweep(study, make_plan([{}] * 2), pool, trainer=STUB)
    assert len(descendants(os.getpid())) == 3
    pool.close()
    assert descendants(os.getpid()) == []


def test_closing_does_not_wait_for_imports() -> None:
    pool = LocalPool(2, STUB)
    pool.close()
    assert descendants(os.getpid()) == []


def test_slots_are_what_was_asked_for_or_the_usable_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    with contextlib.closing(LocalPool("auto", STUB)) as pool:
        assert [pool.slots("cpu", threads) for threads in (1, 2, 3, 16)] == [8, 4, 2, 1]
        assert pool.slots("mps", 1) == 1
    with contextlib.closing(LocalPool(3, STUB)) as pool:
        assert [pool.slots("cpu", 1), pool.slots("cuda", 1)] == [3, 3]


def test_a_second_thread_after_the_imports_means_no_forks(study: StudyFolder) -> None:
    plan = make_plan([{}, {"dies": "SIGKILL", "attempts": [1]}, {}, {"raises": "no", "attempts": [1]}])
    run = Run(study, plan, trainer="tests.ablate.sweep.threaded_trainer:train")
    assert [failure.error for failure in run.outcome.failures] == ["RuntimeError: no"]
    assert {parent for folder in study.trials() for parent in parents(folder)} == {os.getpid()}
    Run(study, plan, retry=frozenset({"failed"}))
    assert_exactly_once(study, plan)


@pytest.mark.parametrize(("visible", "seen"), [(None, {"0", "1"}), ("3,GPU-5", {"3", "GPU-5"})])
def test_on_cuda_each_worker_is_an_interpreter_that_sees_one_device(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch, visible: str | None, seen: set[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    plan = make_plan([{"shows": "CUDA_VISIBLE_DEVICES", "seconds": 0.05}] * 4) | {"device": "cuda"}
    run = Run(study, plan, "auto")
    assert run.of(SweepStarted)[0].slots == 2
    assert_exactly_once(study, plan)
    shown = {folder.attempt(1).log.read_text().splitlines()[2] for folder in study.trials()}
    assert shown == {f"CUDA_VISIBLE_DEVICES={device}, device=cuda" for device in seen}
    assert {parent for folder in study.trials() for parent in parents(folder)} == {os.getpid()}


def test_workers_bring_in_plugin_files(study: StudyFolder, tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from typing import Literal\n"
        "from ablate.slots import Placement, Site, Wiring\n\n"
        "class Mine(Placement):\n"
        '    kind: Literal["mine"] = "mine"\n\n'
        "    def wiring(self, at: Site) -> Wiring:\n"
        "        return Wiring()\n"
    )
    plan = make_plan([{"needs": "mine"}])
    assert Run(study, plan).outcome.counts.failed == 1
    Run(study, plan, retry=frozenset({"failed"}), plugins=[plugin])
    Run(study, plan | {"plugins": [str(plugin)]})
    assert_exactly_once(study, plan)
