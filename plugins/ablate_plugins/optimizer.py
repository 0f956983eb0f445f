"""Optimizers: how gradients become updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from pydantic import Field
from torch import nn

from ablate.slots import Optimizer, Parameter


class AdamW(Optimizer):
    """Adam with decoupled weight decay; gains and biases are not decayed.

    Source: Loshchilov and Hutter 2019, Decoupled Weight Decay Regularization.
    """

    kind: Literal["adamw"] = "adamw"
    lr: float = Field(1e-3, gt=0)
    """Peak learning rate."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay of the mean of the gradients."""
    beta2: float = Field(0.98, ge=0, lt=1)
    """Decay of the mean of their squares."""
    eps: float = Field(1e-8, gt=0)
    """Added to the root of the mean square."""
    weight_decay: float = Field(0.01, ge=0)
    """Share of a matrix that decays per step at a learning rate of 1."""

    def build(self, parameters: Sequence[tuple[Parameter, nn.Parameter]]) -> torch.optim.Optimizer:
        """The optimizer, with one group that decays and one that does not."""
        matrices = [value for parameter, value in parameters if len(parameter.shape) >= 2]
        others = [value for parameter, value in parameters if len(parameter.shape) < 2]
        groups: list[dict[str, Any]] = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
        return torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=self.lr,
            betas=(self.beta1, self.beta2),
            eps=self.eps,
            weight_decay=self.weight_decay,
            fused=True,
        )
