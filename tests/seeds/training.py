"""A model trained for a while on a task, and what it then gets right."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ablate.model.keys import generator
from ablate.model.objective import TrainingLoss
from ablate.model.parameters import build, root_site
from ablate.registry import Registry
from ablate.slots import IGNORED, Model, Task
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.loss import CrossEntropy

REGISTRY = Registry.installed()


def model(**options: Any) -> Any:
    """A model from its options as YAML has them."""
    kinds = {each.model_fields["kind"].default: each for each in REGISTRY.all("model")}
    return kinds[options["kind"]].model_validate(options, context={"registry": REGISTRY})


def trained(made: Model, task: Task, *, steps: int, lr: float = 3e-3, batch: int = 32, seed: int = 0) -> nn.Module:
    """The model's network after so many steps of Adam; everything is drawn by the seed."""
    data = task.load(".")
    network = build(made, root_site(data.interface), stream=(seed,), initializer=LecunNormal()).train()
    optimizer = torch.optim.Adam(network.parameters(), lr)
    loss, draws = TrainingLoss(network, CrossEntropy()), generator(seed, "data")
    for _ in range(steps):
        optimizer.zero_grad()
        loss(data.batch(batch, draws))[1].backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    return network.eval()


@torch.no_grad()
def right(network: nn.Module, task: Task) -> tuple[Tensor, Tensor]:
    """Of the evaluation set, which targets are right (N, T), and which count."""
    (batch,) = task.load(".").evaluation(10**6)
    return network(*batch.inputs).argmax(-1) == batch.targets, batch.targets != IGNORED


@torch.no_grad()
def judged(network: nn.Module, task: Task) -> dict[str, float]:
    """The task's own metrics on its evaluation set."""
    (batch,) = task.load(".").evaluation(10**6)
    return dict(task.metrics({name: float(value) for name, value in task.tally(network, batch).items()}))
