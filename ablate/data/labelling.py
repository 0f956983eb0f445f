"""Samples with labels: the evaluation set, and what is counted of a classifier."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ablate.model.scoring import tally

MOST_LABELS = 200
"""Labels that a task may have: the confusion has the square of it."""


def judge(logits: Tensor, targets: Tensor) -> Mapping[str, Tensor]:
    """Sums over samples: ``nats``, ``correct`` and ``count``, and ``confusion.i.j``: label i was wanted, and j said.

    Args:
        logits: (B, C).
        targets: (B,).
    """
    classes = logits.shape[-1]
    pairs = torch.bincount(targets * classes + logits.argmax(-1), minlength=classes * classes)
    named = {f"confusion.{pair // classes}.{pair % classes}": count for pair, count in enumerate(pairs.unbind())}
    return {**tally(logits, targets), **named}


def shares(totals: Mapping[str, float]) -> dict[str, float]:
    """``loss``, ``accuracy`` and ``macro_f1`` from such sums.

    Macro F1 is the mean over labels of 2 tp / (2 tp + fp + fn), without labels that no sample has and none is given.
    """
    wanted: dict[int, float] = {}
    said: dict[int, float] = {}
    right: dict[int, float] = {}
    for name, count in totals.items():
        if name.startswith("confusion."):
            row, column = map(int, name.split(".")[1:])
            wanted[row] = wanted.get(row, 0.0) + count
            said[column] = said.get(column, 0.0) + count
            if row == column:
                right[row] = count
    scores = [2 * right[label] / (wanted[label] + said[label]) for label in wanted if wanted[label] + said[label]]
    return {
        "loss": totals["nats"] / totals["count"],
        "accuracy": totals["correct"] / totals["count"],
        "macro_f1": sum(scores) / len(scores),
    }
