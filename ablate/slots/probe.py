"""The slot of probes, what they are shown and what they read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ablate.slots.component import Component
from ablate.slots.site import Parameter

if TYPE_CHECKING:
    from torch import Tensor


class Reading(NamedTuple):
    """What a probe measured, and where."""

    metric: str
    layer: int | None = None
    role: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Attended:
    """What an attention saw in one step, and what it makes of it."""

    layer: int
    """Index of its block."""
    cross: bool
    """Whether its keys are of another sequence."""
    q: Tensor
    """Queries, scaled and rotated, (B, H, T, K)."""
    k: Tensor
    """Keys, (B, H, S, K)."""
    seen: Tensor | None
    """Which keys each query sees, broadcast to (B, H, T, S); None for all."""
    logits: Callable[[Tensor, Tensor], Tensor]
    """Queries and keys -> logits (B, H, T, S), as attention takes its softmax of them, with biases and caps."""


@dataclass(frozen=True)
class Seen:
    """What the tap saw in one training step; every tensor is detached.

    Gradients are unscaled and not yet clipped. Where memory is too short for the batch, all is still of the whole batch
    but for ``attention``, which is that of the first micro-batch.
    """

    parameters: Sequence[Parameter]
    """Those that are trained; a frozen one has no gradient and does not move."""
    before: Mapping[str, Tensor]
    """Each parameter before the update, by logical name."""
    after: Mapping[str, Tensor]
    """Each parameter after the update."""
    gradients: Mapping[str, Tensor]
    stream: Sequence[Tensor]
    """The input of each block and, last, what left the last one: (B, T, D)."""
    stream_gradients: Sequence[Tensor]
    """The loss's gradient with respect to each of ``stream``."""
    attention: Sequence[Attended] = ()
    """Every attention of the model, in order."""
    hidden: Mapping[int, Tensor] = field(default_factory=dict)
    """What left the feed-forward's activation, by layer: (B, T, F)."""


class Probe(Component):
    """A measurement taken during training; a pure function of tensors that never waits for the device."""

    slot: ClassVar[str] = "probe"
    always: ClassVar[bool] = True
    """Whether it measures unless an experiment says otherwise."""
    units: ClassVar[Mapping[str, str]]
    """The metrics that it reads, each with its unit ("" for a ratio)."""

    @abstractmethod
    def measure(self, seen: Seen) -> Mapping[Reading, Tensor]:
        """Scalars (0-d tensors), each under what it is a reading of."""
