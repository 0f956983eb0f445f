"""Plans of stub trials, and what there is to see afterwards."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import optuna
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

from ablate.records.layout import StudyFolder, TrialFolder, read_json
from ablate.sweep.driver import sweep
from ablate.sweep.events import Event, Outcome
from ablate_plugins.executor import Local
from tests.ablate.sweep.stub_trainer import final

STUB = "tests.ablate.sweep.stub_trainer:train"
STEPS = 10
Does = Mapping[str, Any]
E = TypeVar("E", bound=Event)


def make_plan(arms: Sequence[Does], *, seeds: int = 1, steps: int = STEPS, retries: int = 1) -> dict[str, Any]:
    """A plan with one arm for each way to behave, seed-major; trials are called t000, t001, …"""
    return {
        "schema": 1,
        "name": "stub",
        "objective": {"metric": "val/loss", "goal": "min"},
        "budget": {"steps": steps, "evaluations": 1, "retries": retries},
        "diverged": {"nonfinite": True},
        "probes": {"every": 50},
        "components": [],
        "data": {"hash": "0"},
        "device": "cpu",
        "precision": "32-true",
        "threads": 1,
        "baseline": "arm0",
        "seeds": list(range(seeds)),
        "arms": [
            {
                "id": f"arm{number}",
                "name": f"x={number}" if number else "baseline",
                "levels": {"x": number},
                "config": {"model": dict(does), "task": {}, "training": {}},
            }
            for number, does in enumerate(arms)
        ],
        "trials": [
            {"id": f"t{seed * len(arms) + number:03d}", "arm": f"arm{number}", "seed": seed}
            for seed in range(seeds)
            for number in range(len(arms))
        ],
    }


class Run:
    """What one call of `sweep` said and gave."""

    def __init__(
        self,
        study: StudyFolder,
        plan: Mapping[str, Any],
        parallel: int | Literal["auto"] = 2,
        *,
        per_gpu: int | Literal["auto"] = 1,
        **options: Any,
    ) -> None:
        self.events: list[Event] = []
        self.outcome: Outcome = sweep(
            study,
            plan,
            Local(parallel=parallel, per_gpu=per_gpu),
            **{"trainer": STUB, "on_event": self.events.append, **options},
        )

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


def attempts(folder: TrialFolder) -> list[tuple[int, int, int]]:
    """Number, first step and process of every attempt that really began."""
    return [(number, step, pid) for number, step, pid, _ in _ran(folder)]


def parents(folder: TrialFolder) -> list[int]:
    """The process that had started each attempt's worker."""
    return [parent for _, _, _, parent in _ran(folder)]


def _ran(folder: TrialFolder) -> list[list[int]]:
    path = folder.path / "ran.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [[int(word) for word in line.split()] for line in lines]


def sealed(study: StudyFolder) -> dict[str, dict[str, Any]]:
    """Every record by its trial."""
    return {folder.id: read_json(folder.result) for folder in study.trials() if folder.result.exists()}


def entries(study: StudyFolder, url: str | None = None, name: str = "stub") -> list[FrozenTrial]:
    """All that Optuna has, as any of its users would read it."""
    storage = RDBStorage(url or f"sqlite:///{study.storage}")
    try:
        return optuna.load_study(study_name=name, storage=storage).trials
    finally:
        storage.remove_session()
        storage.engine.dispose()


def assert_exactly_once(study: StudyFolder, plan: Mapping[str, Any], url: str | None = None) -> None:
    """Every trial has one record with the value of an undisturbed run, and one finished Optuna trial with it."""
    records = sealed(study)
    assert set(records) == {trial["id"] for trial in plan["trials"]}
    for record in records.values():
        if record["end"] == "complete":
            assert record["metrics"] == {"val/loss": final(record["seed"], plan["budget"]["steps"])}
    found = entries(study, url, plan["name"])
    assert {entry.state for entry in found} <= {TrialState.COMPLETE, TrialState.FAIL}
    complete = [entry for entry in found if entry.state == TrialState.COMPLETE]
    assert Counter(entry.user_attrs["trial"] for entry in complete) == Counter(list(records))
    for entry in complete:
        record = records[entry.user_attrs["trial"]]
        assert entry.user_attrs["end"] == record["end"]
        assert entry.user_attrs["attempt"] == record["attempt"]
        if record["end"] == "complete":
            assert entry.value == record["metrics"]["val/loss"]


def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def descendants(pid: int) -> list[int]:
    """The engine's processes below this one, parents first; a browser of other tests is none of them."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])

    def below(parent: int) -> Iterator[int]:
        for child, its in sorted(parents.items()):
            if its == parent:
                yield child
                yield from below(child)

    def of_the_engine(child: int) -> bool:
        with contextlib.suppress(OSError):
            return b"ablate.sweep" in Path(f"/proc/{child}/cmdline").read_bytes()
        return False

    return [child for child in below(pid) if of_the_engine(child)]


def environment() -> dict[str, str]:
    """For a child that imports what this process can."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
