"""The slot of tasks, and the data that a task gives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from ablate.slots.component import Component
from ablate.slots.interface import Batch, Interface

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


MANY_UNKNOWN = 0.2
"""Share of the evaluated tokens that may be unknown without a word on it."""


class Data(Protocol):
    """A task's data, read and checked, ready to give batches.

    Where tokens stand for text, it may have a ``tokenizer`` with a method ``written()`` that gives all of it as JSON
    values: it is kept with the trained model.
    """

    interface: Interface
    digest: str
    """Hash of the content and of how it is cut; part of a trial's identity."""
    facts: Mapping[str, float]
    """What the report states of the data, as ``unigram_entropy`` in nats. Shares that begin with ``unknown_in_`` are of
    evaluated tokens that training has not: a plan warns of many."""

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Training samples, ``size`` of them, drawn from ``generator`` alone."""
        ...

    def evaluation(self, size: int) -> Sequence[Batch]:
        """The fixed evaluation set, in batches of at most ``size``; the same at every call."""
        ...


class Task(Component):
    """What a model is trained and judged on."""

    slot: ClassVar[str] = "task"
    usual: ClassVar[str | None] = "text"
    units: ClassVar[Mapping[str, str]]
    """The metrics that the task reports, as ``val/loss``, each with its unit."""

    @abstractmethod
    def load(self, folder: str) -> Data:
        """Read the data; relative paths are relative to ``folder``.

        Raises:
            InputError: the data cannot be used; says why and what to do.
        """

    @abstractmethod
    def tally(self, network: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """What a network in evaluation mode makes of a batch, as sums that can be added up over batches (0-d)."""

    @abstractmethod
    def metrics(self, totals: Mapping[str, float]) -> Mapping[str, float]:
        """What is reported of the evaluation set, from the sums over all of it."""
