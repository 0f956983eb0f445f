"""The slot of tasks, and the data that a task gives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from ablate.slots.component import Component

if TYPE_CHECKING:
    import torch
    from torch import Tensor


Batch = tuple["Tensor", "Tensor"]


class Data(Protocol):
    """A task's data, read and checked, ready to give batches."""

    vocabulary: int
    context: int
    digest: str
    """Hash of the content and of how it is cut; part of a trial's identity."""
    facts: Mapping[str, float]
    """What the report states of the data, as ``unigram_entropy`` in nats."""

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Training inputs and targets, (size, T) each, drawn from ``generator`` alone."""
        ...

    def evaluation(self, size: int) -> Sequence[Batch]:
        """The fixed evaluation set, in batches of at most ``size``; the same at every call."""
        ...


class Task(Component):
    """What a model is trained and judged on."""

    slot: ClassVar[str] = "task"
    units: ClassVar[Mapping[str, str]]
    """The metrics that the task reports, as ``val/loss``, each with its unit."""

    @abstractmethod
    def load(self, folder: str) -> Data:
        """Read the data; relative paths are relative to ``folder``.

        Raises:
            InputError: the data cannot be used; says why and what to do.
        """

    @abstractmethod
    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss that is minimised: a scalar, in nats where it is a log-likelihood."""

    @abstractmethod
    def metrics(self, loss: float) -> Mapping[str, float]:
        """What is reported of the evaluation set, from its mean loss."""
