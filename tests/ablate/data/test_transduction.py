"""Pairs in batches, and how what is written is judged: by hand, and against plain loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import one_hot, pad

from ablate.data.sequences import Sequences
from ablate.data.transduction import BEGIN, END, PAD, PairedData, edit_distance, judge, shares
from ablate.errors import InputError
from ablate.model.keys import generator
from ablate.slots import IGNORED, Batch, Cache, Decoded, Decodes, Decoding

TEXTS = st.lists(st.integers(3, 5), max_size=7)


def distance(one: list[int], other: list[int]) -> int:
    """By its definition: the last token is kept, changed, taken out or put in."""
    if not one or not other:
        return len(one) + len(other)
    kept = distance(one[:-1], other[:-1]) + (one[-1] != other[-1])
    return min(kept, distance(one[:-1], other) + 1, distance(one, other[:-1]) + 1)


def ended(texts: list[list[int]], wide: int, junk: int = 4) -> Tensor:
    return torch.tensor([([*text, END] + [junk] * wide)[: max(wide, 1)] for text in texts])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4), st.integers(0, 3), st.integers(0, 3))
def test_the_edit_distance_is_its_definition(pairs: list[tuple[list[int], list[int]]], more: int, further: int) -> None:
    ones, others = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    first = ended(ones, max(map(len, ones)) + more)
    second = ended(others, max(map(len, others)) + further, junk=3)
    assert edit_distance(first, second, END).tolist() == [distance(*pair) for pair in pairs]


def test_distances_that_are_known() -> None:
    def of(*words: str) -> Tensor:
        return torch.tensor([[*map(ord, word), END] + [END] * (9 - len(word)) for word in words])

    found = edit_distance(of("kitten", "sunday", "abc", "", "same"), of("sitting", "saturday", "", "abcd", "same"), END)
    assert found.tolist() == [3, 3, 3, 4, 0]


def data(buckets: int = 1, longest: int = 6) -> PairedData:
    lengths = [1, 4, 2, 3, 5, 2, 6, 1]
    source = Sequences.of([[3 + (row + place) % 4 for place in range(size)] for row, size in enumerate(lengths)])
    target = Sequences.of([[3 + (row * place) % 5 for place in range(7 - size)] for row, size in enumerate(lengths)])
    return PairedData(
        source,
        target,
        training=torch.tensor([0, 1, 2, 3, 4]),
        evaluated=torch.tensor([5, 6, 7]),
        longest=longest,
        vocabularies=(7, 8),
        digest="x",
        facts={"more": 1.0},
        buckets=buckets,
    )


@pytest.mark.parametrize("buckets", [1, 3])
def test_every_batch_is_what_a_loop_would_make(buckets: int) -> None:
    lengths = [1, 4, 2, 3, 5, 2, 6, 1]
    held = data(buckets)
    for step in range(20):
        batch = held.batch(4, generator(step))
        source, valid, so_far = batch.inputs
        for row in range(4):
            size = int(valid[row].sum())
            assert lengths.index(size) in range(5)
            wrote = so_far[row].tolist()
            wanted = batch.targets[row].tolist()
            more = so_far.shape[1] - (7 - size) - 1
            number = next(
                number
                for number in range(5)
                if lengths[number] == size
                and source[row].tolist()
                == [3 + (number + p) % 4 for p in range(size)] + [PAD] * (source.shape[1] - size)
            )
            text = [3 + (number * place) % 5 for place in range(7 - size)]
            assert wrote == [BEGIN, *text] + [PAD] * more
            assert wanted == [*text, END] + [IGNORED] * more
        assert source.shape[1] == int(valid.sum(1).max())


def test_the_evaluation_set_has_one_width() -> None:
    parts = data().evaluation(2)
    assert [part.inputs[0].shape for part in parts] == [(2, 6), (1, 6)]
    assert [part.targets.shape for part in parts] == [(2, 7), (1, 7)]
    assert parts[1].targets.tolist() == [[3, 5, 7, 4, 6, 3, END]]


def test_the_facts_are_of_training() -> None:
    targets = [3 + (row * place) % 5 for row, size in enumerate([1, 4, 2, 3, 5]) for place in range(7 - size)]
    targets += [END] * 5
    expected = -sum(
        targets.count(each) / len(targets) * math.log(targets.count(each) / len(targets)) for each in set(targets)
    )
    held = data()
    assert held.facts == {
        "vocabulary": 8.0,
        "unigram_entropy": pytest.approx(expected),
        "training_pairs": 5.0,
        "evaluated_pairs": 3.0,
        "more": 1.0,
    }
    assert (held.interface.context, held.interface.source_context) == (7, 6)


class _Table(nn.Module):
    """Logits of each place that depend on the token before it and on the source's first."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.table = torch.randn(12, 12, vocabulary, generator=generator("table"), dtype=torch.float64)

    def forward(self, source: Tensor, valid: Tensor, so_far: Tensor) -> Tensor:
        return self.table[source[:, :1], so_far]

    def begin(self, source: Tensor, valid: Tensor) -> Cache:
        cache = Cache()
        cache.states["source"] = (source[:, :1],)
        return cache

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        return self.table[cache.states["source"][0], tokens]


class _Likeliest(Decoding):
    kind: Literal["likeliest"] = "likeliest"

    def write(
        self, network: Decodes, cache: Cache, prompt: Tensor, *, most: int, end: int | None, generator: torch.Generator
    ) -> Decoded:
        """Token by token, on and on."""
        found = [prompt]
        for _ in range(most):
            found.append(network.decode(found[-1], cache).argmax(-1))
        return Decoded(torch.cat(found[1:], 1), torch.zeros(len(prompt)))


def judged(batch: Batch, decoding: Decoding | None, network: nn.Module) -> Mapping[str, float]:
    totals = judge(network, batch, decoding=decoding, most=9, edges=(2, 4))
    assert all(total.dim() == 0 for total in totals.values())
    return {name: float(total) for name, total in totals.items()}


@pytest.mark.parametrize("decoding", [None, _Likeliest()])
@given(
    st.lists(st.tuples(st.lists(st.integers(3, 6), min_size=1, max_size=6), TEXTS), min_size=1, max_size=6), st.data()
)
@settings(max_examples=30, deadline=None)
def test_padding_and_the_cut_into_batches_change_no_metric(
    decoding: Decoding | None, pairs: list[tuple[list[int], list[int]]], draw: st.DataObject
) -> None:
    source, target = Sequences.of([pair[0] for pair in pairs]), Sequences.of([pair[1] for pair in pairs] or [[3]])
    if not len(target.tokens(torch.arange(len(pairs)))):
        return
    held = PairedData(
        source,
        target,
        training=torch.arange(len(pairs)),
        evaluated=torch.arange(len(pairs)),
        longest=8,
        vocabularies=(7, 8),
        digest="x",
        facts={},
        buckets=1,
    )
    network = _Table(8)
    (whole,) = held.evaluation(99)
    first = judged(whole, decoding, network)
    read, valid, so_far = whole.inputs
    more, further = draw.draw(st.integers(0, 3)), draw.draw(st.integers(0, 3))
    padded = Batch(
        (pad(read, (0, more)), pad(valid, (0, more)), pad(so_far, (0, further))),
        pad(whole.targets, (0, further), value=IGNORED),
    )
    assert judged(padded, decoding, network) == pytest.approx(first, abs=1e-9)
    parts = [judged(part, decoding, network) for part in held.evaluation(draw.draw(st.integers(1, 3)))]
    assert {name: sum(part[name] for part in parts) for name in first} == pytest.approx(first, abs=1e-9)


def test_metrics_by_hand() -> None:
    """Three sources of one, three and five letters; a text is right, one has an edit of two, one is of other length."""
    source, valid = torch.full((3, 5), 3), torch.arange(5) < torch.tensor([[1], [3], [5]])
    targets = torch.tensor([[3, END, IGNORED], [4, 5, END], [5, 5, END]])
    so_far = torch.tensor([[BEGIN, 3, PAD], [BEGIN, 4, 5], [BEGIN, 5, 5]])
    logits = 40 * one_hot(torch.tensor([[3, END, 7], [4, 6, END], [END, 5, END]]), 8).double()

    class Says(nn.Module):
        def forward(self, *_: Tensor) -> Tensor:
            return logits

    found = shares(judged(Batch((source, valid, so_far), targets), None, Says()))
    assert found == {
        "loss": pytest.approx(40 * 2 / 8, rel=1e-6),
        "accuracy": 6 / 8,
        "error_rate": 3 / 5,
        "exact": 1 / 3,
        "exact_short": 1.0,
        "exact_middle": 0.0,
        "exact_long": 0.0,
    }
    (one,) = [shares(judged(Batch((source[:1], valid[:1], so_far[:1]), targets[:1]), None, lambda *_: logits[:1]))]  # type: ignore[arg-type]
    assert one["exact_short"] == 1 and math.isnan(one["exact_middle"]) and math.isnan(one["exact_long"])


def test_a_model_that_cannot_write_is_one_clear_error() -> None:
    (batch,) = data().evaluation(9)
    with pytest.raises(InputError) as caught:
        judge(lambda *_: torch.zeros(3, 7, 8), batch, decoding=_Likeliest(), most=7, edges=(2, 4))  # type: ignore[arg-type]
    assert str(caught.value) == (
        "error[S307]: the task writes by `likeliest`, and the model cannot decode\n"
        "  = help: set the task's `decoding` to null, or take a model that has `begin` and `decode`"
    )
