"""The slots of training."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ablate.slots.component import Component
from ablate.slots.site import Parameter

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


class Initializer(Component):
    """Draws the initial values of every parameter of two or more axes.

    A bias starts at zero, and any other vector as its component built it.
    """

    slot: ClassVar[str] = "initializer"
    default: ClassVar[str | None] = "lecun_normal"

    @abstractmethod
    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill a CPU tensor in place, drawing from ``generator`` alone, which is keyed by seed and name."""


class Optimizer(Component):
    """Turns gradients into updates."""

    slot: ClassVar[str] = "optimizer"
    usual: ClassVar[str | None] = "adamw"
    lr: float
    """Peak learning rate."""

    @abstractmethod
    def build(self, parameters: Sequence[tuple[Parameter, nn.Parameter]]) -> torch.optim.Optimizer:
        """The optimizer over these parameters, at the peak learning rate.

        In each step every group's ``lr`` becomes the schedule's, times the group's ``lr_scale`` if it has one.
        """


class Schedule(Component):
    """The learning rate's course, as a pure function of the step."""

    slot: ClassVar[str] = "schedule"
    default: ClassVar[str | None] = "constant"

    @abstractmethod
    def factor(self, step: int, steps: int) -> float:
        """What the peak rate is multiplied by at ``step`` (from 0) of ``steps``."""


class Loss(Component):
    """What training minimises."""

    slot: ClassVar[str] = "loss"
    default: ClassVar[str | None] = "cross_entropy"

    @abstractmethod
    def measure(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Logits (N, V) in float32 and targets (N,) -> a scalar, in nats where it is a log-likelihood.

        A target of ``IGNORED`` takes no part. Unless its traits say ``batch_dependent``, it is a mean over the targets
        that do: a batch that is too large for the memory is cut, and its parts weigh by how many targets they have.
        """
