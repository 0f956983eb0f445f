"""What all ways train: the trials, their parts, and what a way gives back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any

from ablate.model.parameters import build, named_parameters, root_site
from ablate.registry import Registry
from ablate.slots import Data
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.model import Decoder
from ablate_plugins.optimizer import AdamW
from ablate_plugins.schedule import CosineSchedule
from ablate_plugins.task import Text

PLACEMENTS = ("pre", "post", "res_post", "sandwich")
SEEDS = range(6)
RATE = 1e-2
BATCH = 8
EVALUATIONS = 10


@dataclass(frozen=True)
class Measured:
    """What a way took, and what it came to."""

    seconds: float
    """From the command to its end, start-up included."""
    losses: dict[str, float]
    """The final loss of each trial."""
    parts: dict[str, float] = field(default_factory=dict)
    """Seconds of the whole run that went into something that this way knows."""


@dataclass(frozen=True)
class Parts:
    """Everything of one trial before its first step."""

    data: Data
    network: Any
    optimizer: Any
    schedule: CosineSchedule


def name(placement: str, seed: int) -> str:
    """What a trial is called in every way."""
    return f"{placement}/{seed}"


def dealt(cores: int) -> list[list[tuple[str, int]]]:
    """The trials packed perfectly: as many to each core, and of each kind."""
    trials = [(placement, seed) for seed in SEEDS for placement in PLACEMENTS]
    return [trials[core::cores] for core in range(cores)]


@cache
def _registry() -> Registry:
    return Registry.installed()


def parts(placement: str, seed: int) -> Parts:
    """Make a trial's data, network, optimizer and schedule."""
    data = Text(source="python-docs", context=64).load(".")
    values = {"width": 64, "depth": 2, "placement": placement}
    model = Decoder.model_validate(values, context={"registry": _registry()})
    network = build(model, root_site(data.interface), stream=(seed,), initializer=LecunNormal())
    optimizer = AdamW(lr=RATE).build(list(named_parameters(network)))
    return Parts(data, network, optimizer, CosineSchedule(warmup=0.1))


def missing(*modules: str) -> str | None:
    """Why a way cannot be measured here, or None."""
    lacking = [module for module in modules if find_spec(module.partition(".")[0]) is None]
    return f"not measured: {', '.join(lacking)} not installed (pip install 'ablate-arch[bench]')" if lacking else None


def packed(module: str, steps: int, cores: int) -> Measured:
    """Train in one process a core, each with its share of the trials; what they print as JSON is put together."""
    began = time.perf_counter()
    commands = [[sys.executable, "-m", module, str(steps), json.dumps(trials)] for trials in dealt(cores)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    printed_by = [worker.communicate()[0] for worker in workers]
    if any(worker.returncode for worker in workers):
        raise RuntimeError(f"{module} failed, as printed above")
    said = [json.loads(printed.splitlines()[-1]) for printed in printed_by]
    seconds = time.perf_counter() - began
    split = {key: sum(each[key] for each in said) / cores for key in ("import", "train")}
    return Measured(seconds, {key: loss for each in said for key, loss in each["losses"].items()}, split)


def printed(command: Sequence[str]) -> tuple[float, dict[str, Any]]:
    """Seconds that a command takes, and the JSON object in the last line that it prints."""
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])} failed:\n{done.stderr[-4000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seconds, told


def cores() -> int:
    """How many trials run at once in every way."""
    return len(os.sched_getaffinity(0))
