"""A nursery without the wait for its imports: a fork of a process that has imported them.

That a nursery starts as a fresh interpreter is seen by the tests of workers, and by the commands that tests run as
processes of their own.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import IO, Any

from ablate.sweep.workers import nursery

Start = Callable[[str, socket.socket, str, IO[bytes], Mapping[str, str]], Any]


class Seedling:
    """A child forked before the command began, which knows nothing of it and becomes its first nursery if asked."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            self._control.close()
            _wait(theirs)
        theirs.close()
        self._code: int | None = None
        self._asked = False

    def instead_of(self, start: Start) -> Start:
        """What starts a process as ``start`` does, but takes this child for the first nursery."""

        def begin(
            module: str, end: socket.socket, trainer: str, output: IO[bytes], environment: Mapping[str, str]
        ) -> Any:
            if module != nursery.__name__ or self._asked:
                return start(module, end, trainer, output, environment)
            self._asked = True
            asked = {"trainer": trainer, "parent": os.getpid(), "path": sys.path, "environment": dict(environment)}
            socket.send_fds(self._control, [json.dumps(asked).encode()], [end.fileno(), output.fileno()])
            return self

        return begin

    def wait(self, timeout: float | None = None) -> int:
        """As a Popen's."""
        deadline = time.monotonic() + (timeout or 0.0)
        while self._code is None:
            pid, status = os.waitpid(self.pid, 0 if timeout is None else os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("nursery", timeout or 0.0)
            else:
                time.sleep(0.005)
        return self._code

    def kill(self) -> None:
        """As a Popen's."""
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Let a child that was not asked end; a nursery ends with its driver."""
        self._control.close()
        if not self._asked:
            self.wait()


def _wait(control: socket.socket) -> None:
    code = 1
    try:
        data, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 2)
        if not data:
            os._exit(0)
        asked = json.loads(data)
        end, output = descriptors
        control.close()
        for stream in (1, 2):
            os.dup2(output, stream)
        os.close(output)
        os.setpgid(0, 0)
        os.environ.update(asked["environment"])
        sys.path[:] = asked["path"]
        sys.argv = ["nursery", str(end), str(asked["parent"]), asked["trainer"]]
        nursery.main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
