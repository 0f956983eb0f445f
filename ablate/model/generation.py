"""Writing texts with a trained network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ablate.model.keys import generator
from ablate.slots import Cache, Decoded, Decoding


def generate(
    network: nn.Module,
    inputs: Sequence[Tensor] | Tensor,
    *,
    decoding: Decoding,
    most: int,
    end: int | None = None,
    prompt: Tensor | None = None,
    seed: int = 0,
) -> Decoded:
    """Let a network write what follows a prompt, in evaluation mode, which it leaves again.

    Args:
        network: a network with ``begin(*inputs)`` and ``decode(tokens, cache)``.
        inputs: what is read before the prompt: () for a language model, (source, valid) for a sequence-to-sequence one.
        decoding: how the next tokens are chosen.
        most: how many tokens are written at most.
        end: the token that ends a text, or None to write ``most`` tokens.
        prompt: (B, t) tokens to begin with; for a sequence-to-sequence model (B, 1), the token that begins a target.
        seed: keys what is drawn; the global generator is neither read nor moved.

    Raises:
        ValueError: the network cannot write, there is no prompt of tokens, its batch is not that of the inputs, a token
            of it or ``end`` is not in the vocabulary, or ``most`` is under 1 or leads over the network's context.
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    begin, decode = getattr(network, "begin", None), getattr(network, "decode", None)
    if not (callable(begin) and callable(decode)):
        raise ValueError("this network cannot write texts: it has no `begin` and `decode`")
    if not isinstance(prompt, Tensor):
        raise ValueError("a `prompt` is needed: tokens (B, t) that the texts go on from")
    if prompt.ndim != 2:
        raise ValueError(f"`prompt` must be tokens (B, t), and its shape is {tuple(prompt.shape)}")
    if not prompt.numel():
        raise ValueError(f"`prompt` is empty: its shape is {tuple(prompt.shape)}, and it needs at least one token")
    for tensor in given:
        if len(tensor) != len(prompt):
            raise ValueError(f"`prompt` has {len(prompt)} sequences, and an input has {len(tensor)}")
    if prompt.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"`prompt` must be whole numbers, and it is {str(prompt.dtype).removeprefix('torch.')}")
    if not isinstance(decoding, Decoding):
        raise ValueError(f"`decoding` must be a component such as Greedy(), not {decoding!r}")
    if most < 1:
        raise ValueError(f"`most` must be at least 1, not {most}")
    context: int | None = getattr(network, "context", None)
    if context is not None and prompt.shape[1] + most - 1 > context:
        read = prompt.shape[1] + most - 1
        raise ValueError(f"{read} tokens would be read, and the context is {context}: take a smaller `most`")
    with _evaluating(network), torch.no_grad():
        # One token of one text says how many there are, of any network: those beyond would be an error deep inside it,
        # which on a GPU leaves nothing usable, and an `end` that never comes would be no error at all.
        vocabulary = decode(prompt.new_zeros(1, 1), begin(*(tensor[:1] for tensor in given))).shape[-1]
        named = [("`prompt` has the token", int(prompt.min())), ("`prompt` has the token", int(prompt.max()))]
        for what, token in named if end is None else [*named, ("`end` is", end)]:
            if not 0 <= token < vocabulary:
                raise ValueError(f"{what} {token}, and tokens go from 0 to {vocabulary - 1}")
        return decoding.write(
            network,  # type: ignore[arg-type]  # it was asked for `decode` above
            begin(*given),
            prompt,
            most=most,
            end=end,
            generator=generator(seed, "decoding"),
        )


@dataclass(frozen=True)
class Rereading:
    """Decoding for a network that keeps nothing of what it has read: it reads the whole text anew for each token."""

    forward: Callable[[tuple[Tensor, ...], Tensor], Tensor]
    """The inputs before the tokens, and all tokens (B, T) -> logits (B, T, V), none of which sees a later token."""

    def begin(self, *inputs: Tensor) -> Cache:
        """A cache that holds the inputs, of which the batch is the first axis, and no token yet."""
        cache = Cache()
        cache.states = {f"inputs.{index}": (tensor,) for index, tensor in enumerate(inputs)}
        return cache

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        """Tokens (B, T) that follow what the cache holds -> logits (B, T, V); the cache then holds them too."""
        text = torch.cat([*cache.states.get("tokens", ()), tokens], 1)
        inputs = tuple(kept[0] for path, kept in cache.states.items() if path != "tokens")  # in the order of `begin`
        logits = self.forward(inputs, text)
        cache.states["tokens"] = (text,)
        cache.length = text.shape[1]
        return logits[:, -tokens.shape[1] :]


@contextmanager
def _evaluating(network: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; each module is then as it was, for some may have been in it before."""
    training = [module for module in network.modules() if module.training]
    network.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
