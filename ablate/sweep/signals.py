"""Signals that end a sweep: the first lets trials write a checkpoint, a second ends it at once."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from ablate.sweep.events import Interrupted

ECHO = 0.3
"""Seconds within which a second signal is the first one again: a wrapper that forwards what its child got too."""
PREEMPTION = (signal.SIGTERM, signal.SIGUSR1)
"""What a batch system sends ahead of the end; often to every process of a job."""
TERMINAL = (signal.SIGINT, signal.SIGHUP)
"""What a terminal sends, to the processes in its foreground."""

Handler = Callable[[int, FrameType | None], None]


class Stop:
    """Whether a signal has come."""

    def __init__(self) -> None:
        """No signal yet."""
        self.signal: str | None = None
        self._came = 0.0

    def __call__(self, number: int, frame: object) -> None:
        """Note the first signal; end the sweep by an exception at the second."""
        moment = time.monotonic()
        if self.signal is None:
            self.signal, self._came = signal.Signals(number).name, moment
        elif moment - self._came > ECHO:
            raise Interrupted("stopped at once; the same command goes on from the last checkpoints")


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Take the signals while the block lasts; in another than the main thread Python does not give them to us."""
    stop = Stop()
    with _taking(stop):
        yield stop


@contextlib.contextmanager
def giving_up() -> Iterator[None]:
    """End the block at the first signal: while a sweep is only planned, there is nothing that must be kept.

    Raises:
        Interrupted: a signal came.
    """

    def give_up(number: int, frame: object) -> None:
        raise Interrupted(f"stopped by {signal.Signals(number).name}; nothing was started")

    with _taking(give_up):
        yield


def ignore_signals() -> None:
    """Let none of the signals end this process: it ends with its driver, once what it does has its checkpoint."""
    for number in (*TERMINAL, *PREEMPTION):
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def _taking(handler: Handler) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [*PREEMPTION, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup sets it
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier if earlier is not None else signal.SIG_DFL)
