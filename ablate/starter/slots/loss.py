"""A loss of my own: what training minimises."""

from __future__ import annotations

from typing import Literal

from ablate.slots import IGNORED, Loss
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy


class MyComponent(Loss):
    """Cross-entropy that counts less where the model is already sure.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    focus: float = Field(1.0, ge=0)
    """How much less: the power of what is missing to certainty; 0 for not at all."""

    def measure(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Logits (N, V) and targets (N,), or IGNORED -> a scalar."""
        nats = cross_entropy(logits, targets, ignore_index=IGNORED, reduction="none")
        missing = 1 - (-nats).exp()
        counted = (targets != IGNORED).sum().clamp(min=1)
        return (missing.clamp(min=1e-6) ** self.focus * nats).sum() / counted
