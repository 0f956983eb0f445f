"""A recurrent encoder and decoder: one fixed context vector between them, or attention."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ablate.model.attention import Attend, visible_keys
from ablate.model.dropout import dropout
from ablate.slots import Cache, Form, ImpossibleError, Model, Output, Site, Traits, mark, place
from ablate_plugins.output import UntiedOutput

State = tuple[Tensor, ...]
"""What a recurrent layer keeps, each (B, D): h of a GRU, h and c of an LSTM."""


class _Recurrent(nn.Module):
    """A recurrent layer: x (B, T, D) and the state before it, or none -> (B, T, D) and the state after it."""

    kernel: ClassVar[type[nn.GRU | nn.LSTM]]
    parts: ClassVar[int]
    """How many tensors a state is."""

    def __init__(self, at: Site, inputs: int, p: float) -> None:
        super().__init__()
        self.dropout = dropout(p, at.child("dropout"))
        self.recurrent = self.kernel(inputs, at.width, batch_first=True)


class _Gru(_Recurrent):
    kernel, parts = nn.GRU, 1

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        out, h = self.recurrent(self.dropout(x), state and state[0][None])
        return out, (h[0],)


class _Lstm(_Recurrent):
    kernel, parts = nn.LSTM, 2

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        out, (h, c) = self.recurrent(self.dropout(x), state and (state[0][None], state[1][None]))
        return out, (h[0], c[0])


CELLS: dict[str, type[_Gru | _Lstm]] = {"gru": _Gru, "lstm": _Lstm}


class _Encoder(nn.Module):
    """Source (B, S), valid (B, S) -> the top layer's states (B, S, E), zero at padding, and its last ones (B, E).

    The last state is the one at the last token; of a layer that reads backwards, at the first. Either way padding is
    read after all of the tokens, and what is read there is dropped.
    """

    def __init__(self, at: Site, options: RnnSeq2Seq, vocabulary: int) -> None:
        super().__init__()
        self.embed = mark(nn.Embedding(vocabulary, at.width), at.child("embed"))
        self.dropout = dropout(options.dropout, at.child("dropout"))
        self.directions = options.directions
        ways = ("forward", "backward")[: self.directions]
        self.layers = nn.ModuleList()
        for layer in range(at.depth):
            sites = [at.child(f"layer.{layer}.{way}", "recurrent", layer=layer) for way in ways]
            inputs, p = (at.width * len(ways), options.dropout) if layer else (at.width, 0.0)
            self.layers.append(nn.ModuleList(mark(CELLS[options.cell](site, inputs, p), site) for site in sites))

    def forward(self, source: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        x = self.dropout(self.embed(source))
        length = valid.sum(1, keepdim=True)
        ahead = torch.arange(source.shape[1], device=source.device).expand(source.shape)
        back = torch.where(valid, length - 1 - ahead, ahead)  # its own inverse; padding stays at the end
        orders = (ahead, back)[: self.directions]
        ends: list[Tensor] = []
        for layers in self.layers.children():
            read = [layer(_taken(x, order))[0] for layer, order in zip(layers.children(), orders, strict=True)]
            read = [states * valid[..., None] for states in read]
            ends = [_taken(states, (length - 1).clamp_min(0))[:, 0] for states in read]
            x = torch.cat([_taken(states, order) for states, order in zip(read, orders, strict=True)], -1)
        return x, torch.cat(ends, -1)


def _taken(x: Tensor, places: Tensor) -> Tensor:
    """Of x (B, S, D) what stands at the places (B, P): (B, P, D)."""
    return x.gather(1, places[..., None].expand(-1, -1, x.shape[-1]))


class _Fixed(nn.Module):
    """No attention: the encoder's last state enters the decoder's first layer with every token."""

    def __init__(self, at: Site, memory: int) -> None:
        super().__init__()
        self.extra = memory

    def keep(self, memory: Tensor, last: Tensor, valid: Tensor) -> State:
        return (last,)

    def read(self, layer: nn.Module, x: Tensor, state: State, kept: State) -> tuple[Tensor, State]:
        (context,) = kept
        out: tuple[Tensor, State] = layer(torch.cat([x, context[:, None].expand(-1, x.shape[1], -1)], -1), state)
        return out

    def join(self, x: Tensor, kept: State) -> Tensor:
        return x


class _Bahdanau(nn.Module):
    """The first layer's previous state looks at the memory, and what it finds enters that layer: a step at a time."""

    def __init__(self, at: Site, memory: int) -> None:
        super().__init__()
        self.extra = memory
        self.q = nn.Linear(at.width, at.width, bias=False)
        self.k = nn.Linear(memory, at.width, bias=False)
        self.score = nn.Linear(at.width, 1, bias=False)

    def keep(self, memory: Tensor, last: Tensor, valid: Tensor) -> State:
        return memory, self.k(memory), valid

    def read(self, layer: nn.Module, x: Tensor, state: State, kept: State) -> tuple[Tensor, State]:
        memory, keys, valid = kept
        outs = []
        for token in x.split(1, 1):
            logits = self.score(torch.tanh(self.q(state[0])[:, None] + keys)).transpose(1, 2)
            # The smallest number, and not -inf: a source without tokens gives zeros and no NaN.
            weights = logits.masked_fill(~valid[:, None], torch.finfo(logits.dtype).min).softmax(-1)
            out, state = layer(torch.cat([token, weights @ memory], -1), state)
            outs.append(out)
        return torch.cat(outs, 1), state

    def join(self, x: Tensor, kept: State) -> Tensor:
        return x


class _Luong(nn.Module):
    """The top layer's current state looks at the memory, and what it finds is joined with it: all tokens at once."""

    def __init__(self, at: Site, memory: int) -> None:
        super().__init__()
        self.extra = 0
        self.k = nn.Linear(memory, at.width, bias=False)
        site = at.child("attend", layer=at.depth - 1, first=at.depth)
        self.attend = mark(Attend(site, causal=False, p=0.0), site)
        self.combine = nn.Linear(memory + at.width, at.width, bias=False)

    def keep(self, memory: Tensor, last: Tensor, valid: Tensor) -> State:
        return memory, self.k(memory), valid

    def read(self, layer: nn.Module, x: Tensor, state: State, kept: State) -> tuple[Tensor, State]:
        out: tuple[Tensor, State] = layer(x, state)
        return out

    def join(self, x: Tensor, kept: State) -> Tensor:
        memory, keys, valid = kept
        seen = visible_keys(x.shape[1], keys.shape[1], causal=False, valid=valid, device=x.device)
        context = self.attend(x[:, None], keys[:, None], memory[:, None], seen)[:, 0]
        return torch.tanh(self.combine(torch.cat([context, x], -1)))


ATTENTIONS: dict[str, type[_Fixed | _Bahdanau | _Luong]] = {"none": _Fixed, "bahdanau": _Bahdanau, "luong": _Luong}


class _Network(nn.Module):
    def __init__(self, at: Site, options: RnnSeq2Seq, source_vocabulary: int) -> None:
        super().__init__()
        self.source, self.decoder = at.child("source").path, at.child("decoder").path
        memory = at.width * options.directions
        below = replace(at, stack="encoder", causal=False).child("encoder")
        self.encoder = mark(_Encoder(below, options, source_vocabulary), below)
        self.embed = mark(nn.Embedding(at.vocabulary, at.width), at.child("embed"))
        self.dropout = dropout(options.dropout, at.child("dropout"))
        self.attention = mark(ATTENTIONS[options.attention](at.child("attention"), memory), at.child("attention"))
        self.layers = nn.ModuleList()
        for layer in range(at.depth):
            site = at.child(f"decoder.layer.{layer}", "recurrent", layer=layer, first=at.depth)
            inputs, p = (at.width, options.dropout) if layer else (at.width + self.attention.extra, 0.0)
            self.layers.append(mark(CELLS[options.cell](site, inputs, p), site))
        self.parts = CELLS[options.cell].parts
        self.start = mark(nn.Linear(memory, at.depth * self.parts * at.width), at.child("start"))
        self.head = place(options.output, at.child("head"), self.embed)

    def forward(self, source: Tensor, valid: Tensor, tokens: Tensor) -> Tensor:
        return self.decode(tokens, self.begin(source, valid))

    def begin(self, source: Tensor, valid: Tensor) -> Cache:
        cache = Cache()
        memory, last = self.encoder(source, valid)
        cache.states[self.source] = self.attention.keep(memory, last, valid)
        first = torch.tanh(self.start(last)).chunk(len(self.layers) * self.parts, -1)
        cache.states[self.decoder] = tuple(part.contiguous() for part in first)  # as cuDNN wants it
        return cache

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        kept, states = cache.states[self.source], cache.states[self.decoder]
        x = self.dropout(self.embed(tokens))
        after: State = ()
        for index, layer in enumerate(self.layers):
            state = states[index * self.parts : (index + 1) * self.parts]
            x, state = layer(x, state) if index else self.attention.read(layer, x, state, kept)
            after += state
        cache.states[self.decoder] = after
        cache.length += tokens.shape[1]
        logits: Tensor = self.head(self.attention.join(x, kept))
        return logits


class RnnSeq2Seq(Model):
    """A recurrent encoder and a recurrent decoder, with one fixed context vector between them, or with attention.

    Without attention the context is the encoder's last state, and all that the decoder knows of the source: it gives
    the decoder's first state, through a tanh layer, and enters its first layer with every token. Bahdanau's attention
    looks by the first layer's previous state and feeds what it finds to that layer; Luong's looks by the top layer's
    current state (his "general" score, without input feeding) and joins what it finds with it in a tanh layer.
    The output sees the decoder's state alone, without the papers' maxout.
    Source: Cho et al. 2014, Learning Phrase Representations, for the fixed context; Bahdanau et al. 2015, Neural
    Machine Translation by Jointly Learning to Align and Translate; Luong et al. 2015, Effective Approaches, §3.1.
    """

    kind: Literal["rnn_seq2seq"] = "rnn_seq2seq"
    forms: ClassVar[frozenset[Form]] = frozenset({"sequence_to_sequence"})
    width: int = Field(128, ge=1)
    """Width of embeddings and states, D."""
    depth: int = Field(1, ge=1, le=4096)
    """Number of recurrent layers in the encoder, and in the decoder."""
    cell: Literal["gru", "lstm"] = "gru"
    """What keeps the state: a gated recurrent unit, or long short-term memory."""
    attention: Literal["none", "bahdanau", "luong"] = "none"
    """How the decoder looks at the source's states; `none` leaves it one fixed vector."""
    bidirectional: bool = False
    """Whether half of the encoder reads backwards; its states are then twice as wide, E = 2D."""
    output: Output = UntiedOutput()
    """How states become logits."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share dropped of the embeddings and of what passes from one layer to the next."""

    @property
    def directions(self) -> int:
        """Number of directions that the encoder reads in."""
        return 2 if self.bidirectional else 1

    def traits(self) -> Traits:
        """Decodes from its state; torch's recurrent kernels run under neither `vmap` nor `compile`."""
        return Traits(cached=True, vmap=False, compiles=False)

    def build(self, at: Site) -> nn.Module:
        """Source (B, S), valid (B, S), tokens (B, T) -> logits (B, T, V)."""
        task = at.interface
        if task is None or task.form not in self.forms:
            raise ImpossibleError("an `rnn_seq2seq` needs a task that has a source and a target")
        site = replace(
            at,
            width=self.width,
            depth=self.depth,
            other_depth=self.depth,
            context=task.context,
            vocabulary=task.vocabulary,
        )
        return _Network(site, self, task.source_vocabulary)
