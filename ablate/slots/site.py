"""Where a component stands in a model, and the parameters that it brings there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import nn

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
    """Number of tokens that the task knows."""
    position: Position | None = None
    """The model's position component, for mixers that rotate q and k."""

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
    shape: tuple[int, ...]


class ImpossibleError(Exception):
    """Raised by a component's ``build`` where it cannot work; the arm is then excluded, with this reason."""


def mark(module: M, at: Site) -> M:
    """Note on a module where it stands.

    The site keys the initial values of its parameters, and lets probes find what they measure: they look at the sites
    of slot ``block`` (its input is the stream), ``attend`` (its inputs are q, k and v, scaled and rotated; its
    attribute ``causal`` says which keys are valid) and ``hidden`` (its output is the feed-forward's activation).
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
