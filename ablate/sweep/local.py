"""The local pool: worker processes on this machine, and how their ends are seen."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from ablate.errors import AblateError
from ablate.slots import Advanced, Ended, Job
from ablate.sweep.lifeline import Line, told
from ablate.sweep.starting import Forked, Spawned

GRACE = 2.0
"""Seconds to wait for the exit code of a worker whose line has ended."""
STILLBORN = 3
"""Nurseries in a row that may be killed before they are ready."""


@dataclass(eq=False)
class _Hired:
    """A worker as the pool knows it."""

    number: int
    place: int
    """The lowest that was free; on CUDA, which device it sees."""
    line: Line
    job: Job | None
    forked: bool
    hung_up: float | None = None
    """When its line ended."""
    retired: bool = False
    """It takes no further job."""


class LocalPool:
    """Runs trials in processes of this machine; see :class:`ablate.slots.Pool`.

    A worker is started when a job finds none that is free, and kept. What is slow, the imports, starts at once in the
    nursery, while the caller still plans.
    """

    def __init__(self, parallel: int | Literal["auto"], trainer: str) -> None:
        """Start the nursery; workers come with the first jobs."""
        self._parallel = parallel
        self._trainer = trainer
        self._spawned = Spawned()
        # Linux alone: there a fork is safe while there is one thread, and the death of a parent is a signal.
        self._nursery = Forked(trainer) if sys.platform == "linux" else None
        self._stillborn = 0
        self._born = 0
        self._workers: list[_Hired] = []
        self._selector = selectors.DefaultSelector()
        self._reports: list[Advanced | Ended] = []

    def slots(self, device: str, threads: int) -> int:
        """One a GPU; else one for every ``threads`` cores that this process may use; or as many as the user says."""
        return places(self._parallel, device, threads)

    def submit(self, job: Job) -> None:
        """Give the job to a free worker, or start one."""
        free = [worker for worker in self._workers if worker.job is None and not worker.retired]
        worker = free[0] if free else self._hire(job)
        worker.job = job
        with contextlib.suppress(OSError):  # it has died; its line says so, and so will the report
            worker.line.send({"job": asdict(job)})

    def reports(self, timeout: float) -> Sequence[Advanced | Ended]:
        """What workers said since, and which of them died."""
        if self._reports:
            timeout = 0
        elif any(worker.hung_up for worker in self._workers):
            timeout = min(timeout, 0.01)  # its exit code is a moment away
        if self._selector.get_map():
            ready = [key.fileobj for key, _ in self._selector.select(timeout)]
        else:
            time.sleep(timeout)
            ready = []
        for worker in list(self._workers):
            if worker.line in ready:
                self._read(worker)
        self._bury()
        reports, self._reports = self._reports, []
        return reports

    def stop(self) -> None:
        """Ask every worker that runs a trial to end at a checkpoint; none has begun while the imports last."""
        if self._nursery and self._nursery.state == "starting":
            self._nursery.close()
            for worker in [worker for worker in self._workers if worker.forked]:
                if worker.job is not None:
                    self._reports.append(Ended(worker.job.trial, "interrupted"))
                self._dismiss(worker)
        for worker in self._workers:
            if worker.job is not None:
                with contextlib.suppress(OSError):
                    worker.line.send({"stop": True})

    def close(self) -> None:
        """Kill every worker."""
        for worker in self._workers:
            worker.line.close()
        self._workers.clear()
        self._spawned.close()
        if self._nursery:
            self._nursery.close()
            self._nursery = None
        self._selector.close()

    def _hire(self, job: Job) -> _Hired:
        taken = {worker.place for worker in self._workers}
        place = next(place for place in range(len(taken) + 1) if place not in taken)
        self._born += 1
        ours, theirs = socket.socketpair()
        with theirs:
            forked = self._start(self._born, place, theirs, job)
        worker = _Hired(self._born, place, Line(ours), job, forked)
        self._workers.append(worker)
        self._selector.register(worker.line, selectors.EVENT_READ)
        return worker

    def _start(self, number: int, place: int, end: socket.socket, job: Job) -> bool:
        # CUDA does not survive a fork once it is initialised, and a GPU is chosen by an environment variable that is
        # read once; seconds of import are little beside what runs there.
        while self._nursery and job.device == "cpu":
            if self._nursery.state == "gone":
                self._renew_nursery(self._nursery)
            self._nursery.start(number, end)
            if self._nursery.state != "gone":
                return True
        if self._nursery:
            self._nursery.close()
            self._nursery = None
        devices = _devices() if job.device.startswith("cuda") else []
        self._spawned.start(number, end, job, devices[place % len(devices)] if devices else None)
        return False

    def _renew_nursery(self, old: Forked) -> None:
        self._stillborn = 0 if old.was_fit else self._stillborn + 1
        if self._stillborn == STILLBORN:
            raise AblateError(
                f"no trial can run: the process that starts workers was killed {STILLBORN} times while it imported\n"
                "  = help: is memory short? The system's log names what its out-of-memory killer ended"
            )
        old.close()
        self._nursery = Forked(self._trainer)

    def _read(self, worker: _Hired) -> bool:
        try:
            messages = worker.line.receive(0)
        except EOFError:
            worker.hung_up = time.monotonic()
            worker.retired = True
            self._selector.unregister(worker.line)
            return False
        for message in messages:
            if "advanced" in message:
                self._reports.append(Advanced(**message["advanced"]))
            elif "ended" in message:
                ended = Ended(**message["ended"])
                self._reports.append(ended)
                worker.job = None
                worker.retired = ended.end == "failed"
        return bool(messages)

    def _bury(self) -> None:
        exits = self._spawned.exits()
        if self._nursery:
            exits |= self._nursery.exits()
            if self._nursery.state == "unfit":
                self._do_without_nursery()
        gone = self._nursery is not None and self._nursery.state == "gone"
        for worker in list(self._workers):
            orphaned = worker.forked and gone
            overdue = worker.hung_up is not None and time.monotonic() - worker.hung_up > GRACE
            if worker.number not in exits and not orphaned and not overdue:
                continue
            # What it said before it died comes first. Its line need not end with it: a child of its own, as a data
            # loader has them, may hold the other end for a while.
            while worker.hung_up is None and self._read(worker):
                pass
            if worker.job is not None:
                code = exits.get(worker.number)
                cause = "the end of the process that started it" if orphaned and code is None else told(code)
                self._reports.append(Ended(worker.job.trial, "lost", cause))
            self._dismiss(worker)

    def _dismiss(self, worker: _Hired) -> None:
        if worker.hung_up is None:
            self._selector.unregister(worker.line)
        worker.line.close()
        self._workers.remove(worker)

    def _do_without_nursery(self) -> None:
        """Start as fresh interpreters what the nursery was asked for; it has a second thread and forked nothing."""
        if self._nursery:
            self._nursery.close()
        self._nursery = None
        for worker in [worker for worker in self._workers if worker.forked]:
            self._dismiss(worker)
            if worker.job is not None:
                self.submit(worker.job)


def places(parallel: int | Literal["auto"], device: str, threads: int) -> int:
    """How many trials run at once on this machine."""
    if parallel != "auto":
        return parallel
    if device.startswith("cuda"):
        return max(1, len(_devices()))
    return max(1, _cores() // threads) if device == "cpu" else 1


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _devices() -> list[str]:
    """What CUDA_VISIBLE_DEVICES is to be for each GPU that this process may use."""
    import torch  # noqa: PLC0415  # only where there is a GPU, and then the plan has imported it

    count = torch.cuda.device_count()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[:count] if visible else [str(index) for index in range(count)]
