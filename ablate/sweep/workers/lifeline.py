"""What ties the driver and its processes together: lines of JSON, and dying with the one that started us."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any

PR_SET_PDEATHSIG = 1


class Line:
    """One end of a connection that carries JSON objects, one a line."""

    def __init__(self, end: socket.socket) -> None:
        """Take over one end of a socket pair."""
        self._socket = end
        self._rest = b""

    def fileno(self) -> int:
        """The descriptor, for selectors."""
        return self._socket.fileno()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one object.

        Raises:
            OSError: the other end is gone.
        """
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, timeout: float | None) -> list[dict[str, Any]]:
        """What has come in, after waiting for at most ``timeout`` seconds (None: as long as it takes).

        Raises:
            EOFError: the other end is gone and everything that it sent has been given.
        """
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            return []
        data = received(self._socket)
        if not data:
            raise EOFError
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def hang_up(self) -> None:
        """Say that nothing more will come; what the other end says is still heard."""
        with contextlib.suppress(OSError):  # it is gone
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Hang up, and hear no more."""
        self._socket.close()


def received(end: socket.socket, flags: int = 0) -> bytes:
    """What a socket has for us; nothing if the other end is gone.

    Raises:
        BlockingIOError: it would have to wait, and the flags say not to.
    """
    for _ in range(2):
        try:
            return end.recv(1 << 16, flags)
        except ConnectionError:
            # The other end died before it had read all that we sent. That is told once, and before what it had sent.
            continue
    return b""


def die_with_parent(parent: int) -> None:
    """End this process with the process ``parent`` that started it (0: do not), by whatever that one ends.

    Only Linux can promise it. Elsewhere a worker notices at its next step, by the end of its line.
    """
    if parent and sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the kernel knew of our wish
            os._exit(1)


def told(exit_code: int | None) -> str:
    """What a process died of, in a word or two: ``SIGKILL``, ``exit code 3``."""
    if exit_code is None:
        return "unknown cause"
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def lost_by(cause: str) -> str:
    """What a worker died of, from :func:`told`, with what it may mean."""
    return f"{cause}, perhaps the out-of-memory killer" if cause == "SIGKILL" else cause
