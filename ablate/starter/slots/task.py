"""A task of my own: what models are trained and judged on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
from ablate.model.scoring import tally
from ablate.slots import Batch, Data, Interface, Task
from pydantic import Field
from torch import Tensor, nn


class _Counting:
    """Sequences that count up by a step of their own, and begin anew at the end."""

    def __init__(self, context: int, numbers: int, samples: int) -> None:
        self.interface = Interface(context=context, vocabulary=numbers)
        self.digest = f"counting-1-{context}-{numbers}-{samples}"
        self.facts: Mapping[str, float] = {"numbers": float(numbers)}
        self._evaluated = self.batch(samples, torch.Generator().manual_seed(0))

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        numbers = self.interface.vocabulary
        first, step = torch.randint(numbers, (2, size, 1), generator=generator)
        place = torch.arange(self.interface.context + 1)
        tokens = (first + step * place) % numbers
        return Batch((tokens[:, :-1],), tokens[:, 1:])

    def evaluation(self, size: int) -> Sequence[Batch]:
        (tokens,), targets = self._evaluated
        parts = zip(tokens.split(size), targets.split(size), strict=True)
        return [Batch((part,), wanted) for part, wanted in parts]


class MyComponent(Task):
    """Predict the next number of a sequence that counts up by a step of its own.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    context: int = Field(16, ge=2)
    """Numbers that the model sees at once."""
    numbers: int = Field(16, ge=2)
    """How many numbers there are; after the last comes the first."""
    samples: int = Field(256, ge=1)
    """Sequences in the evaluation set."""

    units: ClassVar[Mapping[str, str]] = {"val/loss": "nats/token", "val/accuracy": ""}

    def load(self, folder: str) -> Data:
        """The data, which are made rather than read."""
        return _Counting(self.context, self.numbers, self.samples)

    def tally(self, network: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Sums that add up over batches."""
        return tally(network(*batch.inputs), batch.targets)

    def metrics(self, totals: Mapping[str, float]) -> Mapping[str, float]:
        """The mean loss of a token, and the share of tokens that were foretold."""
        count = totals["count"]
        return {
            "val/loss": totals["nats"] / count,
            "val/accuracy": totals["correct"] / count,
        }
