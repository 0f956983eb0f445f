"""Every combination of the components that a block is made of, and what must hold of each.

Kinds, and the options that hold a scale, are found in the registry and in the components' fields: a component that is
added is combined with all others without an edit here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from ablate.model.example import FixedValues, example
from ablate.model.keys import generator
from ablate.model.objective import TrainingLoss
from ablate.model.parameters import build, root_site
from ablate.registry import Registry
from ablate.slots import Component, ImpossibleError, Interface, Model, Placement, Scale, Site, is_neutral, named
from ablate_plugins.loss import CrossEntropy

REGISTRY = Registry.installed()
VARIED = ("mixer", "position", "feed_forward", "placement", "norm", "residual", "scale")
"""The slots whose components are combined; a scale stands in a mixer."""
SIZES: Mapping[str, Any] = {"heads": 2, "ratio": 1.0, "experts": 2}
"""What a component's options of these names are, so that it is small; with two experts every token goes to both."""
INTERFACE = Interface(context=6, vocabulary=11)
SEQUENCES = 2
PRESENT = 2
"""The last place that stays as it is where the future is changed."""
STILL = 1e-6
"""What moves by no more than this does not move."""

Combination = dict[str, str]
"""A kind for each slot; no scale where the mixer has none."""

_BATCH = example(INTERFACE, SEQUENCES, generator("combinations", "tokens"))
_LATER = torch.arange(INTERFACE.context) > PRESENT
_CHANGED = torch.where(_LATER, (_BATCH.inputs[0] + 1) % INTERFACE.vocabulary, _BATCH.inputs[0])


def combinations(**fixed: str) -> Iterator[Combination]:
    """All of them that have these kinds in their slots, in a fixed order."""
    for kinds in itertools.product(*([fixed[slot]] if slot in fixed else REGISTRY.kinds(slot) for slot in VARIED[:-1])):
        chosen = dict(zip(VARIED, kinds, strict=False))
        if _scale_option(chosen["mixer"]) is None:
            yield chosen
        else:
            yield from (chosen | {"scale": kind} for kind in REGISTRY.kinds("scale"))


def model_of(chosen: Combination, depth: int) -> Model:
    """The small decoder that is made of these, each with the options that it has unless told otherwise."""
    parts = {slot: _small(slot, kind) for slot, kind in chosen.items() if slot != "scale"}
    if (option := _scale_option(chosen["mixer"])) is not None:
        parts["mixer"][option] = _small("scale", chosen["scale"])
    options = {"kind": "decoder", "width": 8, "depth": depth, **parts}
    model = REGISTRY.get("model", "decoder").model_validate(options, context={"registry": REGISTRY})
    assert isinstance(model, Model)
    return model


def forbidden(chosen: Combination) -> str | None:
    """Why a combination cannot work, from what its components declare; None where it can."""
    mixer, position = (_declared(slot, chosen[slot]) for slot in ("mixer", "position"))
    if position.traits().needs_attention and not mixer.traits().attends and not is_neutral(mixer):
        return f"{named(position)} acts on queries and keys, and {named(mixer)} has none for it"
    return None


def faults(chosen: Iterable[Combination], depth: int | None = None) -> list[str]:
    """What is wrong with each of these combinations, one line a fault; none where all is as declared.

    Combinations of one identity are judged once: of the others it is checked that they compute the same. The models
    have so many blocks, or the fewest that will do.
    """
    known: dict[Model, Tensor] = {}
    found = []
    for each in chosen:
        model = model_of(each, depth or _fewest_blocks(each["placement"]))
        expected, wrong = forbidden(each), list[str]()
        try:
            network = network_of(model)
        except ImpossibleError as error:
            if str(error) != expected:
                wrong = [f"refused because {error}, which no component declares"]
        else:
            identity = model.effective()
            if expected is not None:
                wrong = [f"built, although {expected}"]
            elif identity not in known:
                known[identity], wrong = judged(model, network)
            elif not torch.equal(network(*_BATCH.inputs), known[identity]):
                wrong = ["computes otherwise than another of the same identity"]
        found += [f"{' '.join(each.values())}: {what}" for what in wrong]
    return found


@torch.no_grad()
def network_of(model: Model) -> nn.Module:
    """The model with values at which no gate is shut: vectors are moved from the constants that they start at."""
    network = build(model, root_site(INTERFACE), stream=("combinations",), initializer=FixedValues())
    moves = generator("combinations", "vectors")
    for value in network.parameters():
        if value.dim() < 2:
            value.add_(torch.empty(value.shape).normal_(0.0, 0.1, generator=moves))
    return network.train()


def judged(model: Model, network: nn.Module) -> tuple[Tensor, list[str]]:
    """The logits in training, and what is wrong with them, with their gradients, and with what they see."""
    logits, loss = TrainingLoss(network, CrossEntropy())(_BATCH)
    loss.backward()
    wrong = [] if bool(logits.isfinite().all()) else ["logits are not finite"]
    wrong += _without_a_gradient(network)
    causal, looks_ahead = model.traits().causal, _sees_later(network, logits)
    if looks_ahead and causal:
        wrong.append("in training a token sees later ones, and nothing declares it")
    if not looks_ahead and not causal:
        wrong.append("in training no token sees later ones, and a component declares that it does")
    if not causal and _sees_later(network.eval()):
        wrong.append("in evaluation a token sees later ones")
    return logits.detach(), wrong


def _without_a_gradient(network: nn.Module) -> Iterator[str]:
    for name, value in network.named_parameters():
        if value.grad is None or not bool(value.grad.any()):
            yield f"`{name}` has no gradient"
        elif not bool(value.grad.isfinite().all()):
            yield f"the gradient of `{name}` is not finite"


def _sees_later(network: nn.Module, logits: Tensor | None = None) -> bool:
    """Whether what comes later moves the logits up to the present."""
    before = network(*_BATCH.inputs) if logits is None else logits
    after = network(_CHANGED)  # with gradients, as before: without them some kernels round otherwise
    return bool((after - before)[:, : PRESENT + 1].detach().abs().max() > STILL)


@cache
def _fewest_blocks(placement: str) -> int:
    """In which a placement shows all that it does: one where all blocks are alike, else two."""
    component = _declared("placement", placement)
    assert isinstance(component, Placement)
    sites = [Site("block", "block", width=8, depth=2, context=INTERFACE.context, layer=layer) for layer in range(2)]
    return len({component.wiring(site) for site in sites})


@cache
def _scale_option(mixer: str) -> str | None:
    """The name of a mixer's option that holds a scale, or None."""
    fields = REGISTRY.get("mixer", mixer).model_fields
    return next((name for name, field in fields.items() if field.annotation is Scale), None)


@cache
def _declared(slot: str, kind: str) -> Component:
    return REGISTRY.get(slot, kind).model_validate(_small(slot, kind), context={"registry": REGISTRY})


def _small(slot: str, kind: str) -> dict[str, Any]:
    fields = REGISTRY.get(slot, kind).model_fields
    return {"kind": kind} | {name: value for name, value in SIZES.items() if name in fields}
