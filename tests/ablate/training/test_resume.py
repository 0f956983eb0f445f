"""A trial that was killed or stopped ends as if nothing had happened, bit for bit."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
import torch

from ablate.records.layout import TrialFolder, read_json
from ablate.records.series import read_series
from ablate.registry import Registry
from ablate.sweep.workers.starting import SINGLE_THREAD
from ablate.training import checkpoints
from ablate.training.trial import train
from tests.trial_maker import make_trial

WORKERS = """
import os, signal, sys
from pathlib import Path
from ablate.records.layout import TrialFolder
from ablate.registry import Registry
from ablate.training.trial import preload, train

preload()
for line in sys.stdin:
    worker = os.fork()
    if worker:
        print(worker, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]), flush=True)
        continue
    stopped = []
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stopped.append(True))
    folder = TrialFolder(Path(line.strip()))
    print(train(folder, 1, Registry.installed(), should_stop=lambda: bool(stopped)), flush=True)
    os._exit(0)
"""
STEPS = 400
DROPOUT = {"dropout": 0.1, "mixer": {"kind": "attention", "heads": 2, "dropout": 0.1}}


def outcome(folder: TrialFolder) -> tuple[dict[str, Any], Any, Any]:
    """All of a trial that is not a time."""
    record = read_json(folder.result)
    kept = {key: record[key] for key in ("end", "reason", "steps", "tokens", "metrics", "facts")}
    curves, probes = (read_series(folder.path / record["files"][name]) for name in ("curves", "probes"))
    return kept, curves.to_pydict(), probes.to_pydict()


@pytest.fixture(scope="module")
def workers() -> Iterator[tuple[IO[str], IO[str]]]:
    """A process that forks a worker for each folder: what trials import is imported once."""
    command = [sys.executable, "-c", WORKERS]
    environment = {**os.environ, **SINGLE_THREAD}  # a process of several threads cannot be forked
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdin, process.stdout
        process.stdin.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Any, Any]:
    folder = make_trial(tmp_path_factory.mktemp("undisturbed") / "trial", steps=STEPS, model=DROPOUT)
    assert train(folder, 1, Registry.installed()) == "complete"
    return outcome(folder)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_ends_in_the_middle_of_the_epoch_is_resumed_bit_for_bit(
    tmp_path: Path,
    how: signal.Signals,
    undisturbed: tuple[dict[str, Any], Any, Any],
    workers: tuple[IO[str], IO[str]],
) -> None:
    folder = make_trial(tmp_path / "trial", steps=STEPS, model=DROPOUT, checkpoint_seconds=0.1)
    stdin, stdout = workers
    print(folder.path, file=stdin, flush=True)
    worker = int(stdout.readline())
    while not folder.attempt(1).checkpoint.exists():
        os.kill(worker, 0)  # it is there
        time.sleep(0.02)
    os.kill(worker, how)
    if how == signal.SIGKILL:
        assert int(stdout.readline()) == -signal.SIGKILL
    else:
        assert (stdout.readline(), int(stdout.readline())) == ("interrupted\n", 0)
    assert not folder.result.exists()
    state = checkpoints.newest(folder)
    assert state
    assert 0 < state["done"] < STEPS

    assert train(folder, 2, Registry.installed()) == "complete"
    assert read_json(folder.result)["attempt"] == 2
    assert outcome(folder) == undisturbed


def test_the_same_trial_is_the_same_in_any_order_within_a_process(tmp_path: Path) -> None:
    registry = Registry.installed()
    first = make_trial(tmp_path / "first", model=DROPOUT)
    between = make_trial(tmp_path / "between", seed=1, training={"clip": 0.1})
    again = make_trial(tmp_path / "again", model=DROPOUT)
    for folder in (first, between, again):
        assert train(folder, 1, registry) == "complete"
    assert outcome(first) == outcome(again)
    assert outcome(first)[0]["metrics"] != outcome(between)[0]["metrics"]


def test_a_truncated_checkpoint_is_said_and_the_one_before_it_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_trial(tmp_path / "trial")
    asked = iter([False] * 10 + [True])
    assert train(folder, 1, Registry.installed(), should_stop=lambda: next(asked)) == "interrupted"
    torn = folder.attempt(2)
    torn.path.mkdir()
    torn.checkpoint.write_bytes(folder.attempt(1).checkpoint.read_bytes()[:1000])
    state = checkpoints.newest(folder)
    assert state
    assert state["done"] == 11
    assert "the checkpoint of attempt 2 cannot be read" in caplog.text


def test_a_checkpoint_that_the_disk_does_not_take_leaves_the_one_before_it(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial")
    place = folder.attempt(1)
    place.path.mkdir()
    checkpoints.save(place, {"done": 1})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            checkpoints.save(place, {"done": 2, "network": torch.zeros(50_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert Path(raised.value.filename).parent == place.path
    state = checkpoints.newest(folder)
    assert state
    assert state["done"] == 1
    assert {path.name for path in place.path.iterdir()} == {"checkpoint.pt", "checkpoint.json"}


def test_the_newest_checkpoint_is_that_of_the_last_attempt_whatever_the_clock_says(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial")
    for number, age in ((1, 0), (2, 10**6)):
        place = folder.attempt(number)
        place.path.mkdir()
        checkpoints.save(place, {"done": number})
        moment = time.time() - age  # the clock was set back between the two
        os.utime(place.checkpoint, (moment, moment))
    state = checkpoints.newest(folder)
    assert state
    assert state["done"] == 2


def test_a_sealed_record_is_never_replaced(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial", steps=5)
    train(folder, 1, Registry.installed())
    before = folder.result.read_text()
    train(folder, 2, Registry.installed())
    assert folder.result.read_text() == before
    assert json.loads(before)["attempt"] == 1


STATEFUL = """
from typing import Literal
import torch
from torch import Tensor, nn
from ablate.slots import Norm, Site

class Module(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width), persistent=False)

    def forward(self, x):
        if self.training:
            self.mean.mul_(0.9).add_(0.1 * x.detach().mean((0, 1)))
        return nn.functional.dropout(x - self.mean, 0.2, self.training)

class Stateful(Norm):
    '''A norm with a hidden buffer that draws from the global generator.'''
    kind: Literal["stateful"] = "stateful"

    def build(self, at: Site) -> nn.Module:
        return Module(at.width)
"""


def test_a_strangers_hidden_buffer_and_global_draws_are_resumed_too(tmp_path: Path) -> None:
    (tmp_path / "stateful.py").write_text(STATEFUL)
    registry = Registry.installed()
    registry.add_file(tmp_path / "stateful.py")
    whole, halves = (make_trial(tmp_path / name, model={"norm": "stateful"}) for name in ("whole", "halves"))
    assert train(whole, 1, registry) == "complete"
    asked = iter([False] * 25 + [True])
    assert train(halves, 1, registry, should_stop=lambda: next(asked)) == "interrupted"
    torch.rand(7)  # what else the process drew meanwhile does not matter
    assert train(halves, 2, registry) == "complete"
    assert outcome(whole) == outcome(halves)
