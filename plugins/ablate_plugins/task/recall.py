"""Tasks of recall: to find again what a sequence has said before."""

from __future__ import annotations

import math
from typing import Literal, Self

import torch
from pydantic import Field, model_validator

from ablate.slots import IGNORED, Batch, Data, Interface, Task
from ablate_plugins.task.drawn import Drawn, Judged, JudgedAsWhole, TestedLonger, distinct, stream

FORMAT = 1
"""Raised when the same options give other data."""


class AssociativeRecall(Judged, Task):
    """Given pairs of a key and a value and then one of the keys, say its value.

    A sequence is `pairs` pairs with different keys, two marks, and the key that is asked for: c 9 k 8 j 3 f 1 ? ? c,
    to be answered by 9. Nothing else is asked for. Chance, `chance_accuracy`, is one value out of all; who takes one of
    the values that the sequence has is right as often as `in_context_accuracy` says. The ceiling is 1. Sources: Ba et
    al. 2016, Using Fast Weights to Attend to the Recent Past, §4.1; Graves et al. 2014, Neural Turing Machines, §4.3.
    """

    kind: Literal["associative_recall"] = "associative_recall"
    keys: int = Field(26, ge=1)
    """Number of keys; their tokens come first."""
    values: int = Field(10, ge=2)
    """Number of values; their tokens follow, and after them the mark."""
    pairs: int = Field(4, ge=1)
    """Pairs in a sequence."""
    test_pairs: int | None = Field(None, ge=1)
    """Pairs in a sequence of the evaluation set, whose metrics are then of that many; null for as many as in
    training. The model's context is that of the longer sequences."""
    samples: int = Field(512, ge=1)
    """Sequences in the evaluation set."""

    @model_validator(mode="after")
    def _keys_differ(self) -> Self:
        if max(self.pairs, self.test_pairs or 0) > self.keys:
            raise ValueError(
                f"{max(self.pairs, self.test_pairs or 0)} pairs have different keys, of `keys: {self.keys}`"
            )
        return self

    def effective(self) -> Self:
        """The same data, with one spelling of a number that is the same."""
        return self.model_copy(update={"test_pairs": None}) if self.test_pairs == self.pairs else self

    def load(self, folder: str) -> Data:
        """Make the evaluation set; nothing is read."""
        tested = self.test_pairs or self.pairs
        trained, longest = (2 * pairs + 3 for pairs in (self.pairs, max(self.pairs, tested)))
        interface = Interface(context=longest, vocabulary=self.keys + self.values + 1, trained=trained)
        facts = {
            "unigram_entropy": math.log(self.values),
            "chance_accuracy": 1 / self.values,
            "in_context_accuracy": 1 / tested + (1 - 1 / tested) / self.values,
            "ceiling_accuracy": 1.0,
        }
        evaluation = self._draw(self.samples, tested, stream(self, "evaluation"))
        return Drawn(
            self, FORMAT, interface, facts, lambda size, given: self._draw(size, self.pairs, given), evaluation
        )

    def _draw(self, size: int, pairs: int, generator: torch.Generator) -> Batch:
        keys = distinct(size, pairs, self.keys, generator)
        values = torch.randint(self.keys, self.keys + self.values, (size, pairs), generator=generator)
        asked = torch.randint(pairs, (size, 1), generator=generator)
        marks = torch.full((size, 2), self.keys + self.values)
        tokens = torch.cat([torch.stack([keys, values], 2).flatten(1), marks, keys.gather(1, asked)], 1)
        targets = torch.full_like(tokens, IGNORED)
        targets[:, -1:] = values.gather(1, asked)
        return Batch((tokens,), targets)


class Mqar(JudgedAsWhole, Task):
    """Given pairs of a key and a value, say the value of each key when it comes again: multi-query associative recall.

    The pairs come first; then each key comes once more, at an even distance from the pairs whose share falls with a
    power of it, between tokens that ask for nothing. Keys are the tokens from 1 to V/2 - 1, values those from V/2, and
    no sequence has one twice. Only queries are asked for. Chance, `chance_accuracy`, is one value out of all; who takes
    one of the values that the sequence has is right once in `pairs`, which is `in_context_accuracy`. The ceiling is 1.
    Source: Arora et al. 2024, Zoology: Measuring and Improving Recall in Efficient Language Models, §4 and app. E.
    """

    kind: Literal["mqar"] = "mqar"
    vocabulary: int = Field(64, ge=4)
    """Number of tokens, V."""
    pairs: int = Field(4, ge=1)
    """Pairs, and queries, in a sequence."""
    context: int = Field(32, ge=4)
    """Tokens in a sequence: two for each pair, and at least two for each query."""
    power: float = Field(0.01, gt=0)
    """The exponent a of the law of distances, whose density falls as a·d^(a-1); 1 makes all as likely."""
    filler: Literal["random", "zero"] = "random"
    """The tokens that ask for nothing: any of the vocabulary, or the token 0 always."""
    test_pairs: int | None = Field(None, ge=1)
    """Pairs in a sequence of the evaluation set, whose metrics are then of that many; null for as in training."""
    test_context: int | None = Field(None, ge=4)
    """Tokens in a sequence of the evaluation set, whose metrics are then of that length; null for as in training. The
    model's context is the longer of the two."""
    samples: int = Field(512, ge=1)
    """Sequences in the evaluation set."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for pairs, context in ((self.pairs, self.context), self._tested):
            if 4 * pairs > context:
                raise ValueError(
                    f"{pairs} pairs and their queries need {4 * pairs} tokens, and the context is {context}"
                )
            if pairs > self.vocabulary // 2 - 1:
                raise ValueError(f"{pairs} pairs have different keys, of {self.vocabulary // 2 - 1} in the vocabulary")
        return self

    @property
    def _tested(self) -> tuple[int, int]:
        return self.test_pairs or self.pairs, self.test_context or self.context

    def effective(self) -> Self:
        """The same data, with one spelling of numbers that are the same."""
        same = {
            f"test_{name}": None
            for name in ("pairs", "context")
            if getattr(self, f"test_{name}") == getattr(self, name)
        }
        return self.model_copy(update=same) if same else self

    def load(self, folder: str) -> Data:
        """Make the evaluation set; nothing is read."""
        pairs, context = self._tested
        values = self.vocabulary - self.vocabulary // 2
        facts = {
            "unigram_entropy": math.log(values),
            "chance_accuracy": 1 / values,
            "in_context_accuracy": 1 / pairs,
            "ceiling_accuracy": 1.0,
        }

        def train(size: int, generator: torch.Generator) -> Batch:
            return self._draw(size, self.pairs, self.context, generator)

        evaluation = self._draw(self.samples, pairs, context, stream(self, "evaluation"))
        interface = Interface(context=max(self.context, context), vocabulary=self.vocabulary, trained=self.context)
        return Drawn(self, FORMAT, interface, facts, train, evaluation)

    def _draw(self, size: int, pairs: int, context: int, generator: torch.Generator) -> Batch:
        half = self.vocabulary // 2
        keys = 1 + distinct(size, pairs, half - 1, generator)
        values = half + distinct(size, pairs, self.vocabulary - half, generator)
        # Without replacement and by weight: who has the shortest of waiting times with these rates, and so on.
        rates = torch.arange(1, (context - 2 * pairs) // 2 + 1, dtype=torch.float64) ** (self.power - 1)
        waits = -torch.rand(size, len(rates), dtype=torch.float64, generator=generator).log() / rates
        places = 2 * pairs + 2 * waits.topk(pairs, dim=1, largest=False).indices
        tokens = torch.zeros(size, context, dtype=torch.long)
        if self.filler == "random":
            tokens = torch.randint(self.vocabulary, (size, context), generator=generator)
        tokens[:, : 2 * pairs] = torch.stack([keys, values], 2).flatten(1)
        targets = torch.full_like(tokens, IGNORED).scatter(1, places, values)
        return Batch((tokens.scatter(1, places, keys),), targets)


class Induction(TestedLonger, Judged, Task):
    """Say what followed a mark when the mark comes again.

    A sequence of random tokens has the mark, the last of the vocabulary, at a place that is drawn, and again at its
    end, where the token that followed it is asked for. Chance is one of the other tokens; the ceiling is 1. With
    `vocabulary: 16`, `length: 256` and longer tests it is that of Gu and Dao 2023. Sources: Olsson et al. 2022,
    In-context Learning and Induction Heads; Fu et al. 2023, Hungry Hungry Hippos, §3.1, for the task.
    """

    kind: Literal["induction"] = "induction"
    vocabulary: int = Field(20, ge=3)
    """Number of tokens, the mark among them."""
    length: int = Field(30, ge=3)
    """Tokens in a sequence."""
    samples: int = Field(512, ge=1)
    """Sequences in the evaluation set."""

    @model_validator(mode="after")
    def _room(self) -> Self:
        if self.tested < 3:
            raise ValueError(f"`test_length` is {self.tested}, and a mark, its answer and the mark again are 3 tokens")
        return self

    def load(self, folder: str) -> Data:
        """Make the evaluation set; nothing is read."""
        answers = self.vocabulary - 1
        facts = {"unigram_entropy": math.log(answers), "chance_accuracy": 1 / answers, "ceiling_accuracy": 1.0}
        evaluation = self._draw(self.samples, self.tested, stream(self, "evaluation"))
        interface = Interface(context=self.longest, vocabulary=self.vocabulary, trained=self.length)
        return Drawn(
            self, FORMAT, interface, facts, lambda size, given: self._draw(size, self.length, given), evaluation
        )

    def _draw(self, size: int, length: int, generator: torch.Generator) -> Batch:
        mark = self.vocabulary - 1
        tokens = torch.randint(mark, (size, length), generator=generator)
        place = torch.randint(length - 2, (size, 1), generator=generator)
        tokens.scatter_(1, place, mark)
        tokens[:, -1] = mark
        targets = torch.full_like(tokens, IGNORED)
        targets[:, -1:] = tokens.gather(1, place + 1)
        return Batch((tokens,), targets)


class SelectiveCopying(TestedLonger, JudgedAsWhole, Task):
    """Write the symbols of a sequence again, in order and without the blanks that stand between them.

    The symbols stand at random places; after a mark, the last token of the vocabulary, come as many blanks, the token
    before it, and at each of them a symbol is asked for. How far a symbol is from its copy differs each time, so fixed
    kernels do not do it. Chance is one of the symbols; the ceiling is 1. `length` counts all tokens, those of the
    answer too. Source: Gu and Dao 2023, Mamba: Linear-Time Sequence Modeling with Selective State Spaces, §4.1.1.
    """

    kind: Literal["selective_copying"] = "selective_copying"
    vocabulary: int = Field(16, ge=4)
    """Number of tokens, the blank and the mark among them."""
    length: int = Field(4096, ge=3)
    """Tokens in a sequence."""
    tokens: int = Field(16, ge=1)
    """Symbols to copy."""
    samples: int = Field(256, ge=1)
    """Sequences in the evaluation set."""

    @model_validator(mode="after")
    def _room(self) -> Self:
        check_room(min(self.length, self.tested), self.tokens)
        return self

    def load(self, folder: str) -> Data:
        """Make the evaluation set; nothing is read."""

        def draw(size: int, length: int, generator: torch.Generator) -> Batch:
            return among_blanks(size, self.vocabulary, length, self.tokens, generator)

        facts = facts_of_copying(self.vocabulary)
        evaluation = draw(self.samples, self.tested, stream(self, "evaluation"))
        interface = Interface(context=self.longest, vocabulary=self.vocabulary, trained=self.length)
        return Drawn(self, FORMAT, interface, facts, lambda size, given: draw(size, self.length, given), evaluation)


def check_room(length: int, tokens: int) -> None:
    """Refuse a sequence that is too short for its symbols, the mark and their copies."""
    if length < 2 * tokens + 1:
        raise ValueError(f"{tokens} symbols, a mark and their copies need {2 * tokens + 1} tokens of the {length}")


def facts_of_copying(vocabulary: int) -> dict[str, float]:
    """Chance and ceiling where the symbols are all tokens but two."""
    symbols = vocabulary - 2
    return {"unigram_entropy": math.log(symbols), "chance_accuracy": 1 / symbols, "ceiling_accuracy": 1.0}


def among_blanks(size: int, vocabulary: int, length: int, tokens: int, generator: torch.Generator) -> Batch:
    """Symbols at random places among blanks, a mark, and blanks at which the symbols are asked for."""
    blank, mark = vocabulary - 2, vocabulary - 1
    symbols = torch.randint(blank, (size, tokens), generator=generator)
    places = distinct(size, tokens, length - tokens - 1, generator).sort(1).values
    sequence = torch.full((size, length), blank).scatter(1, places, symbols)
    sequence[:, length - tokens - 1] = mark
    targets = torch.full_like(sequence, IGNORED)
    targets[:, length - tokens :] = symbols
    return Batch((sequence,), targets)
