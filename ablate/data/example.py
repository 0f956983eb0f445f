"""Small data that each task of users' data can be tried with, made in Python as users make theirs."""

from __future__ import annotations

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

_WORDS = ("rain", "sun", "wind", "snow", "cloud", "storm", "frost")


def pairs() -> list[dict[str, str]]:
    """Words and the same words backwards: short, middling and long ones."""
    rows = []
    for number in range(90):
        length = (4, 15, 30)[number % 3] + number % 5
        words = [_WORDS[(number * 3 + place * place) % len(_WORDS)] for place in range(length)]
        rows.append({"source": " ".join(words), "target": " ".join(reversed(words))})
    return rows


def labelled() -> list[dict[str, str]]:
    """Words, and whether there is more rain in them than sun."""
    rows = []
    for number in range(120):
        words = [_WORDS[(number * 5 + place * number) % 3] for place in range(3 + number % 6)] + [str(number)]
        rows.append({"text": " ".join(words), "label": "wet" if words.count("rain") > words.count("sun") else "dry"})
    return rows


class Counting(pl.LightningDataModule):
    """Numbers that go up by a step each, modulo ten: the next one is to be said."""

    def __init__(self, length: int = 12) -> None:
        super().__init__()
        self.length = length

    def setup(self, stage: str) -> None:
        """Count from each number by each step."""
        starts, steps = torch.meshgrid(torch.arange(10), torch.arange(1, 10), indexing="ij")
        self.numbers = (starts.reshape(-1, 1) + steps.reshape(-1, 1) * torch.arange(self.length + 1)) % 10

    def train_dataloader(self) -> DataLoader[tuple[torch.Tensor, ...]]:
        """All but each ninth."""
        return self._loader(torch.arange(len(self.numbers)) % 9 > 0)

    def val_dataloader(self) -> DataLoader[tuple[torch.Tensor, ...]]:
        """Each ninth."""
        return self._loader(torch.arange(len(self.numbers)) % 9 == 0)

    def _loader(self, rows: torch.Tensor) -> DataLoader[tuple[torch.Tensor, ...]]:
        chosen = self.numbers[rows]
        return DataLoader(TensorDataset(chosen[:, :-1], chosen[:, 1:]), batch_size=8)
