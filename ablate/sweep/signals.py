"""Signals that end a sweep: the first lets trials write a checkpoint, a second ends it at once."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator

from ablate.sweep.events import Interrupted

ECHO = 0.3
"""Seconds within which a second signal is the first one again: a wrapper that forwards what its child got too."""


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
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup sets it
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
