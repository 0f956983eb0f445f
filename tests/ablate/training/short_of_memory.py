"""A norm for which memory is short: what a model does on a device that is too small."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from ablate.slots import Norm, Site, Traits


class Tight(nn.Module):
    """Says that memory is short where more sequences come than fit."""

    passes: ClassVar[list[tuple[bool, int]]] = []
    """Of every pass, whether it was training, and how many sequences came."""

    seen: Tensor

    def __init__(self, options: ShortOfMemory) -> None:
        super().__init__()
        self.options = options
        self.scale = nn.Parameter(torch.ones(()))
        if options.counts:
            self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.passes.append((self.training, len(x)))
        if self.training and self.options.counts:
            self.seen.add_(1)  # a step that is begun leaves a trace
        fits = self.options.fits if self.training else self.options.evaluates
        if len(x) > fits or sum(training for training, _ in self.passes) == self.options.short_at:
            raise torch.OutOfMemoryError(f"{len(x)} sequences do not fit\nand more is said")
        return x * self.scale


class ShortOfMemory(Norm):
    """Scales by one number, and takes few sequences at once."""

    kind: Literal["short_of_memory"] = "short_of_memory"
    fits: int = 1000
    """So many sequences in training."""
    evaluates: int = 1000
    """So many in the evaluation."""
    short_at: int = 0
    """In this pass of training nothing fits; 0 for none."""
    leaks: bool = False
    """Say that a sequence sees the others."""
    counts: bool = False
    """Change a buffer in every pass."""

    def traits(self) -> Traits:
        """As the options say."""
        return Traits(batch_dependent=self.leaks)

    def build(self, at: Site) -> nn.Module:
        """Any shape -> the same."""
        return Tight(self)
