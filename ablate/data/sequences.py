"""Many sequences of different lengths, drawn and gathered by index; and the numbers of their symbols."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from ablate.errors import InputError


class Sequences:
    """Sequences of token numbers, one after the other in a flat tensor."""

    def __init__(self, flat: Tensor, lengths: Tensor) -> None:
        self.lengths = lengths
        """(N,): tokens of each sequence."""
        self._flat = flat
        self._starts = lengths.cumsum(0) - lengths

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> Sequences:
        """From lists of numbers."""
        lengths = torch.tensor([len(each) for each in sequences], dtype=torch.long)
        flat = np.fromiter(chain.from_iterable(sequences), np.int32, int(lengths.sum()))
        return cls(torch.from_numpy(flat), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return int(self.lengths.max())

    def tokens(self, rows: Tensor) -> Tensor:
        """All tokens of the rows (B,), one sequence after the other."""
        padded, valid = self.gather(rows)
        return padded[valid]

    def gather(self, rows: Tensor, *, longest: int | None = None, fill: int = 0) -> tuple[Tensor, Tensor]:
        """The sequences of the rows (B,): tokens (B, L), padded at the end by ``fill``, and which are tokens (B, L).

        L is the length of the longest of them, or ``longest``, to which longer ones are cut.
        """
        lengths = self.lengths[rows]
        places = torch.arange(int(lengths.max()) if longest is None else longest)
        valid = places < lengths[:, None]
        found = self._flat[(self._starts[rows][:, None] + places).clamp_(max=len(self._flat) - 1)].long()
        return found.masked_fill_(~valid, fill), valid


class Draws:
    """Draws samples for a batch, with replacement, every sample being as likely.

    With one bucket the samples of a batch are independent of each other. With more, samples are sorted by length and
    cut into so many buckets of the same size; a bucket is drawn, and all of a batch from it: less of a batch is
    padding, and a gradient is as right on the average, but noisier, since the samples of a batch are alike in length.
    """

    def __init__(self, rows: Tensor, lengths: Tensor, buckets: int = 1) -> None:
        order = rows if buckets == 1 else rows[lengths[rows].sort(stable=True).indices]
        self._buckets = order.tensor_split(min(buckets, len(rows)))
        sizes = torch.tensor([len(bucket) for bucket in self._buckets])
        self._ends = sizes.cumsum(0)

    def __call__(self, size: int, generator: torch.Generator) -> Tensor:
        """Rows (size,), drawn from ``generator`` alone."""
        which = 0
        if len(self._buckets) > 1:  # a bucket is as likely as it is large, and so are all samples alike
            drawn = torch.randint(int(self._ends[-1]), (1,), generator=generator)
            which = int(torch.searchsorted(self._ends, drawn, right=True))
        bucket = self._buckets[which]
        return bucket[torch.randint(len(bucket), (size,), generator=generator)]


@dataclass(frozen=True)
class Vocabulary:
    """Symbols and their numbers, which begin after those that have a meaning of their own."""

    symbols: tuple[str, ...]
    first: int
    """Number of the first symbol."""
    unknown: int | None = None
    """Number of every other symbol; None where there is none."""

    @classmethod
    def of(cls, texts: Iterable[Iterable[str]], *, first: int, unknown: int | None, least: int = 1) -> Vocabulary:
        """The symbols that are at least so often in the texts of the training part, in the order of their code points.

        The order of the texts has no part in it.
        """
        counts = Counter(chain.from_iterable(texts))
        return cls(tuple(sorted(symbol for symbol, count in counts.items() if count >= least)), first, unknown)

    @classmethod
    def known(
        cls, texts: Iterable[Iterable[str]], *, first: int, unknown: int, least: int, column: str, shown: str
    ) -> Vocabulary:
        """The same, of a table's column, where at least one symbol must be so often in it.

        Raises:
            InputError: none is, and every text would be made of unknown symbols alone (S336).
        """
        found = cls.of(texts, first=first, unknown=unknown, least=least)
        if not found.symbols:
            raise InputError.one(
                "S336",
                f"no token of `{column}` stands {least:,} times in the training part of `{shown}`, and all would be "
                "unknown",
                help="give a smaller `at_least`",
            )
        return found

    def __len__(self) -> int:
        """How many numbers there are, those before the first symbol among them."""
        return self.first + len(self.symbols)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each symbol."""
        return {symbol: number for number, symbol in enumerate(self.symbols, self.first)}

    def encode(self, texts: Sequence[Sequence[str]]) -> Sequences:
        """The numbers of texts.

        Raises:
            KeyError: there is no number for a symbol, nor one for those that are unknown.
        """
        numbers = self.numbers
        if self.unknown is None:
            return Sequences.of([list(map(numbers.__getitem__, text)) for text in texts])
        return Sequences.of([[numbers.get(symbol, self.unknown) for symbol in text] for text in texts])


def in_order_of_hash(keys: Iterable[str]) -> list[str]:
    """Different keys, in an order that looks random and is the same on every machine."""
    return sorted(set(keys), key=lambda key: hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest())


def held_out(keys: Sequence[str], share: float) -> Tensor:
    """Which samples are for testing (N,): all those of a share of the keys, at least one key and not all.

    Samples of one key stay together. The seed has no part in it, so all trials are judged on the same samples; a new
    sample moves few of the others.

    Raises:
        ValueError: there are fewer than two different keys.
    """
    order = in_order_of_hash(keys)
    if len(order) < 2:
        raise ValueError("two different keys are needed")
    chosen = set(order[: min(max(1, round(share * len(order))), len(order) - 1)])
    return torch.tensor([key in chosen for key in keys])


def some_of(rows: Tensor, names: Sequence[str], most: int) -> Tensor:
    """At most so many rows, chosen by the hash of what they are called, in the order of the rows."""
    if len(rows) <= most:
        return rows
    order = sorted(
        rows.tolist(), key=lambda row: (hashlib.sha256(names[row].encode("utf-8", "surrogatepass")).digest(), row)
    )
    return torch.tensor(sorted(order[:most]))


def entropy(tokens: Tensor) -> float:
    """The entropy of numbers as they are distributed, in nats."""
    counts = torch.bincount(tokens).double()
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * shares.log()).sum())
