"""The DataModule: batches are drawn by step, so a trial can start at any of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytorch_lightning as pl

from ablate.model.keys import generator
from ablate.slots import Batch, Data


class Batches:
    """The training batches from step ``start`` on; each is keyed by its step alone."""

    def __init__(self, data: Data, size: int, stream: tuple[int | str, ...], start: int, steps: int) -> None:
        self._data = data
        self._size = size
        self._stream = stream
        self._range = range(start, steps)

    def __len__(self) -> int:
        return len(self._range)

    def __iter__(self) -> Iterator[Batch]:
        for step in self._range:
            yield self._data.batch(self._size, generator(*self._stream, "data", step))


class TrialData(pl.LightningDataModule):
    """A task's data, as Lightning takes them."""

    def __init__(self, batches: Batches) -> None:
        super().__init__()
        self._batches = batches

    def train_dataloader(self) -> Batches:
        """All batches that are still to come; one epoch is one trial."""
        return self._batches
