"""Where a component stands in a model, and the parameters that it brings there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import nn

    from ablate.slots.interface import Interface
    from ablate.slots.model import Position

    M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class Site:
    """Where a component stands: its logical path, which keys its randomness, and the sizes around it."""

    path: str
    """Logical path, as ``block.2.mixer``; initial values are keyed by it, so it outlives any refactoring."""
    slot: str
    """Name of the slot; the role of a parameter that has no name of its own in its component."""
    width: int
    """Size of the last axis of what comes in: the stream's width, or a head's for what acts on q and k."""
    depth: int
    """Number of blocks in the stack."""
    context: int
    """Largest number of tokens."""
    layer: int | None = None
    """Index of the block, from 0; None outside of the blocks."""
    vocabulary: int = 0
    """Number of tokens that are read here, or of logits that are given."""
    position: Position | None = None
    """The model's position component, for mixers whose queries and keys it acts on."""
    heads: int = 0
    """Number of heads, for what acts inside of attention."""
    causal: bool = True
    """Whether a token may see only itself and what came before it."""
    cross: bool = False
    """Whether keys and values are of another sequence, `Given.memory`."""
    stack: Literal["encoder", "decoder"] = "decoder"
    """Which stack of blocks this is."""
    other_depth: int | None = None
    """Number of blocks in the other stack, in a model that has two."""
    first: int = 0
    """Number of the model's blocks before this stack."""
    interface: Interface | None = None
    """What the task gives and wants; for whole models."""

    @property
    def block(self) -> int | None:
        """Index of the block among all of the model's; what layers are called by in records and reports."""
        return None if self.layer is None else self.first + self.layer

    def child(self, name: str, slot: str | None = None, **changes: Any) -> Site:
        """The site of a part, one step further down the path."""
        return replace(self, path=f"{self.path}.{name}" if self.path else name, slot=slot or name, **changes)


class Parameter(NamedTuple):
    """What an initialiser or optimizer may know of a parameter."""

    name: str
    """Logical name, as ``block.2.mixer.q.weight``."""
    role: str
    """Its place in its component (q, k, v, o, w1, w2), or else its slot (norm, embed, head)."""
    layer: int | None
    """Index of the block among all of the model's, from 0; None outside of the blocks."""
    shape: tuple[int, ...]
    at: Site | None = None
    """The nearest site above it."""


class ImpossibleError(Exception):
    """Raised by a component's ``build`` where it cannot work; the arm is then excluded, with this reason."""


def mark(module: M, at: Site) -> M:
    """Note on a module where it stands.

    The site keys the initial values of its parameters, and lets probes find what they measure: they look at the sites
    of slot ``block`` (its input is the stream), ``attend`` (an :class:`ablate.model.attention.Attend`) and ``hidden``
    (its output is the feed-forward's activation). What a module of slot ``auxiliary`` gives in training, a scalar, is
    added to the loss.
    """
    module.site = at  # type: ignore[assignment]  # a plain attribute; nn.Module's stub knows only tensors and modules
    return module


def place(component: Buildable, at: Site, *inputs: Any) -> nn.Module:
    """Build a component's module, mark it, and note on it which component made it, as ``module.made_by``.

    A component that holds other components builds them with this too, at ``at.child(...)``.
    """
    module = component.build(at, *inputs)
    if not callable(getattr(module, "named_parameters", None)):
        raise TypeError(f"`build` of {type(component).__name__} gave {type(module).__name__}, and no module")
    module.made_by = component  # type: ignore[assignment]  # a plain attribute, as the site is
    return mark(module, at)


class Buildable(Protocol):
    """A component whose slot builds a module."""

    def build(self, at: Site, *inputs: Any) -> nn.Module:
        """The module that stands at this site."""
        ...
