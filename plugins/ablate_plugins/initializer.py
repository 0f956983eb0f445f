"""Initialisers: how matrices and embeddings are drawn; biases start at zero, gains at what their component says."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from ablate.slots import Initializer, Parameter

LOOKED_UP = frozenset({"embed", "position"})
"""Roles whose rows are looked up: one input is on, so the fan-in is one."""


class LecunNormal(Initializer):
    """Draw from N(0, 1/fan-in), which keeps the variance of what passes through; looked-up tables from N(0, 1).

    Source: LeCun et al. 1998, Efficient BackProp, §4.6.
    """

    kind: Literal["lecun_normal"] = "lecun_normal"

    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill in place; the fan-in is the product of all axes but the first."""
        fan_in = 1 if parameter.role in LOOKED_UP else tensor[0].numel()
        tensor.normal_(0.0, fan_in**-0.5, generator=generator)


class Normal(Initializer):
    """Draw everything from one normal distribution.

    Source: Radford et al. 2018, §4.1, with a standard deviation of 0.02.
    """

    kind: Literal["normal"] = "normal"
    std: float = Field(0.02, gt=0)
    """Standard deviation."""

    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill in place."""
        tensor.normal_(0.0, self.std, generator=generator)
