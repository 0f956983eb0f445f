"""The modules of a component, wrapped so that all are called alike: tensors in, a tuple of tensors out.

Sizes: batch B = 3, tokens T = 8, memory S = 5, heads H = 4 of width K = 8, vocabulary V = 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ablate.model.example import example
from ablate.model.keys import generator
from ablate.model.parameters import root_site
from ablate.slots import (
    Component,
    FeedForward,
    Form,
    Given,
    ImpossibleError,
    Interface,
    Mixer,
    Model,
    Norm,
    Output,
    Position,
    Residual,
    Scale,
    Site,
    mark,
    place,
)

B, T, S, H, K, V, C = 3, 8, 5, 4, 8, 11, 4
WIDTHS = (16, 24, 64, 128, 512)
"""Widths of the stream; the first at which a component can be built is taken."""


@dataclass(frozen=True)
class Subject:
    """A module of a component at one kind of place."""

    where: str
    """The place in words, as ``at a causal site``."""
    make: Callable[[], nn.Module]
    """Builds the module."""
    inputs: tuple[Tensor, ...]
    shapes: tuple[tuple[int, ...], ...]
    """Of what it gives."""
    axes: tuple[int | None, ...]
    """For each input the axis of the tokens that the outputs stand for; None where it has no such tokens."""
    out_axes: tuple[int | None, ...]
    causal: bool = True
    """Whether no output may depend on a later token."""
    padding: Mapping[int, int] = field(default_factory=dict)
    """Inputs that may be padded, each with the input that says where."""
    memory: int | None = None
    """The input that is another sequence."""

    @property
    def site(self) -> Site:
        """Where the module stands."""
        site: Site = self.make().get_submodule("inner").site  # type: ignore[assignment]
        return site


class Wrapped(nn.Module):
    """A component's module, called with tensors alone."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.start = 0

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The inputs as the slot names them -> a tuple."""
        return (self.inner(*inputs),)


class _Scaled(Wrapped):
    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        q, k = self.inner(*inputs, self.start, None)
        return q, k


class _Positioned(Wrapped):
    def __init__(self, inner: nn.Module, rotation: nn.Module | None, bias: nn.Module | None) -> None:
        super().__init__(inner)
        self.rotation = rotation
        self.bias = bias

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        x, q, k = inputs
        found: list[Tensor] = [self.inner(x, self.start)]
        if self.rotation is not None:
            found += self.rotation(q, k, self.start)
        if self.bias is not None:
            tokens = x.shape[1]
            added: Tensor = self.bias(self.start, tokens, self.start + tokens)
            found.append(added.expand(len(x), -1, -1, -1))
        return tuple(found)


class _Mixed(Wrapped):
    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        x, *valid = inputs
        return (self.inner(x, Given(valid=valid[0] if valid else None)),)


class _Crossing(Wrapped):
    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        x, memory, memory_valid = inputs
        return (self.inner(x, Given(memory=memory, memory_valid=memory_valid)),)


def subjects_of(component: Component) -> tuple[Subject, ...]:
    """A component's modules; none where its slot builds none.

    Raises:
        ImpossibleError: it can stand nowhere.
    """
    maker = _MAKERS.get(component.slot)
    if maker is None:
        return ()
    first: ImpossibleError | None = None
    for width in WIDTHS:
        found = []
        for subject in maker(component, width):
            try:
                subject.make()
            except ImpossibleError as error:
                first = first or error
                continue
            found.append(subject)
        if found:
            return tuple(found)
    if first is not None:
        raise first
    return ()


def _site(slot: str, width: int, **changes: Any) -> Site:
    return Site(path=f"block.0.{slot}", slot=slot, width=width, depth=2, context=T, layer=0, **changes)


def random(*shape: int, name: str = "x") -> Tensor:
    """Standard normal values that are the same at every call."""
    return torch.randn(shape, generator=generator("testing", name))


def valid(tokens: int) -> Tensor:
    """(B, T): the second sequence lacks two tokens, and the third all but one."""
    return torch.arange(tokens) < torch.tensor([tokens, tokens - 2, 1])[:, None]


def _streamed(component: Any, width: int) -> Iterator[Subject]:
    """Norms and feed-forward networks."""
    site = _site(component.slot, width)
    x = random(B, T, width)
    yield Subject("in a block", lambda: Wrapped(place(component, site)), (x,), (x.shape,), (1,), (1,))


def _residual(component: Any, width: int) -> Iterator[Subject]:
    site = _site("residual", width)
    both = random(B, T, width), random(B, T, width, name="update")
    yield Subject("in a block", lambda: Wrapped(place(component, site)), both, (both[0].shape,), (1, 1), (1,))


def _scale(component: Any, width: int) -> Iterator[Subject]:
    site = _site("scale", K, heads=H)
    both = random(B, H, T, K, name="q"), random(B, H, T, K, name="k")
    shapes = both[0].shape, both[1].shape
    yield Subject("in attention", lambda: _Scaled(place(component, site)), both, shapes, (2, 2), (2, 2))


def _position(component: Any, width: int) -> Iterator[Subject]:
    site = _site("position", width, heads=H)
    inputs = random(B, T, width), random(B, H, T, K, name="q"), random(B, H, T, K, name="k")

    def parts() -> tuple[nn.Module | None, nn.Module | None]:
        inside = site.child("mixer", width=K, heads=H, position=component)
        turn, bias = component.rotation(inside.child("rotation")), component.bias(inside.child("bias"))
        return turn and mark(turn, inside.child("rotation")), bias and mark(bias, inside.child("bias"))

    turned, biased = (part is not None for part in parts())
    shapes = [inputs[0].shape, *([inputs[1].shape, inputs[2].shape] if turned else []), *([(B, H, T, T)] * biased)]
    axes = (1, *([2, 2] if turned else []), *([2] * biased))
    make = lambda: _Positioned(place(component, site), *parts())  # noqa: E731  # it is named by the field
    yield Subject("in a model", make, inputs, tuple(tuple(shape) for shape in shapes), (1, 2, 2), axes)


def _mixer(component: Any, width: int) -> Iterator[Subject]:
    causal, both_ways, across = (
        _site("mixer", width, causal=causal, cross=cross)
        for causal, cross in ((True, False), (False, False), (False, True))
    )
    x, memory = random(B, T, width), random(B, S, width, name="memory")
    shapes = (tuple(x.shape),)

    def at(site: Site, wrapper: type[Wrapped] = _Mixed) -> Callable[[], nn.Module]:
        return lambda: wrapper(place(component, site))

    yield Subject("at a causal site", at(causal), (x,), shapes, (1,), (1,))
    padded = (x, valid(T))
    yield Subject("at a causal site with padding", at(causal), padded, shapes, (1, 1), (1,), padding={0: 1})
    yield Subject("at a site that sees both ways", at(both_ways), padded, shapes, (1, 1), (1,), False, {0: 1})
    if component.traits().crosses:
        inputs = (x, memory, valid(S))
        make = at(across, _Crossing)
        yield Subject("at a cross site", make, inputs, shapes, (1, None, None), (1,), False, {1: 2}, memory=1)


def crossing(component: Any, width: int) -> nn.Module:
    """A mixer at a cross site, wrapped to be called with x, memory and where the memory has tokens."""
    return _Crossing(place(component, _site("mixer", width, causal=False, cross=True)))


def _output(component: Any, width: int) -> Iterator[Subject]:
    x = random(B, T, width)
    site = Site(path="head", slot="output", width=width, depth=2, context=T, vocabulary=V)

    def make() -> nn.Module:
        return Wrapped(place(component, site, nn.Embedding(V, width)))

    yield Subject("after the blocks", make, (x,), ((B, T, V),), (1,), (1,))


FORMS: Mapping[Form, Interface] = {
    "language_modelling": Interface(context=T, vocabulary=V),
    "classification": Interface(context=T, vocabulary=V, form="classification", classes=C),
    "sequence_to_sequence": Interface(T, V, "sequence_to_sequence", source_context=T, source_vocabulary=V + 1),
}
"""A small task of each form."""


def _model(component: Any, width: int) -> Iterator[Subject]:
    if width != WIDTHS[0]:  # a model has widths of its own
        return
    for form in sorted(component.forms):
        interface = FORMS[form]

        def make(interface: Interface = interface) -> nn.Module:
            return Wrapped(place(component, root_site(interface)))

        inputs = example(interface, B, generator("testing", "tokens")).inputs
        labelled = form == "classification"
        axes: tuple[int | None, ...] = {1: (1,), 2: (1, 1), 3: (None, None, 1)}[len(inputs)]
        yield Subject(
            f"for {form.replace('_', ' ')}",
            make,
            inputs,
            ((B, C) if labelled else (B, T, V),),
            axes,
            (None if labelled else 1,),
            causal=not labelled,
            padding={} if form == "language_modelling" else {0: 1},
            memory=0 if form == "sequence_to_sequence" else None,
        )


_MAKERS: Mapping[str, Callable[[Any, int], Iterator[Subject]]] = {
    Norm.slot: _streamed,
    FeedForward.slot: _streamed,
    Residual.slot: _residual,
    Scale.slot: _scale,
    Position.slot: _position,
    Mixer.slot: _mixer,
    Output.slot: _output,
    Model.slot: _model,
}
