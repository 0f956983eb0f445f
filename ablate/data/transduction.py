"""Sequences that are turned into others: batches of pairs, and how good what a model writes is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ablate.data.sequences import Draws, Sequences, entropy
from ablate.errors import InputError
from ablate.model.keys import generator as keyed
from ablate.model.scoring import tally
from ablate.slots import IGNORED, Batch, Decoding, Interface

PAD, BEGIN, END, SYMBOLS = 0, 1, 2, 3
"""Tokens: padding, the beginning and the end of a target, and the first that is neither."""
LENGTHS = ("short", "middle", "long")
"""What sources are called by their length."""


class PairedData:
    """Sources and targets of at most ``longest`` tokens: some rows are for training, some make up the evaluation set.

    A model may write so many tokens and an end, whatever the rows are like; batches are no longer than their texts.
    """

    def __init__(
        self,
        source: Sequences,
        target: Sequences,
        *,
        training: Tensor,
        evaluated: Tensor,
        longest: int,
        vocabularies: tuple[int, int],
        digest: str,
        facts: Mapping[str, float],
        buckets: int,
    ) -> None:
        self._source, self._target, self._evaluated = source, target, evaluated
        self._draws = Draws(training, source.lengths, buckets)
        self.interface = Interface(
            form="sequence_to_sequence",
            context=longest + 1,
            vocabulary=vocabularies[1],
            source_context=longest,
            source_vocabulary=vocabularies[0],
        )
        self.digest = digest
        ends = torch.full((len(training),), END)
        self.facts: Mapping[str, float] = {
            "vocabulary": float(vocabularies[1]),
            "unigram_entropy": entropy(torch.cat([target.tokens(training), ends])),
            "training_pairs": float(len(training)),
            "evaluated_pairs": float(len(evaluated)),
            **facts,
        }

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Source (size, S), valid (size, S) and target so far (size, T); targets (size, T); as long as the longest."""
        return self._cut(self._draws(size, generator))

    def evaluation(self, size: int) -> Sequence[Batch]:
        """The same pairs at every call, all padded to the longest of them."""
        widths = tuple(int(each.lengths[self._evaluated].max()) for each in (self._source, self._target))
        return [self._cut(rows, *widths) for rows in self._evaluated.split(size)]

    def _cut(self, rows: Tensor, longest_source: int | None = None, longest_target: int | None = None) -> Batch:
        source, valid = self._source.gather(rows, longest=longest_source, fill=PAD)
        target, real = self._target.gather(rows, longest=longest_target, fill=PAD)
        targets = pad(target.masked_fill(~real, IGNORED), (0, 1), value=IGNORED)
        targets = targets.scatter(1, self._target.lengths[rows][:, None], END)
        return Batch((source, valid, pad(target, (1, 0), value=BEGIN)), targets)


def judge(
    network: nn.Module, batch: Batch, *, decoding: Decoding | None, most: int, edges: tuple[int, int]
) -> Mapping[str, Tensor]:
    """What is right in a batch, as sums: by token, given the right tokens before it, and by text.

    By token ``nats``, ``correct`` and ``count``; of texts ``edits`` and ``wanted`` (tokens of the right texts), and
    ``exact`` and ``texts``, these two also by the length of the source, as ``exact.short``. Texts are what ``decoding``
    writes, or without one the likeliest token at each place, given the right ones before it.

    Args:
        network: the model, in evaluation mode.
        batch: sources and targets.
        decoding: what writes, if anything does.
        most: how many tokens are written at most, the end among them; padding has no part in it.
        edges: tokens of a source up to which it is short, and up to which it is of middle length.

    Raises:
        InputError: texts are to be written by a model that cannot decode.
    """
    logits, targets = network(*batch.inputs), batch.targets
    counted = targets != IGNORED
    right = targets.where(counted, END)
    if decoding is None:
        texts = logits.argmax(-1).where(counted, END)
    else:
        texts = written(decoding, network, batch.inputs, most)
    edits = edit_distance(texts, right, END)
    exact, lengths = edits == 0, batch.inputs[1].sum(1)
    groups = (lengths <= edges[0], (lengths > edges[0]) & (lengths <= edges[1]), lengths > edges[1])
    by_length = {
        f"{name}.{length}": (group & members).sum()
        for length, group in zip(LENGTHS, groups, strict=True)
        for name, members in (("exact", exact), ("texts", torch.ones_like(exact)))
    }
    return {
        **tally(logits, targets),
        "edits": edits.sum(),
        "wanted": (counted.sum(1) - 1).sum(),
        "exact": exact.sum(),
        "texts": targets.new_tensor(len(targets)),
        **by_length,
    }


def shares(totals: Mapping[str, float]) -> dict[str, float]:
    """``loss``, ``accuracy``, ``error_rate``, ``exact`` and ``exact_short`` and so on, from such sums.

    Where no source is of a length, its share is not a number.
    """
    by_length = {f"exact_{name}": _over(totals[f"exact.{name}"], totals[f"texts.{name}"]) for name in LENGTHS}
    return {
        "loss": totals["nats"] / totals["count"],
        "accuracy": totals["correct"] / totals["count"],
        "error_rate": _over(totals["edits"], totals["wanted"]),
        "exact": totals["exact"] / totals["texts"],
        **by_length,
    }


def edit_distance(texts: Tensor, others: Tensor, end: int) -> Tensor:
    """Fewest tokens to put in, take out or change so that a text becomes the other: (B, N), (B, M) -> (B,).

    A text is what stands before its first ``end``. Source: Levenshtein 1966; Wagner and Fischer 1974, for the table.
    """
    lengths, other_lengths = _lengths(texts, end), _lengths(others, end)
    places = torch.arange(others.shape[1] + 1, device=texts.device)
    row = places.expand(len(texts), -1)  # of an empty text to the first tokens of the other
    found = row
    for step in range(texts.shape[1]):
        changed = row[:, :-1] + (texts[:, step : step + 1] != others)
        without = torch.cat([row[:, :1] + 1, torch.minimum(row[:, 1:] + 1, changed)], 1)
        # Tokens put in make a row's value at most one larger than that before it: a running minimum beside the slope.
        row = (without - places).cummin(1).values + places
        found = torch.where((lengths == step + 1)[:, None], row, found)
    return found.gather(1, other_lengths[:, None])[:, 0]


def _lengths(texts: Tensor, end: int) -> Tensor:
    """How many tokens stand before the first end."""
    return (texts == end).cumsum(1).eq(0).sum(1)


def written(decoding: Decoding, network: Any, inputs: tuple[Tensor, ...], most: int) -> Tensor:
    """What a model writes for its sources: (B, L) of at most so many tokens.

    Raises:
        InputError: the model cannot decode.
    """
    if not hasattr(network, "begin"):
        raise InputError.one(
            "S307",
            f"the task writes by `{getattr(decoding, 'kind', '?')}`, and the model cannot decode",
            help="set the task's `decoding` to null, or take a model that has `begin` and `decode`",
        )
    source, valid, so_far = inputs
    cache = network.begin(source, valid)
    stream = keyed("transduction", "decoding")
    return decoding.write(network, cache, so_far[:, :1], most=most, end=END, generator=stream).tokens


def _over(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
