"""A loop written by hand: nothing but the steps, in plain processes."""

from __future__ import annotations

import json
import sys
import time

_began = time.perf_counter()

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402

from ablate.model.keys import generator  # noqa: E402
from tests.benchmarks.ways.trials import BATCH, EVALUATIONS, RATE, Measured, name, packed, parts  # noqa: E402


def measure(steps: int, cores: int) -> Measured:
    """Train all trials."""
    return packed("tests.benchmarks.ways.by_hand", steps, cores)


def train(placement: str, seed: int, steps: int) -> float:
    """Train one trial; gives its last loss."""
    made = parts(placement, seed)
    network, optimizer, values = made.network, made.optimizer, list(made.network.parameters())
    evaluation, loss = made.data.evaluation(4 * BATCH), float("nan")
    for step in range(steps):
        batch = made.data.batch(BATCH, generator(seed, "data", step))
        for group in optimizer.param_groups:
            group["lr"] = RATE * made.schedule.factor(step, steps)
        optimizer.zero_grad()
        cross_entropy(network(*batch.inputs).flatten(0, 1), batch.targets.flatten()).backward()
        nn.utils.clip_grad_norm_(values, 1.0)
        optimizer.step()
        if (step + 1) % (steps // EVALUATIONS) == 0:
            with torch.no_grad():
                pairs = [(network(*each.inputs).flatten(0, 1), each.targets.flatten()) for each in evaluation]
                total = sum(float(cross_entropy(logits, targets, reduction="sum")) for logits, targets in pairs)
                loss = total / sum(targets.numel() for _, targets in pairs)
    return loss


def main() -> None:
    """Train the trials that are named, and print what they came to."""
    torch.set_num_threads(1)
    imported = time.perf_counter()
    steps, trials = int(sys.argv[1]), json.loads(sys.argv[2])
    losses = {name(placement, seed): train(placement, seed, steps) for placement, seed in trials}
    print(json.dumps({"losses": losses, "import": imported - _began, "train": time.perf_counter() - imported}))


if __name__ == "__main__":
    main()
