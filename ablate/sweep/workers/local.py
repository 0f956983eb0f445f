"""The local pool: worker processes on this machine, and how their ends are seen."""

from __future__ import annotations

import contextlib
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ablate.errors import AblateError
from ablate.slots import Advanced, Ended, Job, Need, Room
from ablate.sweep.workers.lifeline import Line, told
from ablate.sweep.workers.machine import Machine, this_machine
from ablate.sweep.workers.placing import Count, Seats, seats
from ablate.sweep.workers.starting import Forked, Spawned

GRACE = 2.0
"""Seconds to wait for the exit code of a worker whose line has ended."""
STILLBORN = 3
"""Nurseries in a row that may be killed before they are ready."""
LEAK = 1 << 30
"""Bytes that a worker may hold more after a trial than after its first one; with more, a new one takes its place."""


@dataclass(eq=False)
class _Hired:
    """A worker as the pool knows it."""

    number: int
    gpu: int | None
    """Which of the machine's it sees; None where trials use none."""
    line: Line
    job: Job | None
    forked: bool
    hung_up: float | None = None
    """When its line ended."""
    retired: bool = False
    """It takes no further job."""
    held: int | None = None
    """Bytes of memory that it held after its first trial."""


class LocalPool:
    """Runs trials in processes of this machine; see :class:`ablate.slots.Pool`.

    A worker is started when a job finds none that is free, and kept. What is slow, the imports, starts at once in the
    nursery, while the caller still plans. A worker that leaks memory is let go: no trial is to run short of memory, or
    slower, because of those before it.
    """

    def __init__(self, parallel: Count, trainer: str, *, per_gpu: Count = 1, leak: int = LEAK) -> None:
        """Start the nursery; workers come with the first jobs."""
        self._parallel = parallel
        self._per_gpu = per_gpu
        self._leak = leak
        self._trainer = trainer
        self._spawned = Spawned()
        # Linux alone: there a fork is safe while there is one thread, and the death of a parent is a signal.
        self._nursery = Forked(trainer) if sys.platform == "linux" else None
        self._stillborn = 0
        self._born = 0
        self._workers: list[_Hired] = []
        self._selector = selectors.DefaultSelector()
        self._reports: list[Advanced | Ended] = []
        self._machine: Machine | None = None
        """As it was before the first worker."""
        self._need = Need()
        self._measured = 0
        """Bytes that a trial of this need has been seen to take at most."""
        self._seats: Seats | None = None

    def room(self, need: Need) -> Room:
        """As many trials as there are cores or GPUs, and as their memory holds; or as many as the user says."""
        return self._seats_for(need).room

    def _seats_for(self, need: Need) -> Seats:
        if need != self._need:
            self._need, self._measured, self._seats = need, 0, None
        if self._machine is None or self._machine.device != need.device:
            self._machine = this_machine(need.device, weigh=self._per_gpu == "auto")
        if self._seats is None:
            self._seats = seats(need, self._machine, self._parallel, self._per_gpu, self._measured)
        return self._seats

    def submit(self, job: Job) -> None:
        """Give the job to a free worker, or start one; of several GPUs, that with the fewest trials takes it."""
        gpu = self._emptiest_gpu(job) if job.device == "cuda" else None
        free = [worker for worker in self._workers if worker.job is None and not worker.retired and worker.gpu == gpu]
        worker = free[0] if free else self._hire(job, gpu)
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
                    self._reports.append(Ended(worker.job.trial, worker.job.attempt, "interrupted"))
                self._dismiss(worker)
        for worker in self._workers:
            if worker.job is not None:
                with contextlib.suppress(OSError):
                    worker.line.send({"stop": True})

    def kill(self, trial: str) -> None:
        """Kill the worker that runs this trial."""
        for worker in self._workers:
            if worker.job is not None and worker.job.trial == trial:
                if worker.forked and self._nursery:
                    self._nursery.kill(worker.number)
                else:
                    self._spawned.kill(worker.number)

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

    def _emptiest_gpu(self, job: Job) -> int | None:
        seats = self._seats_for(self._need if self._need.device == job.device else Need(job.device, job.threads))
        gpus = len(self._machine.gpus) if self._machine else 0
        busy = [sum(worker.gpu == gpu and worker.job is not None for worker in self._workers) for gpu in range(gpus)]
        free = [gpu for gpu, most in enumerate(seats.gpus) if busy[gpu] < most]
        return min(free or range(len(busy)), key=busy.__getitem__, default=None)

    def _hire(self, job: Job, gpu: int | None) -> _Hired:
        self._born += 1
        ours, theirs = socket.socketpair()
        with theirs:
            forked = self._start(self._born, gpu, theirs, job)
        worker = _Hired(self._born, gpu, Line(ours), job, forked)
        self._workers.append(worker)
        self._selector.register(worker.line, selectors.EVENT_READ)
        return worker

    def _start(self, number: int, gpu: int | None, end: socket.socket, job: Job) -> bool:
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
        name = self._machine.gpus[gpu].name if self._machine and gpu is not None else None
        self._spawned.start(number, end, job, name)
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
                advanced = Advanced(**message["advanced"])
                self._reports.append(advanced)
                self._weigh(advanced)
            elif "ended" in message:
                ended = Ended(**message["ended"])
                self._reports.append(ended)
                worker.job = None
                worker.retired = message["leaves"]
                if not worker.retired and (self._has_leaked(worker, message["memory"]) or self._is_surplus(worker)):
                    worker.retired = True
                    worker.line.hang_up()  # which ends it
        return bool(messages)

    def _weigh(self, advanced: Advanced) -> None:
        """Count the seats again where a trial takes more memory than was foreseen."""
        if advanced.memory is not None and advanced.memory > self._measured:
            self._measured = advanced.memory
            self._seats = None  # counted again when it is asked for

    def _has_leaked(self, worker: _Hired, memory: int | None) -> bool:
        if memory is None:
            return False
        worker.held = memory if worker.held is None else worker.held
        return memory - worker.held > self._leak

    def _is_surplus(self, worker: _Hired) -> bool:
        """Whether there are more workers than seats, since these have become fewer: an idle one too holds memory."""
        seats = self._seats_for(self._need)
        if worker.gpu is not None and not seats.gpus:
            return False
        most = seats.room.places if worker.gpu is None else seats.gpus[worker.gpu]
        return sum(each.gpu == worker.gpu and not each.retired for each in self._workers) > most

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
                self._reports.append(Ended(worker.job.trial, worker.job.attempt, "lost", cause))
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
