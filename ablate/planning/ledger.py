"""What an arm is and costs: parameters, training FLOPs and activations, counted without memory or time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from torch import nn

from ablate.experiment.settings import Setup
from ablate.model.example import example
from ablate.model.keys import generator
from ablate.model.parameters import named_parameters
from ablate.planning.counting import Cost, cost_of
from ablate.planning.shape import Shape
from ablate.slots import Interface, Loss, Parameter

T = TypeVar("T")

TABLES = frozenset({"embed", "position", "head"})
"""Roles that count as embeddings: what is looked up, and the output's matrix."""

LARGEST = 500_000_000
"""A model of more parameters than this is never run on the CPU."""


@dataclass(frozen=True)
class Ledger:
    """An arm's size and price."""

    parameters: int
    """All parameters; a shared one counts once."""
    non_embedding: int
    """Without the token embedding, the position table and the output's matrix."""
    parts: Mapping[str, int]
    """Parameters by part: those of all blocks under the sublayer's name (``mixer``, ``feed_forward``), norms together,
    the others under their own name (``embed``, ``head``)."""
    flops: int
    """Floating-point operations of one training step, forward and backward: matrix products and convolutions as
    torch's counter sees them, and what components declare."""
    tokens: int
    """Tokens in one training step."""
    activations: int
    """Bytes that autograd keeps for the backward pass of one training step, at 32 bit; parameters and buffers are
    not among them."""


def ledger(setup: Setup, interface: Interface) -> Ledger:
    """Build the arm's model on the meta device and count; once per distinct shape.

    A model that must see values, and so cannot run on the meta device, is run on the CPU with a batch of one, whose
    costs are multiplied by the batch.

    Raises:
        ImpossibleError: a component cannot work here; says why.
        Exception: whatever the code of a component raises.
    """
    return _ledger(Shape(setup.model, interface), setup.training.loss, setup.training.batch)


def parameter_count(setup: Setup, interface: Interface) -> int:
    """All parameters of the arm's model, a shared one once; only builds it, once per distinct model.

    Raises:
        ImpossibleError: a component cannot work here; says why.
        Exception: whatever the code of a component raises.
    """
    return sum(size for _, _, size in _sizes(Shape(setup.model, interface)))


@cache
def _sizes(shape: Shape) -> tuple[tuple[str, str, int], ...]:
    """The part, the role and the size of every parameter."""
    return _without_values(lambda: _measured(shape.on_meta()), lambda: _measured(shape.on_cpu()))


def _measured(network: nn.Module) -> tuple[tuple[str, str, int], ...]:
    return tuple((_part(parameter), parameter.role, value.numel()) for parameter, value in named_parameters(network))


def _part(parameter: Parameter) -> str:
    if parameter.role == "norm" or parameter.role in TABLES:
        return parameter.role
    steps = parameter.name.removeprefix("encoder.").split(".")
    return steps[2] if steps[0] == "block" and len(steps) > 2 else parameter.name.split(".")[0]


@cache
def _ledger(shape: Shape, loss: Loss, batch: int) -> Ledger:
    sizes = _sizes(shape)

    def on_cpu() -> Cost:
        sample = example(shape.interface, 1, generator("planning", "tokens"))
        return cost_of(shape.on_cpu(), loss, sample, times=batch)

    def on_meta() -> Cost:
        return cost_of(shape.on_meta(), loss, example(shape.interface, batch, None))

    parameters = sum(size for _, _, size in sizes)
    parts: dict[str, int] = {}
    for part, _, size in sizes:
        parts[part] = parts.get(part, 0) + size
    cost = on_meta() if parameters > LARGEST else _without_values(on_meta, on_cpu)
    return Ledger(
        parameters=parameters,
        non_embedding=sum(size for _, role, size in sizes if role not in TABLES),
        parts=parts,
        flops=cost.flops,
        tokens=batch * shape.interface.tokens,
        activations=cost.activations,
    )


def _without_values(on_meta: Callable[[], T], on_cpu: Callable[[], T]) -> T:
    """What the meta device gives; where code must see values (``.item()``, ``nonzero()``), what the CPU gives.

    Such errors are of many kinds and worded differently in every version of torch. A mistake of the component's own
    that looks like one is met again on the CPU, and told from there.
    """
    try:
        return on_meta()
    except RuntimeError:
        pass
    except TypeError as error:
        if "meta" not in str(error):
            raise
    return on_cpu()
