"""Recurrent mixers: what was read is kept in a state of fixed size, one token after the other."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ablate.slots import Given, ImpossibleError, Mixer, Site, Traits


def _reversed(x: Tensor, valid: Tensor | None) -> Tensor:
    """Each sequence of x (B, T, D) from its last token to its first, with its padding where it was."""
    if valid is None:
        return x.flip(1)
    place = torch.arange(x.shape[1], device=x.device)
    length = valid.sum(1, keepdim=True)
    order = torch.where(place < length, length - 1 - place, place)
    return x.gather(1, order.unsqueeze(-1).expand_as(x))


class _Recurrent(nn.Module):
    site: Site

    def __init__(self, at: Site, options: GRU | LSTM, layer: type[nn.GRU | nn.LSTM]) -> None:
        super().__init__()
        width = options.width or at.width
        self.recurrent = layer(at.width, width, bias=options.bias, batch_first=True)
        # A layer of its own and not torch's second direction, which would begin with the padding.
        self.backwards = layer(at.width, width, bias=options.bias, batch_first=True) if options.bidirectional else None
        self.o = nn.Linear(2 * width if options.bidirectional else width, at.width, bias=options.bias)
        self.carries_two = layer is nn.LSTM

    def forward(self, x: Tensor, given: Given) -> Tensor:
        cache = given.cache if self.backwards is None else None
        read = cache.states.get(self.site.path) if cache is not None else None
        before = None if read is None else tuple(state.unsqueeze(0) for state in read)
        hidden, after = self.recurrent(x, before if before is None or self.carries_two else before[0])
        if cache is not None:
            # The state behind padding is never used: a sequence that has ended does not go on.
            states = after if self.carries_two else (after,)
            cache.states[self.site.path] = tuple(state.squeeze(0) for state in states)
        if self.backwards is not None:
            later, _ = self.backwards(_reversed(x, given.valid))
            hidden = torch.cat([hidden, _reversed(later, given.valid)], -1)
        out: Tensor = self.o(hidden)
        return out


def _build(options: GRU | LSTM, at: Site, layer: type[nn.GRU | nn.LSTM]) -> nn.Module:
    if at.cross:
        raise ImpossibleError(f"`{options.kind}` cannot read another sequence")
    if options.bidirectional and at.causal:
        raise ImpossibleError(f"a bidirectional `{options.kind}` reads later tokens, which a causal site forbids")
    return _Recurrent(at, options, layer)


def _traits(options: GRU | LSTM) -> Traits:
    # torch's layers have no batching rule, and its compiler does not take them in.
    one_way = not options.bidirectional
    return Traits(causal=one_way, cached=one_way, vmap=False, compiles=False)


def _flops(options: GRU | LSTM, at: Site, tokens: int, gates: int) -> int:
    """Products with the gates' two matrices and with the output map's, for this many tokens in all."""
    width = options.width or at.width
    return 2 * tokens * width * (gates * (at.width + width) + at.width) * (2 if options.bidirectional else 1)


class GRU(Mixer):
    """Gated recurrent unit: an update gate and a reset gate say what of the state is kept; an output map follows.

    It is torch's variant, whose reset gate acts after the state's matrix and not before it.
    Source: Cho et al. 2014, Learning Phrase Representations using RNN Encoder-Decoder, §2.3.
    """

    kind: Literal["gru"] = "gru"
    width: int | None = Field(None, ge=1)
    """Size of the state, in each direction; the stream's width if not given."""
    bidirectional: bool = False
    """Whether a second state reads from the end to the beginning; at sites that are not causal."""
    bias: bool = True
    """Whether the gates and the output map have a bias."""

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D).

        Raises:
            ImpossibleError: the site reads another sequence, or is causal and the unit bidirectional.
        """
        return _build(self, at, nn.GRU)

    def traits(self) -> Traits:
        """It goes on from its state, if it reads in one direction."""
        return _traits(self)

    def flops(self, at: Site, batch: int, tokens: int) -> int | None:
        """Three gates' worth of products for each token."""
        return _flops(self, at, batch * tokens, gates=3)


class LSTM(Mixer):
    """Long short-term memory: gates guard a cell that carries what was read; an output map follows.

    It has the forget gate of Gers et al. 2000, whose bias starts at zero as all biases do.
    Source: Hochreiter and Schmidhuber 1997, Long Short-Term Memory, §4.
    """

    kind: Literal["lstm"] = "lstm"
    width: int | None = Field(None, ge=1)
    """Size of the state, in each direction; the stream's width if not given."""
    bidirectional: bool = False
    """Whether a second state reads from the end to the beginning; at sites that are not causal."""
    bias: bool = True
    """Whether the gates and the output map have a bias."""

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D).

        Raises:
            ImpossibleError: the site reads another sequence, or is causal and the memory bidirectional.
        """
        return _build(self, at, nn.LSTM)

    def traits(self) -> Traits:
        """It goes on from its state, if it reads in one direction."""
        return _traits(self)

    def flops(self, at: Site, batch: int, tokens: int) -> int | None:
        """Four gates' worth of products for each token; the counter takes the CPU's kernel for nothing."""
        return _flops(self, at, batch * tokens, gates=4)
