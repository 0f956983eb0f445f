"""A convolutional encoder and decoder: attention between them, or each place beside its own."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import glu, pad

from ablate.model.attention import Attend, visible_keys
from ablate.model.dropout import dropout
from ablate.slots import Cache, Form, ImpossibleError, Model, Output, Site, Traits, mark, place
from ablate_plugins.output import UntiedOutput

HALF = 0.5**0.5
"""What a sum of two is multiplied by, so that it varies as much as one."""

Memory = tuple[Tensor, Tensor, Tensor]
"""The encoder's output (B, S, D), the same with the embeddings added, both zero at padding; valid (B, S)."""


class _Embedded(nn.Module):
    """Tokens (B, T) -> (B, T, D): a vector of each token and one of its position, added."""

    def __init__(self, at: Site, p: float) -> None:
        super().__init__()
        self.embed = mark(nn.Embedding(at.vocabulary, at.width), at.child("embed"))
        self.position = mark(nn.Embedding(at.context, at.width), at.child("position"))
        self.dropout = dropout(p, at.child("dropout"))

    def forward(self, tokens: Tensor, start: int) -> Tensor:
        positions = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        out: Tensor = self.dropout(self.embed(tokens) + self.position(positions))
        return out


class _Convolution(nn.Module):
    """Windows of x (B, T + kernel - 1, D) -> (B, T, D): a convolution to 2D values, half of which are gates."""

    def __init__(self, at: Site, options: ConvSeq2Seq) -> None:
        super().__init__()
        self.dropout = dropout(options.dropout, at.child("dropout"))
        self.kernel = nn.Conv1d(at.width, 2 * at.width, options.kernel)

    def forward(self, x: Tensor) -> Tensor:
        return glu(self.kernel(self.dropout(x).transpose(1, 2)), 1).transpose(1, 2)


class _EncoderBlock(nn.Module):
    def __init__(self, at: Site, options: ConvSeq2Seq) -> None:
        super().__init__()
        self.convolution = _Convolution(at, options)
        self.sides = ((options.kernel - 1) // 2, options.kernel // 2)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """(B, S, D), zero at padding, and valid (B, S) -> (B, S, D), zero at padding."""
        found = self.convolution(pad(x, (0, 0, *self.sides)))
        out: Tensor = (found + x) * HALF * valid[..., None]
        return out


class _Attention(nn.Module):
    """Each place looks at all of the source, by what its block has found and by its own embedding."""

    def __init__(self, at: Site, options: ConvSeq2Seq) -> None:
        super().__init__()
        self.q = nn.Linear(at.width, at.width)
        self.attend = mark(Attend(at.child("attend"), causal=False, p=0.0), at.child("attend"))
        self.factor = at.width**-0.5

    def forward(self, found: Tensor, embedded: Tensor, start: int, memory: Memory) -> Tensor:
        keys, values, valid = memory
        q = (self.q(found) + embedded) * self.factor
        seen = visible_keys(q.shape[1], keys.shape[1], causal=False, valid=valid, device=q.device)
        context: Tensor = self.attend(q[:, None], keys[:, None], values[:, None], seen)[:, 0]
        return context * valid.sum(1).to(context.dtype).sqrt()[:, None, None]


class _Aligned(nn.Module):
    """Each place is given the source's at its own position, and nothing where the source has ended."""

    def forward(self, found: Tensor, embedded: Tensor, start: int, memory: Memory) -> Tensor:
        beside = memory[0][:, start : start + found.shape[1]]
        return pad(beside, (0, 0, 0, found.shape[1] - beside.shape[1]))


class _DecoderBlock(nn.Module):
    def __init__(self, at: Site, options: ConvSeq2Seq) -> None:
        super().__init__()
        self.path = at.path
        self.convolution = _Convolution(at, options)
        below = at.child("attention")
        self.attention = mark(_Attention(below, options), below) if options.attention else _Aligned()

    def forward(self, x: Tensor, embedded: Tensor, cache: Cache, memory: Memory) -> Tensor:
        """(B, T, D), the embeddings of its tokens, the last inputs before it, and the source -> (B, T, D)."""
        (before,) = cache.states[self.path]
        window = torch.cat([before, x], 1)
        cache.states[self.path] = (window[:, x.shape[1] :],)
        found = self.convolution(window)
        found = (found + self.attention(found, embedded, cache.length, memory)) * HALF
        out: Tensor = (found + x) * HALF
        return out


class _Network(nn.Module):
    def __init__(self, at: Site, below: Site, options: ConvSeq2Seq) -> None:
        super().__init__()
        self.source = at.child("source").path
        self.before = options.kernel - 1
        self.reading, self.writing = _Embedded(below, options.dropout), _Embedded(at, options.dropout)
        sites = [below.child(f"block.{layer}", "block", layer=layer) for layer in range(below.depth)]
        self.encoder = nn.ModuleList(mark(_EncoderBlock(site, options), site) for site in sites)
        sites = [at.child(f"block.{layer}", "block", layer=layer) for layer in range(at.depth)]
        self.blocks = nn.ModuleList(mark(_DecoderBlock(site, options), site) for site in sites)
        self.paths = [site.path for site in sites]
        self.dropout = dropout(options.dropout, at.child("head.dropout", "dropout"))
        self.head = place(options.output, at.child("head"), self.writing.embed)

    def forward(self, source: Tensor, valid: Tensor, tokens: Tensor) -> Tensor:
        return self.decode(tokens, self.begin(source, valid))

    def begin(self, source: Tensor, valid: Tensor) -> Cache:
        embedded = self.reading(source, 0) * valid[..., None]
        x = embedded
        for block in self.encoder:
            x = block(x, valid)
        cache = Cache()
        cache.states[self.source] = (x, (x + embedded) * HALF, valid)
        nothing = x.new_zeros(x.shape[0], self.before, x.shape[2])
        cache.states |= dict.fromkeys(self.paths, (nothing,))
        return cache

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        encoded, values, valid = cache.states[self.source]
        embedded = self.writing(tokens, cache.length)
        x = embedded
        for block in self.blocks:
            x = block(x, embedded, cache, (encoded, values, valid))
        cache.length += tokens.shape[1]
        logits: Tensor = self.head(self.dropout(x))
        return logits


class ConvSeq2Seq(Model):
    """Convolutions with gates read the source and write the target, each block of the decoder with its own attention.

    Two differences from the paper: queries are divided by √D, as embeddings here start with unit variance, and the
    encoder's gradient is not divided by the number of blocks that attend to it. Without attention each place is given
    the encoder's output at its own position alone, so that what it can know of the source is within its receptive
    field: ``(depth - 1)(kernel - 1)`` places back and those that the encoder's output sees.
    Source: Gehring et al. 2017, Convolutional Sequence to Sequence Learning; Kalchbrenner et al. 2016, Neural Machine
    Translation in Linear Time, for the aligned places.
    """

    kind: Literal["conv_seq2seq"] = "conv_seq2seq"
    forms: ClassVar[frozenset[Form]] = frozenset({"sequence_to_sequence"})
    width: int = Field(128, ge=1)
    """Width of the stream, D."""
    depth: int = Field(4, ge=1, le=4096)
    """Number of blocks in the decoder."""
    encoder_depth: int | None = Field(None, ge=1, le=4096)
    """Number of blocks in the encoder; null for as many as the decoder's."""
    kernel: int = Field(3, ge=1)
    """Tokens that a convolution sees: in the encoder on both sides, an even one one more ahead; in the decoder back."""
    attention: bool = True
    """Whether a place looks at all of the source, and not at its own position there alone."""
    output: Output = UntiedOutput()
    """How the stream becomes logits."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share dropped of the embeddings, of the input of each convolution and of the last block's output."""

    def effective(self) -> Self:
        """As many blocks on both sides are said in the one way."""
        return self.model_copy(update={"encoder_depth": None}) if self.encoder_depth == self.depth else self

    def traits(self) -> Traits:
        """Decodes from the last inputs of each convolution."""
        return Traits(cached=True)

    def build(self, at: Site) -> nn.Module:
        """Source (B, S), valid (B, S), tokens (B, T) -> logits (B, T, V)."""
        task = at.interface
        if task is None or task.form not in self.forms:
            raise ImpossibleError("a `conv_seq2seq` needs a task that has a source and a target")
        depth, encoder_depth = self.depth, self.encoder_depth or self.depth
        writing = replace(
            at,
            width=self.width,
            depth=depth,
            other_depth=encoder_depth,
            first=encoder_depth,
            context=task.context,
            vocabulary=task.vocabulary,
        )
        reading = replace(
            at.child("encoder"),
            width=self.width,
            depth=encoder_depth,
            other_depth=depth,
            context=task.source_context,
            vocabulary=task.source_vocabulary,
            stack="encoder",
            causal=False,
        )
        return _Network(writing, reading, self)
