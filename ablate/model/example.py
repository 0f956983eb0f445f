"""Samples and initial values that stand for any: what a model is tried out with before it is trained."""

from __future__ import annotations

import torch
from torch import Tensor

from ablate.slots import Batch, Initializer, Interface, Parameter


def example(interface: Interface, size: int, generator: torch.Generator | None) -> Batch:
    """A batch that a task of this interface could train on: random tokens, and where there is padding, some of it.

    Without a generator it is on the meta device, where it has a shape and no values.
    """
    inputs: tuple[Tensor, ...]
    if interface.features:
        tokens = _values((size, interface.length, interface.features), generator)
    else:
        tokens = _drawn(interface.vocabulary, (size, interface.length), generator)
    if interface.form == "classification":
        inputs = (tokens, _valid(size, interface.length, generator))
        return Batch(inputs, _drawn(interface.classes, (size,), generator))
    targets = _drawn(interface.vocabulary, (size, interface.length), generator)
    if interface.form == "language_modelling":
        return Batch((tokens,), targets)
    source = _drawn(interface.source_vocabulary, (size, interface.source_length), generator)
    return Batch((source, _valid(size, interface.source_length, generator), tokens), targets)


def _drawn(choices: int, shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
    if generator is None:
        return torch.empty(shape, dtype=torch.long, device="meta")
    return torch.randint(choices, shape, generator=generator)


def _values(shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
    if generator is None:
        return torch.empty(shape, device="meta")
    return torch.randn(shape, generator=generator)


def _valid(size: int, length: int, generator: torch.Generator | None) -> Tensor:
    """Every other sequence is shorter by a third."""
    if generator is None:
        return torch.empty((size, length), dtype=torch.bool, device="meta")
    lengths = torch.where(torch.arange(size) % 2 == 0, length, max(1, length - length // 3))
    return torch.arange(length) < lengths[:, None]


class FixedValues(Initializer):
    """Draw from N(0, 1/fan-in), whatever the experiment's own initialiser does."""

    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill in place."""
        tensor.normal_(0.0, max(1, tensor[:1].numel()) ** -0.5, generator=generator)
