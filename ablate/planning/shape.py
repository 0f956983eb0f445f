"""A model of certain sizes, and how it is built without memory or with fixed values."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from ablate.model.example import FixedValues
from ablate.model.parameters import build, build_shape, root_site
from ablate.slots import Interface, Model


@dataclass(frozen=True)
class Shape:
    """A model for tasks of this interface; equal ones are counted once."""

    model: Model
    interface: Interface

    def on_meta(self) -> nn.Module:
        """The model without its memory."""
        return build_shape(self.model, root_site(self.interface))

    def on_cpu(self) -> nn.Module:
        """The model with values that depend on nothing but the names and shapes of its parameters."""
        return build(self.model, root_site(self.interface), stream=("planning",), initializer=FixedValues())
