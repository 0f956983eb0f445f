"""What passes between a task and a model, and between a skeleton and its mixers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import torch
    from torch import Tensor

IGNORED = -100
"""A target that nothing is predicted for, as padding."""

Form = Literal["language_modelling", "classification", "sequence_to_sequence"]
"""What a task asks of a model; its inputs, in order, and its logits.

``language_modelling``: tokens (B, T); logits (B, T, V), the next token at every place.
``classification``: tokens (B, T), valid (B, T); logits (B, C), one label a sequence. Where the interface has
``features``, a token is no number but so many values: (B, T, F), of a floating type.
``sequence_to_sequence``: source (B, S), valid (B, S) and the target's tokens so far (B, T); logits (B, T, V).

``valid`` is True where a sequence has a token and False where it is padded, which is at its end.
"""


@dataclass(frozen=True)
class Interface:
    """What a task gives to a model and wants of it."""

    context: int
    """Largest number of tokens."""
    vocabulary: int
    """Number of tokens."""
    form: Form = "language_modelling"
    classes: int = 0
    """Number of labels, where a sequence is classified."""
    source_context: int = 0
    """Largest number of the source's tokens, where there is a source."""
    source_vocabulary: int = 0
    """Number of tokens of the source."""
    features: int = 0
    """Number of values that a token is, F, where tokens are values and not numbers of a vocabulary; else 0."""

    trained: int = 0
    """Largest number of tokens in training, where the evaluation has longer ones; 0 where it has not."""
    trained_source: int = 0
    """The same of the source's tokens."""

    def __post_init__(self) -> None:
        """Say in one way that no evaluation is longer."""
        for trained, context in (("trained", self.context), ("trained_source", self.source_context)):
            if getattr(self, trained) == context:
                object.__setattr__(self, trained, 0)

    @property
    def length(self) -> int:
        """Largest number of tokens in training."""
        return self.trained or self.context

    @property
    def source_length(self) -> int:
        """Largest number of the source's tokens in training."""
        return self.trained_source or self.source_context

    @property
    def tokens(self) -> int:
        """The tokens that one sample has at most in training, its source's among them."""
        return self.length + self.source_length

    @property
    def outputs(self) -> int:
        """Size of the logits' last axis."""
        return self.classes or self.vocabulary


class Batch(NamedTuple):
    """Some samples of a task."""

    inputs: tuple[Tensor, ...]
    """What a model is called with, as the task's form says."""
    targets: Tensor
    """(B, T) or (B,): what the logits should say, or ``IGNORED``."""

    def to(self, device: torch.device) -> Batch:
        """The same on a device; a GPU is not waited for."""
        moved = (each.to(device, non_blocking=device.type == "cuda") for each in (*self.inputs, self.targets))
        *inputs, targets = moved
        return Batch(tuple(inputs), targets)


class Cache:
    """What a model keeps of the tokens that it has read, so that the next one costs no more than itself."""

    def __init__(self) -> None:
        self.length = 0
        """Tokens read."""
        self.states: dict[str, tuple[Tensor, ...]] = {}
        """What each module keeps, by its path; the batch is the first axis."""

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order."""
        self.states = {
            path: tuple(state.index_select(0, rows) for state in states) for path, states in self.states.items()
        }


@dataclass(frozen=True)
class Given:
    """What a mixer is given beside the stream."""

    valid: Tensor | None = None
    """(B, T): True where the stream has a token and not padding; None where all are tokens."""
    memory: Tensor | None = None
    """(B, S, D): the other sequence, at a site that is `cross`."""
    memory_valid: Tensor | None = None
    """(B, S): True where the memory has a token."""
    cache: Cache | None = None
    """What was read before; the stream then begins at ``cache.length``, and what it adds is left in ``states``."""

    @property
    def start(self) -> int:
        """The position of the stream's first token."""
        return self.cache.length if self.cache is not None else 0
