"""An initialiser of my own: how matrices and embeddings are drawn."""

from __future__ import annotations

from typing import Literal

import torch
from ablate.slots import Initializer, Parameter
from pydantic import Field
from torch import Tensor


class MyComponent(Initializer):
    """Draw from a uniform distribution around zero, narrower for wider inputs.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    gain: float = Field(1.0, gt=0)
    """Standard deviation, times the root of the fan-in."""

    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill in place; the fan-in is the product of all axes but the first."""
        bound = self.gain * (3 / tensor[0].numel()) ** 0.5
        tensor.uniform_(-bound, bound, generator=generator)
