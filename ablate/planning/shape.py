"""A model of certain sizes, and how it is built without memory or with fixed values."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ablate.model.parameters import build, build_shape, root_site
from ablate.slots import Initializer, Model, Parameter


@dataclass(frozen=True)
class Shape:
    """A model for a task of this context and vocabulary; equal ones are counted once."""

    model: Model
    context: int
    vocabulary: int

    def on_meta(self) -> nn.Module:
        """The model without its memory."""
        return build_shape(self.model, root_site(self.context, self.vocabulary))

    def on_cpu(self) -> nn.Module:
        """The model with values that depend on nothing but the names and shapes of its parameters."""
        site = root_site(self.context, self.vocabulary)
        return build(self.model, site, stream=("planning",), initializer=_FixedValues())


class _FixedValues(Initializer):
    """Draw from N(0, 1/fan-in), whatever the experiment's own initialiser does."""

    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill in place."""
        tensor.normal_(0.0, max(1, tensor[:1].numel()) ** -0.5, generator=generator)
