"""Checks of decodings, on a small network whose logits depend on all that it has read."""

from __future__ import annotations

import torch
from torch import Tensor

from ablate.model.keys import generator
from ablate.slots import Cache, Decoded, Decoding
from ablate.testing.case import Case
from ablate.testing.modules import global_generators_kept

_END, _MOST, _VOCABULARY = 0, 12, 7


class Counting:
    """Logits of the next token by the last token and by how often each was read: what was read is in the cache."""

    def __init__(self) -> None:
        self.by_last = 2 * torch.randn(_VOCABULARY, _VOCABULARY, generator=generator("testing", "last"))
        self.by_count = torch.randn(_VOCABULARY, _VOCABULARY, generator=generator("testing", "count"))

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        """(B, T) -> (B, T, V)."""
        ones = torch.nn.functional.one_hot(tokens, _VOCABULARY).float()
        (before,) = cache.states.get("counts", (torch.zeros(len(tokens), _VOCABULARY),))
        counts = before[:, None] + ones.cumsum(1)
        cache.states["counts"] = (counts[:, -1],)
        cache.length += tokens.shape[1]
        return self.by_last[tokens] + counts.sqrt() @ self.by_count

    def score(self, prompt: Tensor, texts: Tensor, end: int | None) -> Tensor:
        """(B,): the log-probabilities of the texts' tokens up to their ends."""
        logits = self.decode(torch.cat([prompt, texts], 1)[:, :-1], Cache())[:, prompt.shape[1] - 1 :]
        each = logits.log_softmax(-1).gather(-1, texts[..., None])[..., 0]
        if end is not None:
            ended = (texts == end).cumsum(1)
            each = each.masked_fill((ended - (texts == end).long()) > 0, 0)
        return each.sum(1)


def _written(case: Case, end: int | None, seed: int = 0) -> tuple[Tensor, Decoded]:
    assert isinstance(case.component, Decoding)
    prompt = torch.tensor([[1, 2], [3, 4], [5, 6], [2, 5]])
    draws = generator("testing", "decoding", seed)
    found = case.component.write(Counting(), Cache(), prompt, most=_MOST, end=end, generator=draws)
    return prompt, found


def writes(case: Case) -> str | None:
    """Tokens (B, L) of at most `most`, and their log-probabilities under the model."""
    for end in (_END, None):
        prompt, found = _written(case, end)
        rows, length = found.tokens.shape
        if rows != len(prompt) or not 1 <= length <= _MOST or found.scores.shape != (rows,):
            return f"tokens {tuple(found.tokens.shape)} and scores {tuple(found.scores.shape)} for {len(prompt)} texts"
        if found.tokens.dtype.is_floating_point or found.tokens.min() < 0 or found.tokens.max() >= _VOCABULARY:
            return "tokens that are none of the vocabulary"
        wanted = Counting().score(prompt, found.tokens, end)
        if (off := float((found.scores - wanted).abs().max())) > 1e-3:
            return f"scores that are {off:.3g} nats off"
    return None


def stops(case: Case) -> str | None:
    """After its end a text is filled up with the end's token; with no end it has `most` tokens."""
    _, found = _written(case, None)
    if found.tokens.shape[1] != _MOST:
        return f"{found.tokens.shape[1]} tokens of {_MOST} where nothing ends a text"
    for seed in range(8):
        _, found = _written(case, _END, seed)
        after = (found.tokens == _END).cumsum(1).roll(1, 1)
        after[:, 0] = 0
        if found.tokens[after > 0].any():
            return "another token after the end of a text"
        if found.tokens.shape[1] < _MOST and not (found.tokens == _END).any(1).all():
            return f"{found.tokens.shape[1]} tokens of {_MOST} where a text has not ended"
    return None


def repeats(case: Case) -> str | None:
    """The same generator gives the same texts, and no global generator is drawn from."""
    moved: list[str] = []
    with global_generators_kept(moved):
        first, second = _written(case, _END)[1], _written(case, _END)[1]
    if moved:
        return f"a draw from the global generator of {' and '.join(moved)}"
    same = torch.equal(first.tokens, second.tokens) and torch.equal(first.scores, second.scores)
    return None if same else "other texts from the same generator"
