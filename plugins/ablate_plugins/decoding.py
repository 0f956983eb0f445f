"""Decodings: how a model's logits become a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import pad

from ablate.slots import Cache, Decoded, Decodes, Decoding


class Greedy(Decoding):
    """The most probable token at each step; of equals, the one with the lowest number.

    Source: Sutskever et al. 2014, Sequence to Sequence Learning with Neural Networks, of which it is the beam of one.
    """

    kind: Literal["greedy"] = "greedy"

    def write(
        self, network: Decodes, cache: Cache, prompt: Tensor, *, most: int, end: int | None, generator: torch.Generator
    ) -> Decoded:
        """Prompt (B, t) -> texts (B, L) and their scores (B,); nothing is drawn."""
        return _one_by_one(network, cache, prompt, most, end, lambda log_probs, _: log_probs.argmax(-1))


class Beam(Decoding):
    """Beam search: several texts are kept at each step, and the best at the end is given.

    Texts compete by their log-probability over ((5 + length) / 6) ** length_penalty. The end's token counts in the
    length, and a text that is cut off at the most tokens competes as it stands. A text that ends among the best
    ``width`` leaves the beam; the search stops where no text in the beam can come to beat the best that has ended.
    Source: Sutskever et al. 2014; Wu et al. 2016, Google's Neural Machine Translation System, §7, for the penalty.
    """

    kind: Literal["beam"] = "beam"
    width: int = Field(4, ge=1)
    """Number of texts that are kept at each step; with 1 it is greedy."""
    length_penalty: float = Field(0.6, ge=0, le=4)
    """How far long texts are favoured; 0 compares plain log-probabilities."""

    def effective(self) -> Self:
        """A beam of one has nothing to compare, so its penalty is dead."""
        return self if self.width > 1 else self.model_copy(update={"length_penalty": 0.6})

    def write(
        self, network: Decodes, cache: Cache, prompt: Tensor, *, most: int, end: int | None, generator: torch.Generator
    ) -> Decoded:
        """Prompt (B, t) -> the best texts (B, L) and their scores (B,), without the penalty; nothing is drawn."""
        # A beam can drop the greedy text early and find nothing as good. So that a search is never worse than none, the
        # greedy text is one more row beside the beam's: it takes no place in the beam, is continued by its own most
        # probable token alone, and competes with the others when it ends.
        width, rows = self.width, self.width + 1
        with torch.no_grad():
            first = torch.arange(len(prompt), device=prompt.device)[:, None] * rows  # (B, 1): each text's first row
            log_probs = _next(network, cache, prompt)  # the prompt is read once, and only then are there rows
            copies = (first // rows).expand(-1, rows).flatten()
            log_probs = log_probs.index_select(0, copies)
            cache.select(copies)
            vocabulary = log_probs.shape[-1]
            scores = log_probs.new_full((len(prompt), rows), -torch.inf)  # a row of -inf is no text
            scores[:, 0] = scores[:, -1] = 0
            texts = prompt.new_full((len(prompt), rows, most), 0 if end is None else end, dtype=torch.long)
            best = _Best(texts[:, 0], scores[:, 0], 1 if end is not None else most)
            for length in range(1, most + 1):
                # A network that gives NaN has nothing to say here, and must not win by it.
                log_probs = log_probs.masked_fill(log_probs.isnan(), -torch.inf).view(len(prompt), rows, vocabulary)
                in_beam = (scores[:, :width, None] + log_probs[:, :width]).flatten(1)
                kept, places = _top(in_beam, width)
                likeliest, greedy = log_probs[:, width:].max(-1)  # (B, 1): the first of equals
                scores = torch.cat([kept, scores[:, width:] + likeliest], 1)
                tokens = torch.cat([places % vocabulary, greedy], 1)
                parents = torch.cat([places // vocabulary, torch.full_like(greedy, width)], 1)
                texts = texts.gather(1, parents[..., None].expand_as(texts))
                texts[..., length - 1] = tokens
                over = torch.full_like(tokens, length == most, dtype=torch.bool)
                if end is not None:
                    over |= tokens == end
                best.take(texts, scores, (scores / self._penalty(length)).masked_fill(~over, -torch.inf), length)
                scores = scores.masked_fill(over, -torch.inf)
                # Scores only fall and penalties only grow, so this is the most that a text can come to.
                if not bool((scores / self._penalty(most) > best.values[:, None]).any()):
                    break
                cache.select((first + parents).flatten())
                log_probs = _next(network, cache, tokens.view(-1, 1))
            return Decoded(best.texts[:, : int(best.lengths.max())], best.scores)

    def _penalty(self, length: int) -> float:
        return float(((5 + length) / 6) ** self.length_penalty)


class Sample(Decoding):
    """Draws each token by its probability, if wished only among the most probable ones.

    The temperature comes first, then ``top_k``, then ``top_p`` of what is left. Scores are the model's own, without any
    of them. Each text has its own share of the draws, so that none changes with how long another one is.
    Source: Fan et al. 2018, Hierarchical Neural Story Generation, for top-k; Holtzman et al. 2020, The Curious Case of
    Neural Text Degeneration, for top-p (the nucleus).
    """

    kind: Literal["sample"] = "sample"
    temperature: float = Field(1.0, gt=0)
    """What the logits are divided by: below 1 for likelier texts, above 1 for more varied ones."""
    top_k: int | None = Field(None, ge=1)
    """Draw among this many most probable tokens; with 1 it is greedy."""
    top_p: float | None = Field(None, gt=0, le=1)
    """Draw among the fewest most probable tokens that together have at least this probability."""

    def effective(self) -> Self:
        """Among one token there is nothing to draw, and a probability of 1 leaves out nothing."""
        if self.top_k == 1:
            return self.model_copy(update={"temperature": 1.0, "top_p": None})
        return self.model_copy(update={"top_p": None}) if self.top_p == 1 else self

    def write(
        self, network: Decodes, cache: Cache, prompt: Tensor, *, most: int, end: int | None, generator: torch.Generator
    ) -> Decoded:
        """Prompt (B, t) -> texts (B, L) and their scores (B,); draws B * ``most`` numbers, whenever the texts end."""
        drawn = torch.rand(len(prompt), most, generator=generator).to(prompt.device)
        return _one_by_one(
            network, cache, prompt, most, end, lambda log_probs, step: self._draw(log_probs, drawn[:, step : step + 1])
        )

    def _draw(self, log_probs: Tensor, drawn: Tensor) -> Tensor:
        """Log-probabilities (B, V) and numbers in [0, 1) (B, 1) -> the tokens (B,) at which these are passed."""
        ranked, tokens = log_probs.sort(dim=-1, descending=True, stable=True)
        # The largest becomes 0 before the division, so that no temperature is too low for it.
        temperature = max(self.temperature, torch.finfo(ranked.dtype).tiny)
        probs = ((ranked - ranked[:, :1]) / temperature).softmax(-1)
        if self.top_k is not None:
            probs[:, self.top_k :] = 0
        if self.top_p is not None and self.top_p < 1:
            probs = probs / probs.sum(-1, keepdim=True)
            before = pad(probs.cumsum(-1)[:, :-1], (1, 0))
            probs = probs.masked_fill(before >= self.top_p, 0)
        cumulated = probs.cumsum(-1)
        place = (cumulated <= drawn.to(probs.dtype) * cumulated[:, -1:]).sum(-1, keepdim=True)
        last = (probs > 0).sum(
            -1, keepdim=True
        ) - 1  # a GPU adds up in parts, and rounding must not lead to a token that is out
        return tokens.gather(-1, place.minimum(last).clamp(min=0)).squeeze(-1)


class _Best:
    """The best text of each sequence among those that are over."""

    def __init__(self, texts: Tensor, scores: Tensor, length: int) -> None:
        self.texts = texts  # (B, L)
        self.lengths = torch.full_like(texts[:, 0], length)
        self.scores = torch.full_like(scores, torch.nan)  # which stays where the network gives NaN
        self.values = torch.full_like(scores, -torch.inf)  # scores over their penalties

    def take(self, texts: Tensor, scores: Tensor, values: Tensor, length: int) -> None:
        """Let rows compete: texts (B, R, L), scores and values (B, R), where -inf takes no part."""
        value, row = values.max(1)  # (B,), the first of equals
        better = value > self.values
        each = torch.arange(len(row), device=row.device)
        self.texts = torch.where(better[:, None], texts[each, row], self.texts)
        self.lengths = self.lengths.masked_fill(better, length)
        self.scores = torch.where(better, scores[each, row], self.scores)
        self.values = torch.where(better, value, self.values)


def _one_by_one(
    network: Decodes,
    cache: Cache,
    prompt: Tensor,
    most: int,
    end: int | None,
    choose: Callable[[Tensor, int], Tensor],
) -> Decoded:
    """Write one text a sequence; ``choose`` takes log-probabilities (B, V) and the step, and gives tokens (B,)."""
    with torch.no_grad():
        log_probs = _next(network, cache, prompt)
        scores = log_probs.new_zeros(len(prompt))
        ended = torch.zeros_like(scores, dtype=torch.bool)
        written: list[Tensor] = []
        for step in range(most):
            tokens = choose(log_probs, step)
            scores = scores + log_probs.gather(1, tokens[:, None])[:, 0].masked_fill(ended, 0)
            if end is not None:
                tokens = tokens.masked_fill(ended, end)
                ended = ended | (tokens == end)
            written.append(tokens)
            if step + 1 == most or bool(ended.all()):
                break
            log_probs = _next(network, cache, tokens[:, None])
        return Decoded(torch.stack(written, 1), scores)


def _next(network: Decodes, cache: Cache, tokens: Tensor) -> Tensor:
    """Read tokens (B, T) -> the log-probabilities (B, V) of what follows them, in float32 at least."""
    logits = network.decode(tokens, cache)[:, -1]
    return (logits if logits.dtype == torch.float64 else logits.float()).log_softmax(-1)


def _top(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest of each row (N, M), as values and places (N, ``count``); of equals the first come first.

    ``topk`` alone takes any of the equals, and a stable sort of a whole vocabulary is slow.
    """
    rows, places = (scores >= scores.topk(count).values[:, -1:]).nonzero(as_tuple=True)  # these, and equals of the last
    order = scores[rows, places].sort(descending=True, stable=True).indices
    order = order[rows[order].sort(stable=True).indices]
    starts = torch.searchsorted(rows, torch.arange(len(scores), device=rows.device))
    found = places[order[starts[:, None] + torch.arange(count, device=rows.device)]]
    return scores.gather(1, found), found
