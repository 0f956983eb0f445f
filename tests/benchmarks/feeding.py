"""What feeding costs: the time of a batch against that of the step that it is for.

Run as ``python -m tests.benchmarks.feeding ROUNDS``. The decoder and the text are those of the benchmark of overhead.
Batches and steps are timed in turn, and the medians over all of them are printed, for text that is resident, and for
the same tokens memory-mapped from a file. Drawing the generator of a step is the engine's, and is not counted.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import ablate.data.tokens
from ablate.model.keys import generator
from ablate.model.parameters import build, named_parameters, root_site
from ablate.registry import Registry
from ablate.slots import Batch, Data
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.model.decoder import Decoder
from ablate_plugins.optimizer import AdamW
from ablate_plugins.task.text import Text

BATCH = 8
STEPS = 300
ROUNDS = 3


def stepping(data: Data) -> Callable[[Batch], None]:
    """What is done with a batch: forward, backward, clipping and the optimizer."""
    context = {"registry": Registry.installed()}
    model = Decoder.model_validate({"width": 64, "depth": 2}, context=context)
    network = build(model, root_site(data.interface), stream=(0,), initializer=LecunNormal())
    named = list(named_parameters(network))
    optimizer = AdamW(lr=1e-3).build(named)

    def step(batch: Batch) -> None:
        optimizer.zero_grad()
        cross_entropy(network(*batch.inputs).flatten(0, 1), batch.targets.flatten()).backward()
        nn.utils.clip_grad_norm_([value for _, value in named], 1.0)
        optimizer.step()

    return step


def measured(data: Data, rounds: int) -> tuple[float, float]:
    """Median seconds of a batch and of a step."""
    step, batches, steps = stepping(data), [], []
    for number in range(rounds * STEPS):
        drawn = generator(0, "data", number)
        began = time.perf_counter()
        batch = data.batch(BATCH, drawn)
        drawn_at = time.perf_counter()
        step(batch)
        batches.append(drawn_at - began)
        steps.append(time.perf_counter() - drawn_at)
    return statistics.median(batches), statistics.median(steps)


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    rounds = int(sys.argv[1]) if sys.argv[1:] else ROUNDS
    text = Text(source="python-docs", context=64)
    with tempfile.TemporaryDirectory() as folder:
        resident = text.load(".")
        with patch.dict(os.environ, ABLATE_CACHE=str(Path(folder))), patch.object(ablate.data.tokens, "LARGE", 0):
            mapped = text.load(".")
        for name, data in (("resident", resident), ("memory-mapped", mapped)):
            batch, step = measured(data, rounds)
            print(f"{name:14} batch {batch * 1e6:6.1f} µs   step {step * 1e3:6.2f} ms   share {batch / step:.2%}")


if __name__ == "__main__":
    main()
