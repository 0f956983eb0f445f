"""Dropout whose masks are keyed by place and step, so that arms share them and a resumed run repeats them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ablate.model.keys import generator
from ablate.slots import ImpossibleError, Site, mark


class Rows(NamedTuple):
    """Which rows of a batch a forward pass is given."""

    first: int
    size: int
    whole: int
    """How many the batch has."""


class KeyedDropout(nn.Module):
    """Zero a share ``p`` of the values and scale up the rest, in training only.

    The mask is drawn on the CPU from a stream keyed by (seed, path, step) and moved. Rows of a batch get the rows of
    the batch's mask, so that a step is the same in one pass and in several.
    Source: Srivastava et al. 2014, Dropout.
    """

    def __init__(self, p: float, path: str) -> None:
        super().__init__()
        self.p = p
        self.path = path
        self.stream: tuple[int | str, ...] = ("unseeded",)
        self.step = 0
        self.rows: Rows | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        if not self.training:
            return x
        return x * self._keep(x.shape).to(x.device, x.dtype) / (1 - self.p)

    def _keep(self, shape: torch.Size) -> Tensor:
        first, size, whole = self.rows or (0, 1, 1)
        key = (*self.stream, self.path, self.step)
        each, rest = divmod(shape[0], size) if shape else (0, 1)  # a batch's row may be several of what comes here
        if self.rows is None or rest:
            key = key if self.rows is None else (*key, first)  # no row of a batch comes first: a mask of its own
            return torch.empty(shape).bernoulli_(1 - self.p, generator=generator(*key))
        mask = torch.empty(each * whole, *shape[1:]).bernoulli_(1 - self.p, generator=generator(*key))
        return mask[each * first : each * (first + size)]


def dropout(p: float, at: Site) -> nn.Module:
    """Dropout at this site; nothing at all where ``p`` is 0."""
    if not 0 <= p < 1:
        raise ImpossibleError(f"a dropout of {p} is not in [0, 1)")
    return mark(KeyedDropout(p, at.path) if p else nn.Identity(), at)


def dropouts(model: nn.Module) -> list[KeyedDropout]:
    """Every keyed dropout of a model."""
    return [module for module in model.modules() if isinstance(module, KeyedDropout)]


def set_dropout(
    modules: Iterable[KeyedDropout], stream: tuple[int | str, ...], step: int, rows: Rows | None = None
) -> None:
    """Tell dropouts, all of a model, which stream they draw from, which step comes next, and with which rows."""
    for module in modules:
        module.stream = stream
        module.step = step
        module.rows = rows
