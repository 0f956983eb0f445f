"""A worker: one process that lives as long as the sweep and runs one trial after another."""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import functools
import gc
import os
import signal
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from ablate.errors import StaleError
from ablate.records.layout import AttemptFolder, TrialFolder
from ablate.records.locks import now
from ablate.records.sealing import seal
from ablate.registry import Registry
from ablate.slots import Advanced, Ended, Job
from ablate.sweep.disk import told_of_trial
from ablate.sweep.signals import PREEMPTION, ignore_signals
from ablate.sweep.workers.lifeline import Line, die_with_parent
from ablate.sweep.workers.machine import resident
from ablate.sweep.workers.settings import changed, settings
from ablate.training.out_of_memory import ran_out_of_memory

LISTEN = 0.02
"""Seconds between two looks at the line while a trial runs."""
REPORT = 0.2
"""Seconds between two reports of progress."""
PATIENCE = 30.0
"""Seconds to wait for an earlier process that still ends in this trial's folder."""

Train = Callable[..., str]


def trainer(name: str) -> Train:
    """The function that ``module:function`` names."""
    module, _, function = name.partition(":")
    train: Train = getattr(import_module(module), function)
    return train


def preload(name: str) -> None:
    """Import the trainer's module and what that module knows will be needed later."""
    module = import_module(name.partition(":")[0])
    getattr(module, "preload", lambda: None)()


class Worker:
    """Serves one driver: takes jobs from the line, one at a time, and reports."""

    def __init__(self, line: Line, *, shared: int = 0) -> None:
        """Take over the worker's end of the connection with the driver.

        ``shared`` is how many bytes of its memory are those of the process that it was forked from.
        """
        self._line = line
        self._shared = shared
        self._settled = False
        """Whether a trial has ended, and with it whatever is imported or made once."""
        self._spoilt = False
        """Whether a trial has changed what is set for the whole process."""
        self._inbox: deque[dict[str, Any]] = deque()
        self._stopped = False
        self._listened = 0.0
        self._reported = 0.0
        self._micro_batch: int | None = None

    def serve(self) -> None:
        """Run jobs until the driver hangs up, or until one fails or leaves the process changed."""
        # The terminal's Ctrl-C and hang-up are the driver's to answer. What a batch system sends, which may reach every
        # process, means what the driver's stop means.
        ignore_signals()
        for number in PREEMPTION:
            signal.signal(number, self._terminate)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # what a killed process printed counts
        faulthandler.enable()
        with contextlib.suppress(EOFError, OSError):
            while True:
                while not self._inbox:
                    self._inbox.extend(self._line.receive(None))
                message = self._inbox.popleft()
                if "job" not in message:
                    continue  # a stop that crossed the end of the trial that it meant
                ended = self._run(Job(**message["job"] | {"plugins": tuple(message["job"]["plugins"])}))
                self._clear(message["job"]["device"])
                # An exception may leave anything behind, memory held by its traceback for one. The next trial gets a
                # fresh process, so that no result depends on what ran before it.
                leaves = ended.end == "failed" or self._spoilt
                self._line.send({"ended": asdict(ended), "memory": resident(), "leaves": leaves})
                if leaves:
                    return

    def _run(self, job: Job) -> Ended:
        self._stopped = False
        self._reported = 0.0
        self._micro_batch = None
        folder = TrialFolder(Path(job.folder))
        attempt = folder.attempt(job.attempt)
        try:
            with printing_to(attempt):
                return self._attempted(job, folder)
        except OSError as error:  # of the log itself
            if told := told_of_trial(error, folder):
                return Ended(job.trial, job.attempt, "stale", told)
            raise

    def _attempted(self, job: Job, folder: TrialFolder) -> Ended:
        attempt = folder.attempt(job.attempt)
        try:
            with alone_in(folder):
                end = self._train(job, folder)
            return Ended(job.trial, job.attempt, end)
        except StaleError as error:  # no fault of this trial's: it waits
            sys.stderr.write(f"{error}\n")
            return Ended(job.trial, job.attempt, "stale", str(error))
        except BaseException as error:  # SystemExit too: whatever ends a trial must not end the sweep
            with contextlib.suppress(OSError):  # a full disk
                traceback.print_exc()
            if told := told_of_trial(error, folder):  # no fault of this trial's either
                return Ended(job.trial, job.attempt, "stale", told)
            text, cause = one_line(error), "oom" if ran_out_of_memory(error) else None
            with contextlib.suppress(OSError):  # a full disk, which is why the driver tries again
                seal(attempt.end, {"end": "failed", "cause": cause, "error": text, "at": now()})
            return Ended(job.trial, job.attempt, "failed", text, cause)

    def _train(self, job: Job, folder: TrialFolder) -> str:
        _use_threads(job.threads)

        def on_progress(
            step: int,
            steps: int,
            loss: float,
            tokens_per_second: float,
            memory: int | None = None,
            micro_batch: int | None = None,
        ) -> None:
            if memory is not None and job.device == "cpu":
                memory = max(0, memory - self._shared)
            speed = float(tokens_per_second)
            self._advance(Advanced(job.trial, job.attempt, step, steps, float(loss), speed, memory, micro_batch))

        registry = registry_with(job.plugins)  # what a plugin sets as it is imported holds for every trial
        before = settings()
        end = trainer(job.trainer)(
            folder,
            job.attempt,
            registry,
            device=job.device,
            on_progress=on_progress,
            should_stop=self._should_stop,
        )
        if names := changed(before, settings()):
            self._spoilt = True
            sys.stderr.write(
                f"this trial changed {', '.join(names)} for the whole process, which runs no other trial\n"
            )
        place = folder.attempt(job.attempt)
        written = {"complete": folder.result, "diverged": folder.result, "timed_out": place.end, "paused": place.rung}
        if end not in written and end != "interrupted":
            raise RuntimeError(f"{job.trainer} said that the trial's end is {end!r}")
        if end in written and not written[end].exists():
            raise RuntimeError(f"{job.trainer} said {end!r} and wrote no {written[end].name}")
        return end

    def _clear(self, device: str) -> None:
        """Free what the trial has left behind: its parts refer to each other, and would stay for long."""
        gc.collect()
        if not self._settled:
            gc.freeze()  # what is there now will stay; to look at it again takes 20 ms a trial
            self._settled = True
        if device == "cuda" and "torch" in sys.modules:
            import torch  # noqa: PLC0415

            torch.cuda.empty_cache()  # others may share the device

    def _advance(self, report: Advanced) -> None:
        moment = time.monotonic()
        due = moment - self._reported >= REPORT or report.step == report.steps
        if due or report.micro_batch != self._micro_batch:
            self._reported, self._micro_batch = moment, report.micro_batch
            self._send(asdict(report))

    def _send(self, report: dict[str, object]) -> None:
        try:
            self._line.send({"advanced": report})
        except OSError:
            os._exit(1)  # the driver is gone; its successor starts from the last checkpoint

    def _should_stop(self) -> bool:
        moment = time.monotonic()
        if moment - self._listened >= LISTEN:
            self._listened = moment
            try:
                self._inbox.extend(self._line.receive(0))
            except EOFError:
                os._exit(1)
            self._stopped = self._stopped or any("stop" in message for message in self._inbox)
        return self._stopped

    def _terminate(self, number: int, frame: object) -> None:
        self._stopped = True


@functools.cache
def registry_with(plugins: tuple[str, ...]) -> Registry:
    """The installed components and those of these files; made once a worker."""
    registry = Registry.installed()
    for path in plugins:
        registry.add_file(Path(path))
    return registry


@contextlib.contextmanager
def printing_to(attempt: AttemptFolder) -> Iterator[None]:
    """Send all that is printed, by C code too, to the attempt's log."""
    log = os.open(attempt.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    outside = os.dup(2)
    _print_to(log)
    try:
        yield
    finally:
        _print_to(outside)
        os.close(outside)
        os.close(log)


def _print_to(descriptor: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # a full disk takes no line of a log, and no trial fails by that
            stream.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)


@contextlib.contextmanager
def alone_in(folder: TrialFolder) -> Iterator[None]:
    """Be the only process that runs this trial: that of a killed driver may need a moment to end.

    Raises:
        RuntimeError: another process does not end.
    """
    descriptor = os.open(folder.path, os.O_RDONLY)
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise RuntimeError("another process still runs this trial") from None
                time.sleep(0.02)
            except OSError:
                break  # a file system without locks on folders; attempts never write to each other's files anyway
        yield
    finally:
        os.close(descriptor)


def _use_threads(threads: int) -> None:
    if "torch" in sys.modules:  # a trainer that does not compute with torch must not pay for its import
        import torch  # noqa: PLC0415

        torch.set_num_threads(threads)


def one_line(error: BaseException) -> str:
    """An exception as one line of at most 300 characters, which any file can hold."""
    try:
        said = str(error)
    except Exception as other:  # a stranger's class
        said = f"its message cannot be told ({type(other).__name__})"
    lines = said.strip().splitlines()
    line = f"{type(error).__name__}: {lines[0]}"[:300] if lines else type(error).__name__
    return line.encode(errors="backslashreplace").decode()  # a name of a file may be no text


def main() -> None:
    """Run as a process of its own: ``python -m ablate.sweep.workers.worker DESCRIPTOR PARENT TRAINER``."""
    descriptor, parent, name = sys.argv[1:]
    die_with_parent(int(parent))
    ignore_signals()
    with contextlib.suppress(Exception):  # it will be raised again in the first trial, whose log can hold it
        preload(name)
    Worker(Line(socket.socket(fileno=int(descriptor)))).serve()


if __name__ == "__main__":
    main()
