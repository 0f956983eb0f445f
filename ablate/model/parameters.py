"""Parameters by their logical names, and their initial values, each drawn from a stream of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import nn

from ablate.model.keys import generator
from ablate.slots import Initializer, Interface, Model, Parameter, Site


def named_parameters(model: nn.Module) -> Iterator[tuple[Parameter, nn.Parameter]]:
    """Every parameter once, with its logical name: the path of the nearest site above it and its name below that.

    A tied matrix appears once, under the name of the module that was built first.
    """
    sites = _sites(model)
    for attribute, value in model.named_parameters():
        site, inner = _placed(attribute, sites)
        path = f"{site.path}.{inner}" if site and site.path else inner
        role = inner.rpartition(".")[0].rpartition(".")[2] or (site.slot if site else inner)
        yield Parameter(path, role, site.block if site else None, tuple(value.shape), site), value


def named_modules(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Every module once, with its logical name, as :func:`named_parameters` has them; the model's own is ""."""
    sites = _sites(model)
    for attribute, module in model.named_modules():
        site, inner = _placed(attribute, sites)
        yield ".".join(part for part in (site.path if site else "", inner) if part), module


def _sites(model: nn.Module) -> dict[str, Site]:
    """The marked modules' sites by attribute path."""
    return {name: site for name, module in model.named_modules() if (site := getattr(module, "site", None)) is not None}


def _placed(attribute: str, sites: Mapping[str, Site]) -> tuple[Site | None, str]:
    """The nearest site at or above an attribute path, and the rest of the path below it."""
    owner = attribute
    while owner and owner not in sites:
        owner = owner.rpartition(".")[0]
    return sites.get(owner), attribute[len(owner) + 1 :] if owner else attribute


@torch.no_grad()
def initialise(model: nn.Module, initializer: Initializer, stream: tuple[int | str, ...]) -> None:
    """Give every parameter its initial value.

    Two or more axes: drawn by the initialiser on the CPU, from a stream keyed by the logical name. What is called
    ``bias`` or begins so: zero. Any other: the constant that its component gave it.
    """
    for parameter, value in named_parameters(model):
        if value.dim() >= 2:
            drawn = torch.empty(value.shape)
            initializer.fill(drawn, parameter, generator(*stream, "init", parameter.name))
            value.copy_(drawn)
        elif parameter.name.rpartition(".")[2].startswith("bias"):
            value.zero_()


def build(model: Model, at: Site, *, stream: tuple[int | str, ...], initializer: Initializer) -> nn.Module:
    """Build a model on the CPU with its initial values; the global generator is neither read nor moved."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # a component that draws in its constructor gets the same values in every process
        network = model.build(at)
    initialise(network, initializer, stream)
    return network


def build_shape(model: Model, at: Site) -> nn.Module:
    """Build a model on the meta device: its shapes without its memory."""
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        return model.build(at)


def root_site(interface: Interface) -> Site:
    """The site of a whole model, from what its task gives and wants."""
    return Site(
        path="",
        slot="model",
        width=0,
        depth=0,
        context=interface.context,
        vocabulary=interface.vocabulary,
        interface=interface,
    )
