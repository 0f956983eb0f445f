"""The task of digits: small pictures of handwritten digits, read as sequences of patches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from ablate.data.extras import needed
from ablate.data.labelling import judge, shares
from ablate.data.sequences import entropy, held_out
from ablate.slots import Batch, Data, Interface, Task

SIDE, DARKEST, CLASSES = 8, 16, 10
"""Pixels of a side, the value of the darkest, and how many digits there are."""
FORMAT = 1
"""Raised when the same options and pictures give other data."""


class _Pictures:
    """Pictures cut into patches, which go by rows from the top left to the bottom right."""

    def __init__(self, pixels: Tensor, labels: Tensor, options: Digits) -> None:
        size = options.patch
        cut = pixels.unfold(1, size, size).unfold(2, size, size)  # (N, rows, columns, size, size)
        self._tokens = cut.reshape(len(pixels), -1, size * size).float() / (DARKEST / 2) - 1
        self._labels = labels
        self.interface = Interface(
            form="classification",
            context=self._tokens.shape[1],
            vocabulary=0,
            classes=CLASSES,
            features=self._tokens.shape[2],
        )
        content = pixels.to(torch.uint8).numpy().tobytes() + labels.to(torch.uint8).numpy().tobytes()
        what = ["digits", FORMAT, hashlib.sha256(content).hexdigest(), size, options.test_share]
        self.digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()
        test = held_out([picture.numpy().tobytes().hex() for picture in pixels.to(torch.uint8)], options.test_share)
        self._training, self._test = (~test).nonzero()[:, 0], test.nonzero()[:, 0]
        self.facts: Mapping[str, float] = {
            "unigram_entropy": entropy(labels[self._training]),
            "training_pictures": float(len(self._training)),
            "evaluated_pictures": float(len(self._test)),
            "most_frequent_share": float(labels[self._test].bincount().max()) / len(self._test),
        }

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Values (size, T, F) from -1 to 1, all of them valid (size, T); targets (size,)."""
        return self._cut(self._training[torch.randint(len(self._training), (size,), generator=generator)])

    def evaluation(self, size: int) -> Sequence[Batch]:
        """All pictures that are held out."""
        return [self._cut(rows) for rows in self._test.split(size)]

    def _cut(self, rows: Tensor) -> Batch:
        tokens = self._tokens[rows]
        return Batch((tokens, torch.ones(tokens.shape[:2], dtype=torch.bool)), self._labels[rows])


class Digits(Task):
    """Say which digit a picture of 8 by 8 pixels shows, read as a sequence of patches.

    1,797 handwritten digits that come with scikit-learn. A token is the values of a patch, from -1 for white to 1, and
    the model maps them linearly to its width. What is held out is chosen by the pictures' hash; the data do not say who
    wrote them, so both parts may have digits of one hand. Source: Alpaydin and Kaynak 1998, Optical Recognition of
    Handwritten Digits, for the pictures; Dosovitskiy et al. 2021, An Image is Worth 16x16 Words, for patches as tokens.
    """

    kind: Literal["digits"] = "digits"
    patch: Literal[1, 2, 4] = 2
    """Pixels of a patch's side: 64 tokens of one value, 16 of four or 4 of sixteen."""
    test_share: float = Field(0.2, gt=0, lt=1)
    """Share of the pictures that is held out."""

    units: ClassVar[Mapping[str, str]] = {"val/loss": "nats", "val/accuracy": "share", "val/macro_f1": "share"}

    def load(self, folder: str) -> Data:
        """Read the pictures of the package scikit-learn; no folder has a part in it.

        Raises:
            InputError: the package is not installed.
        """
        found = needed("sklearn.datasets", package="scikit-learn", extra="digits", task=self.kind).load_digits()
        pixels = torch.from_numpy(np.asarray(found.images, dtype=np.int64))
        return _Pictures(pixels, torch.from_numpy(np.asarray(found.target, dtype=np.int64)), self)

    def tally(self, network: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Sums over pictures, and the confusion."""
        return judge(network(*batch.inputs), batch.targets)

    def metrics(self, totals: Mapping[str, float]) -> Mapping[str, float]:
        """Mean cross-entropy, the share of pictures with the right label, and F1 as its mean over labels."""
        return {f"val/{name}": value for name, value in shares(totals).items()}
