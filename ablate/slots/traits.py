"""What a component declares of itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Traits:
    """What holds of a component: the contract suite checks it, and which combinations can work follows from it."""

    causal: bool = True
    """At a causal site no output depends on a later token, in training too."""
    position_wise: bool = False
    """A token's output depends on that token alone."""
    batch_dependent: bool = False
    """In training a sequence's output depends on the others of its batch."""
    needs_attention: bool = False
    """Acts on queries, keys or logits, so some mixer must have them."""
    attends: bool = False
    """Has queries and keys: a position that acts on them acts here."""
    crosses: bool = False
    """Can read another sequence than its own, as cross-attention does."""
    cached: bool = False
    """Goes on from a :class:`~ablate.slots.Cache`, token by token; else decoding reads the whole text at each step."""
    fused: bool = True
    """Leaves attention with its fused kernel."""
    vmap: bool = True
    """Runs under ``torch.func.vmap``."""
    compiles: bool = True
    """Runs under ``torch.compile`` as one graph."""

    def notes(self) -> Iterator[str]:
        """What a reader of results must know of it."""
        if not self.causal:
            yield "a token sees later ones of its sequence"
        if self.batch_dependent:
            yield "in training a sequence sees the others of its batch"
