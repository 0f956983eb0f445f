"""Dropout whose masks are keyed by place and step, so that arms share them and a resumed run repeats them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ablate.model.keys import generator
from ablate.slots import ImpossibleError, Site, mark


class KeyedDropout(nn.Module):
    """Zero a share ``p`` of the values and scale up the rest, in training only.

    The mask is drawn on the CPU from a stream keyed by (seed, path, step) and moved.
    Source: Srivastava et al. 2014, Dropout.
    """

    def __init__(self, p: float, path: str) -> None:
        super().__init__()
        self.p = p
        self.path = path
        self.stream: tuple[int | str, ...] = ("unseeded",)
        self.step = 0

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        if not self.training:
            return x
        keep = torch.empty(x.shape).bernoulli_(1 - self.p, generator=generator(*self.stream, self.path, self.step))
        return x * keep.to(x.device, x.dtype) / (1 - self.p)


def dropout(p: float, at: Site) -> nn.Module:
    """Dropout at this site; nothing at all where ``p`` is 0."""
    if not 0 <= p < 1:
        raise ImpossibleError(f"a dropout of {p} is not in [0, 1)")
    return mark(KeyedDropout(p, at.path) if p else nn.Identity(), at)


def set_dropout(model: nn.Module, stream: tuple[int | str, ...], step: int) -> None:
    """Tell every dropout of a model which stream it draws from and which step comes next."""
    for module in model.modules():
        if isinstance(module, KeyedDropout):
            module.stream = stream
            module.step = step
