from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch

from ablate.errors import AblateError
from ablate.records.layout import StudyFolder
from ablate.slots import Advanced, Ended, Need, Room
from ablate.sweep.driver import sweep
from ablate.sweep.events import Crowded, Event, SweepStarted, TrialEnded, TrialStarted, WorkerLost
from ablate.sweep.workers.local import LocalPool
from ablate.sweep.workers.machine import Gpu, Machine
from tests.ablate.sweep.stub_study import (
    STUB,
    Run,
    alive,
    assert_exactly_once,
    attempts,
    descendants,
    make_plan,
    parents,
    until,
)

SetMachine = Callable[[Machine], None]
GB = 10**9


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SetMachine:
    """Have the pool find another machine."""

    def found(machine: Machine) -> None:
        monkeypatch.setattr("ablate.sweep.workers.local.this_machine", lambda device, weigh: machine)

    return found


def most_at_once(events: Sequence[Event], running: int = 0) -> int:
    most = running
    for event in events:
        running += isinstance(event, TrialStarted) - isinstance(event, TrialEnded)
        most = max(most, running)
    return most


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


class Echoing(LocalPool):
    """Says every end once more when it is asked again."""

    _said: Sequence[Ended] = ()

    def reports(self, timeout: float) -> Sequence[Advanced | Ended]:
        found = super().reports(timeout)
        echo, self._said = self._said, [report for report in found if isinstance(report, Ended)]
        return [*echo, *found]


def test_what_a_pool_says_once_more_is_not_taken_for_the_end_of_the_next_attempt(study: StudyFolder) -> None:
    plan = make_plan([{"dies": "SIGKILL", "attempts": [1]}, {}], retries=1)
    events: list[Event] = []
    with contextlib.closing(Echoing(1, STUB)) as pool:
        sweep(study, plan, pool, trainer=STUB, on_event=events.append)
    assert [event.trial for event in events if isinstance(event, WorkerLost)] == ["t000"]
    assert [number for number, _, _ in attempts(study.trial("t000"))] == [1, 2]
    assert_exactly_once(study, plan)


class Nowhere(LocalPool):
    """Has no room."""

    def room(self, need: Need) -> Room:
        return Room(0, "since the machine is taken")


def test_a_pool_that_has_no_room_is_not_waited_for(study: StudyFolder) -> None:
    with contextlib.closing(Nowhere(1, STUB)) as pool, pytest.raises(AblateError) as raised:
        sweep(study, make_plan([{}]), pool, trainer=STUB)
    assert str(raised.value) == "no trial can run: the executor has room for none, since the machine is taken"


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


def test_the_room_is_what_was_asked_for_or_the_usable_cores(machine: SetMachine) -> None:
    machine(Machine("cpu", 8, None))
    with contextlib.closing(LocalPool("auto", STUB)) as pool:
        assert [pool.room(Need("cpu", threads)).places for threads in (1, 2, 3, 16)] == [8, 4, 2, 1]
        machine(Machine("mps", 8, None))
        assert pool.room(Need("mps")).places == 1
    with contextlib.closing(LocalPool(3, STUB)) as pool:
        assert [pool.room(Need("cpu")).places, pool.room(Need("cuda")).places] == [3, 3]


def test_little_memory_means_few_trials_at_once_and_is_told(study: StudyFolder, machine: SetMachine) -> None:
    machine(Machine("cpu", 4, 2 * GB))
    plan = make_plan([{}] * 4)
    plan["arms"][3] |= {"parameters": {"total": 30_000_000}, "activations": 20_000_000}
    run = Run(study, plan, "auto")
    assert [event.slots for event in run.of(SweepStarted)] == [2]
    text = "for lack of memory: one may take 0.6 GB, and 1.4 GB are free; there are 4 cores"
    assert run.of(Crowded) == [Crowded(2, text)]
    assert most_at_once(run.events) == 2
    assert_exactly_once(study, plan)
    assert Run(study, plan, "auto").of(Crowded) == [], "nothing was left to run"


@pytest.mark.parametrize(
    ("device", "found"),
    [("cpu", Machine("cpu", 3, 10 * GB)), ("cuda", Machine("cuda", 3, None, (Gpu("0", 10 * GB),)))],
)
def test_where_trials_take_more_than_was_foreseen_fewer_run_at_once(
    study: StudyFolder, machine: SetMachine, device: str, found: Machine
) -> None:
    machine(found)
    plan = make_plan([{"takes": 5 * GB, "seconds": 0.03}] * 7) | {"device": device}
    run = Run(study, plan, "auto", per_gpu="auto")
    assert [event.slots for event in run.of(SweepStarted)] == [3]
    (crowded,) = run.of(Crowded)
    assert crowded.slots == 1
    later = [event for event in run.events if isinstance(event, TrialStarted | TrialEnded)][-8:]
    assert most_at_once(later) == 1, "each of the last four began when the one before it had ended"
    assert len({attempts(folder)[0][2] for folder in study.trials()}) == 3
    assert_exactly_once(study, plan)


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


def test_gpus_are_filled_evenly_and_shared_as_is_said(study: StudyFolder, machine: SetMachine) -> None:
    machine(Machine("cuda", 8, None, (Gpu("0"), Gpu("1"))))
    plan = make_plan([{"shows": "CUDA_VISIBLE_DEVICES", "seconds": 0.1}] * 4) | {"device": "cuda"}
    run = Run(study, plan, "auto", per_gpu=2)
    assert run.of(SweepStarted)[0].slots == most_at_once(run.events) == 4
    shown = [folder.attempt(1).log.read_text().splitlines()[2] for folder in study.trials()]
    assert shown == [f"CUDA_VISIBLE_DEVICES={device}, device=cuda" for device in (0, 1, 0, 1)]
    assert len({attempts(folder)[0][2] for folder in study.trials()}) == 4


@pytest.mark.parametrize(("device", "fallback"), [("mps", "1"), ("cpu", "None")])
def test_what_mps_lacks_is_computed_on_the_cpu(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch, device: str, fallback: str
) -> None:
    monkeypatch.delenv("PYTORCH_ENABLE_MPS_FALLBACK", raising=False)
    plan = make_plan([{"shows": "PYTORCH_ENABLE_MPS_FALLBACK"}] * 2) | {"device": device}
    run = Run(study, plan, "auto")
    shown = {folder.attempt(1).log.read_text().splitlines()[2] for folder in study.trials()}
    assert shown == {f"PYTORCH_ENABLE_MPS_FALLBACK={fallback}, device={device}"}
    assert device == "cpu" or run.of(SweepStarted)[0].slots == 1


def test_a_worker_that_leaks_is_let_go_and_another_takes_its_place(study: StudyFolder, tmp_path: Path) -> None:
    plan = make_plan([{"leaks": 40_000_000}] * 4)
    with contextlib.closing(LocalPool(1, STUB, leak=20_000_000)) as pool:
        sweep(study, plan, pool, trainer=STUB)
        first, second, third, fourth = (attempts(folder)[0][2] for folder in study.trials())
        assert first == second != third == fourth, "after its first trial a worker is taken as it is"
        assert len({parent for folder in study.trials() for parent in parents(folder)}) == 1
        until(lambda: not alive(first))
    assert_exactly_once(study, plan)


def test_a_worker_that_holds_what_it_held_is_kept(study: StudyFolder) -> None:
    with contextlib.closing(LocalPool(1, STUB, leak=20_000_000)) as pool:
        sweep(study, make_plan([{"leaks": 40_000_000}, {}, {}]), pool, trainer=STUB)
    assert len({attempts(folder)[0][2] for folder in study.trials()}) == 1


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
