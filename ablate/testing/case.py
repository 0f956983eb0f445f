"""A component that is checked, with what several checks need of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from ablate.model.example import FixedValues
from ablate.model.keys import generator
from ablate.model.parameters import initialise
from ablate.registry import Registry
from ablate.slots import Component, Traits
from ablate.testing.subjects import Subject, subjects_of


@dataclass(frozen=True)
class Case:
    """One component with its options."""

    component: Component
    registry: Registry

    @cached_property
    def traits(self) -> Traits:
        """What the component declares."""
        return self.component.traits()

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """Its modules, one for each kind of place where it can stand; none where the slot builds no module.

        Raises:
            Exception: whatever its `build` raises; ImpossibleError where it can stand nowhere.
        """
        return subjects_of(self.component)


def built(subject: Subject, seed: int = 0) -> nn.Module:
    """A subject's module with initial values that depend on the seed and the names of the parameters alone.

    Vectors and single numbers are moved off their constants, so that a gate that starts at zero hides nothing.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # a component that draws in `build` against its contract fails the check of that alone
        module = subject.make()
    return settled(module, seed)


def settled(module: nn.Module, seed: int = 0) -> nn.Module:
    """A module with the values that :func:`built` gives."""
    initialise(module, FixedValues(), ("testing", seed))
    with torch.no_grad():
        for name, value in module.named_parameters():
            if value.dim() < 2:
                value.add_(0.1 * torch.randn(value.shape, generator=generator("testing", seed, "moved", name)))
    return module


def outputs(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What a module gives, without gradients."""
    with torch.no_grad():
        found: tuple[Tensor, ...] = module(*inputs)
    return found


def difference(first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> float:
    """The largest difference of two outputs, as a share of the first's largest value; infinite where not finite."""
    worst = 0.0
    for one, other in zip(first, second, strict=True):
        if one.shape != other.shape or not bool(one.isfinite().all() and other.isfinite().all()):
            return float("inf")
        if one.numel():
            largest = max(float(one.abs().max()), 1e-6)
            worst = max(worst, float((one - other).abs().max()) / largest)
    return worst


SAME = 1e-5
"""Outputs whose largest difference is under this share of the largest value are the same, but for rounding."""
