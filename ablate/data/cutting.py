"""How a text is cut: into runs for training and for validation, and those into windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Integers = npt.NDArray[np.int64]

VALIDATION_EVERY = 10
"""Every so many blocks, or documents, one is for validation: a text's end is often easier or harder than the rest."""
LONGEST_BLOCK = 4096


@dataclass(frozen=True)
class Runs:
    """Stretches that follow each other from the text's first token to its last; no window spans two of them."""

    ends: npt.NDArray[np.int64]
    held_out: npt.NDArray[np.bool_]
    """Whether a run is for validation."""

    @property
    def starts(self) -> Integers:
        """The first token of each run."""
        return np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])

    def with_ends(self, ends: npt.NDArray[np.int64]) -> Runs:
        """The same runs, counted in other tokens."""
        return Runs(ends, self.held_out)

    def counted(self, parts: Iterable[npt.NDArray[Any]], vocabulary: int) -> Integers:
        """How often each token stands in the runs for training; ``parts`` are all tokens, some at a time."""
        total, start = np.zeros(vocabulary, np.int64), 0
        for part in parts:
            end = start + len(part)
            first = int(np.searchsorted(self.ends, start, side="right"))
            last = int(np.searchsorted(self.ends, end, side="left")) + 1
            edges = np.clip(self.ends[first:last], start, end)
            lengths = edges - np.append(start, edges[:-1])
            total += np.bincount(part[np.repeat(~self.held_out[first:last], lengths)], minlength=vocabulary)
            start = end
        return total


def blocks(length: int, context: int) -> Runs:
    """Blocks that hold a window each, every tenth for validation; those between are one run."""
    block = max(context + 1, min(LONGEST_BLOCK, length // (2 * VALIDATION_EVERY)))
    every = VALIDATION_EVERY * block
    starts = np.stack([np.arange(0, length, every), np.arange(0, length, every) + every - block], 1).ravel()
    starts = starts[starts < length]
    return Runs(np.append(starts[1:], length), starts // block % VALIDATION_EVERY == VALIDATION_EVERY - 1)


def documents(ends: npt.NDArray[np.int64]) -> Runs:
    """Documents, every tenth for validation."""
    return Runs(ends, np.arange(len(ends)) % VALIDATION_EVERY == VALIDATION_EVERY - 1)


def sections(texts: Iterable[str], ends: npt.NDArray[np.int64]) -> Iterator[str]:
    """A text that comes in parts, cut anew at these places, the last of which is its end."""
    parts, kept, base, at = iter(texts), "", 0, 0
    for end in ends.tolist():
        while base + len(kept) < end:
            base, kept, at = base + at, kept[at:] + next(parts), 0
        yield kept[at : end - base]
        at = end - base


class Windows:
    """The windows of some runs, numbered: each has up to ``context`` inputs and the tokens that follow them."""

    def __init__(self, runs: Runs, wanted: npt.NDArray[np.bool_], context: int, *, step: int, partial: bool) -> None:
        """Number the windows.

        Args:
            runs: of the whole text.
            wanted: which of them are cut.
            context: the inputs of a window.
            step: from one window of a run to the next.
            partial: whether the last window of a run may be shorter.
        """
        self._reach = np.arange(context + 1)
        self._step = step
        first, self._ends = runs.starts[wanted], runs.ends[wanted]
        room = self._ends - first - 1 - (0 if partial else context - 1)  # inputs with which a window can begin
        counts = np.maximum(-(-room // step), 0)
        self._upto = counts.cumsum()
        self._zero = first - (self._upto - counts) * step  # where window 0 would begin, were all windows of its run
        self.number = int(self._upto[-1]) if len(counts) else 0

    def places(self, numbers: Integers) -> tuple[Integers, Integers]:
        """Of each window the places of its tokens, (n, T + 1), and where its run ends, (n, 1)."""
        run = self._upto.searchsorted(numbers, side="right")
        starts = self._zero[run] + numbers * self._step
        return starts[:, None] + self._reach, self._ends[run, None]

    def spread(self, most: int) -> Integers:
        """Numbers of windows, at most so many, from the first to the last in even steps."""
        number = min(most, self.number)
        # In single precision while that counts exactly, as it always was: what is evaluated is part of a result.
        kind = torch.float32 if self.number < 1 << 24 else torch.float64
        steps = torch.linspace(0, self.number - 1, number, dtype=kind).round().long()
        return np.asarray(steps)
