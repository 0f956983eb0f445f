"""Runs the command line in forks of a process that has imported everything: a process of its own, without the wait."""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import traceback
from unittest.mock import patch

from ablate.registry import Registry
from ablate.slots import SLOTS
from ablate.sweep.workers import starting
from tests.ablate.cli.seedling import Seedling

HEAVY = (
    "torch._dynamo", "pytorch_lightning", "pandas", "seaborn", "statsmodels.api", "optuna", "ablate.cli.app",
    "ablate.planning", "ablate.reporting", "ablate.sweep.driver", "ablate.training.trial",
)  # fmt: skip


def serve() -> None:
    """For each line of standard input, a command as JSON, give its exit code as a line of standard output."""
    for module in HEAVY:
        importlib.import_module(module)
    registry = Registry.installed()
    for slot in SLOTS:
        registry.kinds(slot)
    if len(os.listdir("/proc/self/task")) != 1:
        raise SystemExit("a process of more than one thread cannot be forked")
    gc.collect()
    gc.freeze()  # a collection in a fork would otherwise touch, and so copy, every page that it shares
    print(flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(command)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(command: dict[str, str]) -> None:
    for stream, path in ((0, os.devnull), (1, command["stdout"]), (2, command["stderr"])):
        opened = os.open(path, os.O_RDONLY if stream == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, stream)
        os.close(opened)
    code = 1
    seedling = None
    try:
        os.chdir(command["folder"])
        sys.argv = ["ablate", *command["arguments"]]
        from ablate.cli import main

        seedling = Seedling()
        with patch.object(starting, "_python", seedling.instead_of(starting._python)):
            main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        if seedling:
            seedling.close()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
