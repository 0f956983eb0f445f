"""The nursery: one process that imports what trials need, once, and forks the workers.

Importing torch and Lightning takes seconds, and a worker that died would take them again. A fork of a process that has
imported them takes milliseconds, and shares their memory. Forking is safe only where no other thread can hold a lock at
that moment; so the nursery imports with one thread, counts its threads, and declines if there is a second one.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from typing import Any, NoReturn

from ablate.sweep.signals import ignore_signals
from ablate.sweep.workers.lifeline import Line, die_with_parent
from ablate.sweep.workers.machine import resident
from ablate.sweep.workers.worker import Worker, preload


class Nursery:
    """Forks a worker for every request that comes over ``control``, or kills one, and says when one has ended."""

    def __init__(self, control: socket.socket) -> None:
        """Take over the nursery's end of the connection with the driver."""
        self._control = control
        self._children: dict[int, int] = {}

    def tend(self) -> NoReturn:
        """Serve until the driver is gone, and then end every worker."""
        woken, wake = socket.socketpair()
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is woken:
                        woken.recv(4096)
                        self._reap()
                    elif not self._answer([woken, wake]):
                        self._end()

    def _answer(self, private: list[socket.socket]) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, 1)
        if not data:
            return False
        message = json.loads(data)
        if "kill" in message:
            self._kill(message["kill"])
            return True
        nursery = os.getpid()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                die_with_parent(nursery)
                for end in (self._control, *private):
                    end.close()
                Worker(Line(socket.socket(fileno=descriptors[0])), shared=resident() or 0).serve()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                # Not sys.exit: what was to happen at the nursery's end must not happen in each of its children.
                with contextlib.suppress(Exception):
                    sys.stdout.flush()
                os._exit(code)
        os.close(descriptors[0])
        self._children[child] = message["worker"]
        return True

    def _kill(self, worker: int) -> None:
        for child, its in self._children.items():
            if its == worker:  # it is ours until it is reaped, so its number is no other process's
                os.kill(child, signal.SIGKILL)

    def _reap(self) -> None:
        while self._children:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                return
            worker = self._children.pop(child, None)
            if worker is not None:
                self._say({"worker": worker, "exit": os.waitstatus_to_exitcode(status)})

    def _say(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the driver is gone; the next look at the control socket says so
            self._control.send(json.dumps(message).encode())

    def _end(self) -> NoReturn:
        for child in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in self._children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
        os._exit(0)


def threads() -> int:
    """How many threads this process has, those of C libraries too."""
    return len(os.listdir("/proc/self/task"))


def main() -> None:
    """Run as a process of its own: ``python -m ablate.sweep.workers.nursery DESCRIPTOR PARENT TRAINER``."""
    descriptor, parent, name = sys.argv[1:]
    die_with_parent(int(parent))
    # A signal to the whole job must not end the workers before they have written their checkpoints, nor the imports
    # with an error of their own: the nursery ends with its driver, and by nothing else that can be ignored.
    ignore_signals()
    control = socket.socket(fileno=int(descriptor))
    try:
        preload(name)
    except BaseException:
        control.send(json.dumps({"broken": traceback.format_exc()[-8000:]}).encode())
        sys.exit(1)
    if threads() > 1:
        control.send(json.dumps({"fit": False}).encode())
        return
    gc.collect()
    gc.freeze()  # a collection in a child would otherwise touch, and so copy, every page that it shares
    control.send(json.dumps({"fit": True}).encode())
    Nursery(control).tend()


if __name__ == "__main__":
    main()
