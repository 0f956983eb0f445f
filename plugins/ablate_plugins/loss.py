"""Losses: what training minimises."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from ablate.slots import IGNORED, Loss


def _mean(values: Tensor, counted: Tensor) -> Tensor:
    """The sum of values, 0 where not counted, over their number; 0 with a gradient of 0 where none is counted."""
    return values.sum() / counted.sum().clamp(min=1)


class CrossEntropy(Loss):
    """The mean negative log-likelihood of the targets, with optional smoothing of labels and a pull on log Z.

    Source: Szegedy et al. 2016, Rethinking the Inception Architecture, §7, for smoothing; Chowdhery et al. 2022, PaLM,
    §5, for the z-loss.
    """

    kind: Literal["cross_entropy"] = "cross_entropy"
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target that is spread evenly over all tokens; only training is smoothed, no metric."""
    z_loss: float = Field(0.0, ge=0)
    """Weight of the mean squared logarithm of the softmax's denominator; PaLM's is 1e-4."""

    def measure(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Logits (N, V) and targets (N,) -> a scalar, in nats; 0 where all targets are `IGNORED`."""
        counted = targets != IGNORED
        # Torch's own mean is not a number where nothing counts.
        total = cross_entropy(
            logits, targets, ignore_index=IGNORED, reduction="sum", label_smoothing=self.label_smoothing
        )
        loss = _mean(total, counted)
        if self.z_loss:
            squared = torch.where(counted, logits.logsumexp(-1).square(), 0.0)
            loss = loss + self.z_loss * _mean(squared, counted)
        return loss


class Focal(Loss):
    """Cross-entropy that weighs a target the less the better it is predicted: -(1 - p)^gamma log p.

    Source: Lin et al. 2017, Focal Loss for Dense Object Detection, §3.2.
    """

    kind: Literal["focal"] = "focal"
    gamma: float = Field(2.0, ge=0)
    """How fast the weight falls with p; 0 is cross-entropy."""

    def measure(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Logits (N, V) and targets (N,) -> a scalar; 0 where all targets are `IGNORED`."""
        nats = cross_entropy(logits, targets, ignore_index=IGNORED, reduction="none")
        # 1 - p, precise for p near 1; kept off 0, where a power below 1 has no finite slope.
        missing = (-torch.expm1(-nats)).clamp(min=torch.finfo(nats.dtype).tiny)
        return _mean(missing**self.gamma * nats, targets != IGNORED)
