"""What an arm is and costs: parameters and training FLOPs, counted without memory or time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ablate.experiment.settings import Setup
from ablate.model.parameters import build_shape, named_parameters, root_site
from ablate.slots import Model, Site, Task

TABLES = frozenset({"embed", "position", "head"})
"""Roles that count as embeddings: what is looked up, and the output's matrix."""


KEEPS_SHAPE = frozenset({"norm", "residual", "mixer", "feed_forward", "position"})
"""Slots whose modules give what has the shape of their first input."""


@dataclass(frozen=True)
class Ledger:
    """An arm's size and price."""

    parameters: int
    """All parameters; a shared one counts once."""
    non_embedding: int
    """Without the token embedding, the position table and the output's matrix."""
    flops: int
    """Floating-point operations of one training step, forward and backward, as torch's counter sees them."""
    tokens: int
    """Tokens in one training step."""


def ledger(setup: Setup, context: int, vocabulary: int) -> Ledger:
    """Build the arm's model on the meta device and count; once per distinct shape.

    Raises:
        ImpossibleError: a component cannot work here; says why.
    """
    return _ledger(setup.model, setup.task, setup.training.batch, context, vocabulary)


def _keeps_shape(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
    """Hold a component to its slot's contract where it is first run, so that the error names it and no other."""
    wanted, given = tuple(inputs[0].shape), tuple(getattr(output, "shape", ()))
    if given != wanted:
        site: Any = module.site
        found = given if isinstance(output, torch.Tensor) else type(output).__name__
        raise TypeError(f"the {site.slot} at `{site.path}` gave {found} for {wanted}")


@cache
def _ledger(model: Model, task: Task, batch: int, context: int, vocabulary: int) -> Ledger:
    network = build_shape(model, root_site(context, vocabulary))
    for module in network.modules():
        site: Site | None = getattr(module, "site", None)
        if site is not None and site.slot in KEEPS_SHAPE:
            module.register_forward_hook(_keeps_shape)
    sizes = [(parameter.role, value.numel()) for parameter, value in named_parameters(network)]
    tokens = torch.zeros(batch, context, dtype=torch.long, device="meta")
    with FlopCounterMode(display=False) as counter:
        task.loss(network(tokens), tokens).backward()
    return Ledger(
        parameters=sum(size for _, size in sizes),
        non_embedding=sum(size for role, size in sizes if role not in TABLES),
        flops=counter.get_total_flops(),
        tokens=batch * context,
    )
