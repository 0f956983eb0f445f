"""Two ways to start a worker: forked from a nursery, which takes milliseconds, or as a fresh interpreter."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import IO

from ablate.errors import AblateError
from ablate.slots import Job
from ablate.sweep.workers.lifeline import received, told

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
SINGLE_THREAD = {**dict.fromkeys(THREAD_VARIABLES, "1"), "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Keeps imports from starting threads, which would rule out forking: pools of BLAS, and Arrow's allocator's own."""


class Forked:
    """The driver's side of a nursery."""

    def __init__(self, trainer: str) -> None:
        """Start a nursery that imports what this trainer needs."""
        # Sequenced packets keep each request together with the descriptor that travels with it.
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process that prints to it
        with theirs:  # a worker sets its own number of threads, with torch.set_num_threads
            self._process = _python("ablate.sweep.workers.nursery", theirs, trainer, self._output, SINGLE_THREAD)
        self.state = "starting"
        """``starting``, ``fit``, ``unfit`` (more than one thread; nothing was forked) or ``gone``."""
        self.was_fit = False
        self._exits: dict[int, int] = {}

    def start(self, worker: int, end: socket.socket) -> None:
        """Have a worker forked that serves ``end``; a nursery that is still importing does so when it is ready."""
        try:
            socket.send_fds(self.control, [json.dumps({"worker": worker}).encode()], [end.fileno()])
        except OSError:
            self.state = "gone"

    def kill(self, worker: int) -> None:
        """Have a worker killed."""
        with contextlib.suppress(OSError):  # the nursery is gone, and its workers with it
            self.control.send(json.dumps({"kill": worker}).encode())

    def exits(self) -> dict[int, int]:
        """The workers that have ended since the last call, with their exit codes.

        Raises:
            AblateError: what trials need cannot be imported; says why.
        """
        self._listen()
        exits, self._exits = self._exits, {}
        return exits

    def close(self) -> None:
        """End the nursery and all its workers."""
        self.state = "gone"
        self.control.close()
        if not self.was_fit:
            self._process.kill()  # it is importing, has no child yet and would notice only afterwards
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()

    def _listen(self) -> None:
        while self.state != "gone":
            try:
                data = received(self.control, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            message = json.loads(data) if data else {}
            if "exit" in message:
                self._exits[message["worker"]] = message["exit"]
            elif "fit" in message:
                self.was_fit = message["fit"]
                self.state = "fit" if self.was_fit else "unfit"
            elif "broken" in message:
                raise AblateError(f"no trial can run: what trials need cannot be imported\n{message['broken']}")
            elif self.state == "unfit":
                return
            else:
                self._bury()

    def _bury(self) -> None:
        self.state = "gone"
        code = self._process.wait()
        if not self.was_fit and code >= 0:  # by a signal it may be anyone's doing, and the next one may live
            self._output.seek(0)
            printed = self._output.read().decode(errors="replace")[-4000:]
            raise AblateError(f"no trial can run: the process that starts workers ended ({told(code)})\n{printed}")


class Spawned:
    """Workers that are interpreters of their own: where CUDA is used, which no fork survives, or fork is not safe."""

    def __init__(self) -> None:
        """Nothing is started yet."""
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the workers that print to it
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, worker: int, end: socket.socket, job: Job, device: str | None) -> None:
        """Start a worker that serves ``end`` and sees one CUDA device, or what this process sees."""
        environment = dict.fromkeys(THREAD_VARIABLES, str(job.threads))
        if device is not None:
            environment["CUDA_VISIBLE_DEVICES"] = device
        if job.device == "mps":
            environment["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"  # what MPS lacks is computed on the CPU
        self._processes[worker] = _python("ablate.sweep.workers.worker", end, job.trainer, self._output, environment)

    def exits(self) -> dict[int, int]:
        """The workers that have ended since the last call, with their exit codes."""
        codes = {worker: process.poll() for worker, process in self._processes.items()}
        ended = {worker: code for worker, code in codes.items() if code is not None}
        for worker in ended:
            del self._processes[worker]
        return ended

    def kill(self, worker: int) -> None:
        """Kill a worker."""
        if worker in self._processes:
            self._processes[worker].kill()

    def close(self) -> None:
        """End all workers."""
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        self._processes.clear()
        self._output.close()


def _python(
    module: str, end: socket.socket, trainer: str, output: IO[bytes], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Run one of our modules in a fresh interpreter that inherits ``end`` and nothing else.

    It finds modules where this process does (a notebook may have changed ``sys.path``), and not in the working folder
    beyond that. A process group of its own keeps the terminal's Ctrl-C for the driver.
    """
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    # The parent-death signal follows the thread that started a process, not the whole parent; elsewhere than in the
    # main thread it could come too early, and the end of the line alone has to do.
    parent = os.getpid() if threading.current_thread() is threading.main_thread() else 0
    with contextlib.suppress(ValueError):
        sys.stderr.flush()
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(end.fileno()), str(parent), trainer],
        env={**os.environ, "PYTHONPATH": path, **environment},
        pass_fds=[end.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        process_group=0,
    )
