"""Whether a module can be imported by itself, seen in a fresh interpreter that has imported nothing but torch."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

# Torch takes most of the time of an import, so one interpreter imports it and each module is imported in a fork of it.
_SERVER = r"""
import importlib, importlib.util, json, os, random, sys
import numpy, torch

sys.dont_write_bytecode = True  # nothing is left beside a user's file

def state():
    return {
        "draws from Python's global generator": hash(random.getstate()),
        "draws from numpy's global generator": str(numpy.random.get_state(legacy=False)),
        "draws from torch's global generator": torch.get_rng_state().numpy().tobytes(),
        "changes torch's default dtype": torch.get_default_dtype(),
        "changes torch's default device": torch.get_default_device(),
        "changes torch's number of threads": torch.get_num_threads(),
        "switches gradients off": torch.is_grad_enabled(),
        "makes torch's algorithms deterministic": torch.are_deterministic_algorithms_enabled(),
    }

def bring_in(name, file):
    before = state()
    try:
        if file is None:
            importlib.import_module(name)
        else:
            spec = importlib.util.spec_from_file_location(name, file)
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
    except BaseException as error:
        return f"{type(error).__name__}: {error}".split("\n")[0]
    after = state()
    return ", ".join(what for what in before if before[what] != after[what]) or None

answers = os.dup(1)
os.dup2(2, 1)
for line in sys.stdin:
    name, file, path = json.loads(line)
    child = os.fork() if hasattr(os, "fork") else 0
    if not child:
        sys.path[:] = path
        os.write(answers, (json.dumps(bring_in(name, file)) + "\n").encode())
        os._exit(0) if hasattr(os, "fork") else None
    elif os.waitpid(child, 0)[1]:
        os.write(answers, (json.dumps("the interpreter ended") + "\n").encode())
"""


def imported_alone(module: str, file: str | None) -> str | None:
    """What is wrong with importing a module in a fresh interpreter: its exception, or what it changed for others.

    Args:
        module: its name.
        file: its path, where it is a single file and no part of a package.
    """
    return _imported(module, file, os.getpid())


@cache
def _imported(module: str, file: str | None, process: int) -> str | None:
    server = _server(process)
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps([module, file, sys.path]) + "\n")
    server.stdin.flush()
    answer: Any = json.loads(server.stdout.readline())
    return None if answer is None else str(answer)


@cache
def _server(process: int) -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    atexit.register(_end, server, process)
    return server


def _end(server: subprocess.Popen[str], process: int) -> None:
    if process != os.getpid():  # a fork of the process whose server it is
        return
    server.communicate()
