"""The DataModule: batches are drawn by step, so a trial can start at any of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise, starmap

import pytorch_lightning as pl

from ablate.model.keys import generator
from ablate.slots import Batch, Data


class Batches:
    """The training batches from step ``start`` up to ``stop``; each is keyed by its step alone."""

    def __init__(self, data: Data, size: int, stream: tuple[int | str, ...], start: int, stop: int) -> None:
        self._data = data
        self._size = size
        self._stream = stream
        self._range = range(start, stop)

    def __iter__(self) -> Iterator[Batch]:
        for step in self._range:
            yield self._data.batch(self._size, generator(*self._stream, "data", step))


class Stretches:
    """The batches from step ``start`` on in stretches, one up to each of the steps ``ends``.

    A stretch is what Lightning takes for a batch: its loop costs half a millisecond each time, which is much beside a
    step of a small network.
    """

    def __init__(self, data: Data, size: int, stream: tuple[int | str, ...], start: int, ends: Iterable[int]) -> None:
        self._between = partial(Batches, data, size, stream)
        self._places = [start, *sorted(end for end in ends if end > start)]

    def __len__(self) -> int:
        return len(self._places) - 1

    def __iter__(self) -> Iterator[Batches]:
        return starmap(self._between, pairwise(self._places))


class TrialData(pl.LightningDataModule):
    """A task's data, as Lightning takes them."""

    def __init__(self, stretches: Stretches) -> None:
        super().__init__()
        self._stretches = stretches

    def train_dataloader(self) -> Stretches:
        """All batches that are still to come; one epoch is one trial."""
        return self._stretches
