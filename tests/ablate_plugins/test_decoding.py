"""Decodings against all texts that there are, and draws against the distribution that they are drawn from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import log

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from ablate.slots import Cache, Decoded, Decoding
from ablate_plugins.decoding import Beam, Greedy, Sample

MEMORIES = 4099


class Table:
    """A network whose logits are drawn for each history, which it keeps as one number a row of its cache."""

    def __init__(self, vocabulary: int = 3, seed: int = 0, spread: float = 2.0) -> None:
        draws = torch.randn(MEMORIES, vocabulary, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        self.logits = spread * draws
        self.rows_read: list[int] = []

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        (history,) = cache.states.get("history", (torch.zeros_like(tokens[:, 0]),))
        self.rows_read.append(len(tokens))
        logits = []
        for token in tokens.unbind(1):
            history = (history * 31 + token + 1) % MEMORIES
            logits.append(self.logits[history])
        cache.states["history"] = (history,)
        cache.length += tokens.shape[1]
        return torch.stack(logits, 1)

    def score(self, prompt: list[int], text: list[int]) -> float:
        log_probs = self.decode(torch.tensor([prompt + text[:-1]]), Cache())[0, len(prompt) - 1 :].log_softmax(-1)
        return float(log_probs[torch.arange(len(text)), torch.tensor(text)].sum())


class Chain:
    """A network whose probabilities of the next token depend on the last one alone, as the rows of a table say."""

    def __init__(self, *rows: list[float], dtype: torch.dtype = torch.float64) -> None:
        self.logits = torch.tensor(rows, dtype=torch.float64).log().to(dtype)

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        return self.logits[tokens]


def write(
    decoding: Decoding, network: Table | Chain, prompt: list[list[int]], most: int, end: int | None, seed: int = 0
) -> Decoded:
    draws = torch.Generator().manual_seed(seed)
    return decoding.write(network, Cache(), torch.tensor(prompt), most=most, end=end, generator=draws)


def every_text(vocabulary: int, most: int, end: int | None) -> Iterator[list[int]]:
    """Each text that ends within ``most`` tokens or is cut off there, once."""
    for text in product(range(vocabulary), repeat=most):
        length = text.index(end) + 1 if end is not None and end in text else most
        if all(token == end for token in text[length:]):
            yield list(text[:length])


def filled(text: list[int], length: int, end: int | None) -> list[int]:
    return text if end is None else text + [end] * (length - len(text))


DECODINGS = [Greedy(), Beam(width=1), Beam(width=3), Beam(length_penalty=0.0), Sample(), Sample(top_k=2, top_p=0.8)]


@pytest.mark.parametrize("end", [None, 2])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
def test_a_beam_as_wide_as_all_texts_finds_the_best_of_them(penalty: float, end: int | None) -> None:
    for seed in range(5):
        network = Table(seed=seed)
        texts = list(every_text(3, 4, end))
        assert len(texts) == (81 if end is None else 2**4 + sum(2**n for n in range(4)))

        scores = {tuple(text): network.score([1, 0], text) for text in texts}
        best = max(texts, key=lambda text: scores[tuple(text)] / ((5 + len(text)) / 6) ** penalty)
        found = write(Beam(width=81, length_penalty=penalty), network, [[1, 0]], 4, end)
        assert found.tokens.tolist() == [filled(best, found.tokens.shape[1], end)]
        assert float(found.scores) == pytest.approx(scores[tuple(best)], abs=1e-12)


def test_without_a_penalty_no_beam_is_under_greedy_and_some_are_above() -> None:
    above = 0
    for seed in range(12):
        network = Table(vocabulary=5, seed=seed)
        prompt = [[a, b] for a in range(5) for b in range(5)]
        greedy = write(Greedy(), network, prompt, 7, 4)
        for width in (2, 3):
            beam = write(Beam(width=width, length_penalty=0.0), network, prompt, 7, 4)
            assert (beam.scores >= greedy.scores).all()
            above += int((beam.scores > greedy.scores).sum())
    assert above > 60


def test_the_greedy_text_is_found_where_every_text_in_the_beam_is_worse() -> None:
    # Greedy goes to 1 at 0.4, to 6 at 0.16, and stays there. After two steps 4 and 5 are ahead of that, at 0.175 each,
    # so a beam of two has dropped it, and then they fall to pieces: 0.022 for what comes next.
    rows = [[1 / 8] * 8] * 8
    rows[0] = [0.0, 0.4, 0.35, 0.25, 0.0, 0.0, 0.0, 0.0]
    rows[1] = [0.0, 0.0, 0.0, 0.3, 0.0, 0.0, 0.4, 0.3]
    rows[2] = [0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0]
    rows[6] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    network = Chain(*rows)
    greedy = write(Greedy(), network, [[0]], 4, None)
    beam = write(Beam(width=2, length_penalty=0.0), network, [[0]], 4, None)
    assert greedy.tokens.tolist() == beam.tokens.tolist() == [[1, 6, 6, 6]]
    assert float(beam.scores) == float(greedy.scores) == pytest.approx(log(0.16))


def test_the_length_penalty_by_hand() -> None:
    # After 0 comes the end, 2, at 0.55, or 1 at 0.45 and then surely the end.
    network = Chain([0.0, 0.45, 0.55], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0])
    # ln 0.55 = -0.598 over 1 and ln 0.45 = -0.799 over (7 / 6) ** a: the longer one wins once a > 1.878.
    for penalty, text, chance in ((0.0, [2], 0.55), (1.85, [2], 0.55), (1.9, [1, 2], 0.45)):
        found = write(Beam(width=2, length_penalty=penalty), network, [[0]], 5, 2)
        assert found.tokens.tolist() == [text]
        assert float(found.scores) == pytest.approx(log(chance))


def test_a_search_stops_once_no_text_in_the_beam_can_win() -> None:
    # The end at 0.9; whatever is left, 0.1 in all, cannot come back without a penalty, and with a strong one it could.
    rows = [[0.06, 0.04, 0.9]] * 3
    network = Table()
    network.logits = torch.tensor(rows[0], dtype=torch.float64).log().expand(MEMORIES, 3)
    write(Beam(width=3, length_penalty=0.0), network, [[0]], 9, 2)
    assert network.rows_read == [1]
    network.rows_read.clear()
    found = write(Beam(width=3, length_penalty=4.0), network, [[0], [1]], 2, None)
    assert network.rows_read == [2, 8]  # the prompt once, then each text's three and its greedy one
    assert found.tokens.tolist() == [[2, 2], [2, 2]]


def test_a_beam_of_one_is_greedy_whatever_its_penalty() -> None:
    for seed in range(5):
        network = Table(vocabulary=4, seed=seed)
        prompt = [[a, b] for a in range(4) for b in range(4)]
        greedy, beam = (write(one, network, prompt, 6, 3) for one in (Greedy(), Beam(width=1, length_penalty=2.0)))
        assert greedy.tokens.tolist() == beam.tokens.tolist()
        assert greedy.scores.tolist() == beam.scores.tolist()


@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
@pytest.mark.parametrize("end", [None, 3])
def test_a_batch_is_its_texts_one_by_one(decoding: Decoding, end: int | None) -> None:
    network = Table(vocabulary=4, seed=3)
    prompts = [[0, 1], [1, 1], [2, 0], [3, 3], [0, 0]]
    together = write(decoding, network, prompts, 6, end)
    draws = torch.Generator().manual_seed(0)  # what one text leaves of the draws, the next takes
    for index, prompt in enumerate(prompts):
        alone = decoding.write(network, Cache(), torch.tensor([prompt]), most=6, end=end, generator=draws)
        text = filled(alone.tokens[0].tolist(), together.tokens.shape[1], end)
        assert together.tokens[index].tolist() == text
        assert float(together.scores[index]) == float(alone.scores)


@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
def test_scores_are_the_models_of_the_text_to_its_end_and_the_rest_is_filled(decoding: Decoding) -> None:
    network = Table(vocabulary=4, seed=5)
    prompts = [[a, b] for a in range(4) for b in range(4)]
    found = write(decoding, network, prompts, 8, 3)
    lengths = set()
    for prompt, text, score in zip(prompts, found.tokens.tolist(), found.scores.tolist(), strict=True):
        length = text.index(3) + 1 if 3 in text else 8
        lengths.add(length)
        assert text[length:] == [3] * (len(text) - length)
        assert score == pytest.approx(network.score(prompt, text[:length]), abs=1e-12)
    assert len(lengths) > 2
    assert found.tokens.shape == (16, max(lengths))


@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
def test_without_an_end_all_tokens_are_written_and_with_one_it_stops_early(decoding: Decoding) -> None:
    network = Table(vocabulary=2)
    assert write(decoding, network, [[0], [1]], 9, None).tokens.shape == (2, 9)
    sure = Chain([1e-9, 1.0], [1e-9, 1.0])
    assert write(decoding, sure, [[0], [1]], 9, 1).tokens.tolist() == [[1], [1]]
    assert write(decoding, sure, [[0], [1]], 1, None).tokens.tolist() == [[1], [1]]


@pytest.mark.parametrize("decoding", [Greedy(), Beam(width=1), Beam(), Sample(top_k=1)], ids=str)
def test_of_equal_tokens_the_lowest_is_written(decoding: Decoding) -> None:
    flat = Chain(*[[0.2] * 5] * 5)
    assert write(decoding, flat, [[3], [1]], 3, None).tokens.tolist() == [[0, 0, 0], [0, 0, 0]]
    after = Chain(*[[0.1, 0.3, 0.15, 0.3, 0.15]] * 5)
    assert write(decoding, after, [[0]], 2, None).tokens.tolist() == [[1, 1]]


@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
def test_half_precision_is_summed_in_float32_and_float64_stays(decoding: Decoding) -> None:
    row = [0.5, 0.3, 0.2]
    for dtype, wanted in ((torch.bfloat16, torch.float32), (torch.float32, torch.float32), (torch.float64,) * 2):
        network = Chain(row, row, row, dtype=dtype)
        network.logits.requires_grad_()
        found = write(decoding, network, [[0]], 3, None)
        assert found.scores.dtype == wanted
        assert not found.scores.requires_grad
        log_probs = network.logits.detach()[0].to(wanted).log_softmax(-1)
        assert float(found.scores) == pytest.approx(float(log_probs[found.tokens[0]].sum()), rel=1e-6)


@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
def test_a_network_of_nan_writes_tokens_that_exist_and_has_no_score(decoding: Decoding) -> None:
    network = Chain([torch.nan] * 3, [0.1, 0.2, 0.7], [0.1, 0.2, 0.7])
    for end in (None, 2):
        found = write(decoding, network, [[0], [1]], 4, end)
        assert found.scores.isnan().tolist() == [True, False]
        assert set(found.tokens.flatten().tolist()) <= {0, 1, 2}


def truncated(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> list[float]:
    """The distribution that is drawn from, written down token by token."""
    weights = torch.exp(logits.double() / temperature).tolist()
    ranked = sorted(range(len(weights)), key=lambda token: (-weights[token], token))[:top_k]
    total, mass, kept = sum(weights[token] for token in ranked), 0.0, []
    for token in ranked:
        if top_p is not None and mass >= top_p:
            break
        kept.append(token)
        mass += weights[token] / total
    left = sum(weights[token] for token in kept)
    return [weights[token] / left if token in kept else 0.0 for token in range(len(weights))]


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [
        (1.0, None, None),
        (0.5, None, None),
        (2.0, None, None),
        (1.0, 3, None),
        (1.0, 50, None),
        (1.0, None, 0.7),
        (1.5, 4, 0.8),
    ],
)
def test_draws_follow_the_truncated_distribution(temperature: float, top_k: int | None, top_p: float | None) -> None:
    draws = 20_000
    network = Table(vocabulary=6, seed=1, spread=1.0)
    found = write(Sample(temperature=temperature, top_k=top_k, top_p=top_p), network, [[2]] * draws, 2, None)
    counts = torch.bincount(found.tokens[:, 0] * 6 + found.tokens[:, 1], minlength=36)
    for pair, count in enumerate(counts.tolist()):
        seen = network.decode(torch.tensor([[2, pair // 6]]), Cache())[0]
        first, second = (truncated(logits, temperature, top_k, top_p) for logits in seen)
        p = first[pair // 6] * second[pair % 6]
        assert abs(count - draws * p) <= 5 * (draws * p * (1 - p)) ** 0.5
    alone = write(Sample(), network, [[2]] * draws, 2, None)
    assert (counts > 0).sum() > 3
    if (temperature, top_p) != (1.0, None) or top_k == 3:
        assert alone.tokens.tolist() != found.tokens.tolist()


def test_the_nucleus_by_hand() -> None:
    # In order 0.4, 0.3, 0.2, 0.1: a token is in as long as those before it have less than top_p.
    network = Chain(*[[0.1, 0.4, 0.2, 0.3]] * 4)
    quarters = Chain(*[[0.25] * 4] * 4)  # whose sums are exact
    cases: list[tuple[Chain, float, set[int]]] = [
        (network, 1e-9, {1}),
        (network, 0.399, {1}),
        (network, 0.401, {1, 3}),
        (network, 0.699, {1, 3}),
        (network, 0.701, {1, 2, 3}),
        (network, 1.0, {0, 1, 2, 3}),
        (quarters, 0.5, {0, 1}),
        (quarters, 0.51, {0, 1, 2}),
    ]
    for chain, top_p, tokens in cases:
        found = write(Sample(top_p=top_p), chain, [[0]] * 500, 1, None)
        assert set(found.tokens.flatten().tolist()) == tokens
    after_top_k = write(Sample(top_k=2, top_p=0.58), network, [[0]] * 500, 1, None)  # 4/7 and 3/7 of what is left
    assert set(after_top_k.tokens.flatten().tolist()) == {1, 3}
    assert set(write(Sample(top_k=2, top_p=0.57), network, [[0]] * 500, 1, None).tokens.flatten().tolist()) == {1}


@pytest.mark.parametrize("decoding", [Sample(top_k=1, temperature=3.0), Sample(temperature=1e-300)], ids=str)
def test_among_one_token_or_at_no_temperature_draws_are_greedy(decoding: Decoding) -> None:
    single = Table(vocabulary=5, seed=2)
    single.logits = single.logits.float()  # in which 1e-300 is 0
    for network in (Table(vocabulary=5, seed=2), single):
        prompt = [[0], [1], [2], [3]]
        greedy, drawn = write(Greedy(), network, prompt, 6, 4), write(decoding, network, prompt, 6, 4)
        assert drawn.tokens.tolist() == greedy.tokens.tolist()
        assert drawn.scores.tolist() == greedy.scores.tolist()


def test_draws_repeat_with_their_seed_and_leave_the_global_generator_alone() -> None:
    network = Table(vocabulary=5)
    state = torch.get_rng_state()
    one = write(Sample(), network, [[0]] * 20, 6, None, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    again, other = (write(Sample(), network, [[0]] * 20, 6, None, seed=seed) for seed in (1, 2))
    assert one.tokens.tolist() == again.tokens.tolist()
    assert one.tokens.tolist() != other.tokens.tolist()


def test_what_has_no_probability_is_never_drawn() -> None:
    network = Chain(*[[0.0, 1.0, 0.0, 3e-8]] * 4, dtype=torch.float32)
    found = write(Sample(temperature=5.0), network, [[1]] * 20_000, 1, None)
    assert set(found.tokens.flatten().tolist()) == {1, 3}


def test_options_without_effect_are_no_part_of_the_identity() -> None:
    assert Beam(width=1, length_penalty=1.0).effective() == Beam(width=1)
    assert Beam(length_penalty=1.0).effective() == Beam(length_penalty=1.0)
    assert Sample(top_k=1, temperature=2.0, top_p=0.5).effective() == Sample(top_k=1)
    assert Sample(top_k=2, top_p=1.0).effective() == Sample(top_k=2)
    assert Sample(top_k=2, top_p=0.5).effective() == Sample(top_k=2, top_p=0.5)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Beam, {"width": 0}),
        (Beam, {"length_penalty": -0.1}),
        (Sample, {"temperature": 0.0}),
        (Sample, {"top_k": 0}),
        (Sample, {"top_p": 0.0}),
        (Sample, {"top_p": 1.1}),
    ],
)
def test_options_out_of_bounds_are_refused(kind: type[Decoding], options: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        kind(**options)
