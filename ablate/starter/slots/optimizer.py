"""An optimizer of my own: how gradients become updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from ablate.slots import Optimizer, Parameter
from pydantic import Field
from torch import nn


class _SignDescent(torch.optim.Optimizer):
    """What is kept between steps lies in `self.state`, which checkpoints hold."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for value in group["params"]:
                if value.grad is None:
                    continue
                state = self.state[value]
                if "mean" not in state:
                    state["mean"] = torch.zeros_like(value)
                mean = state["mean"].lerp_(value.grad, 1 - group["beta"])
                value.sub_(mean.sign(), alpha=group["lr"])
        return loss


class MyComponent(Optimizer):
    """Move each value by the learning rate against the sign of its mean gradient.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    lr: float = Field(1e-3, gt=0)
    """Peak learning rate."""
    beta: float = Field(0.9, ge=0, lt=1)
    """Decay of the mean of the gradients."""

    def build(self, parameters: Sequence[tuple[Parameter, nn.Parameter]]) -> torch.optim.Optimizer:
        """The optimizer over these parameters, at the peak learning rate."""
        defaults: dict[str, Any] = {"lr": self.lr, "beta": self.beta}
        return _SignDescent([value for _, value in parameters], defaults)
