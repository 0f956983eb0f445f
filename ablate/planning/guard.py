"""The no-op guard: whether two models compute the same thing, found out before anything is trained."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ablate.experiment.settings import Setup
from ablate.model.dropout import dropouts, set_dropout
from ablate.model.example import example
from ablate.model.keys import generator, seed_of
from ablate.model.objective import TrainingLoss
from ablate.model.parameters import named_parameters
from ablate.planning.ledger import parameter_count
from ablate.planning.shape import Shape
from ablate.slots import Batch, Interface, Loss

LARGEST = 100_000_000
"""A model of more parameters than this is not checked: one step of it on the CPU takes too long."""
SEQUENCES = 2
PERTURBATION = 0.1
MOVED = 1e-4
"""A logit that moves by less than this share of the largest one was rounded otherwise."""


class GuardError(Exception):
    """A model whose fingerprint cannot be taken; says why."""


def fingerprint(setup: Setup, interface: Interface) -> str:
    """A hash of what the arm's model computes: two models of equal fingerprints compute the same thing.

    One training step on the CPU, with dropout, on two sequences of the task's context: the hash is of the logits, of
    the gradient of each parameter under its name, and of the logits of an evaluation afterwards, in which running
    statistics show. A parameter without a gradient takes no part, and so may be there or not. Initial values are those
    of one fixed initialiser, and vectors are perturbed, since at an initialisation different models can agree: where a
    gate starts at zero, whatever is behind it has no effect yet.

    Raises:
        GuardError: the model has too many parameters, cannot run on the CPU, or gives what is not finite.
    """
    try:
        parameters = parameter_count(setup, interface)
        if parameters > LARGEST:
            raise GuardError(f"it has {parameters:,} parameters, and at most {LARGEST:,} are checked")
        return _looked_at(Shape(setup.model, interface)).fingerprint
    except GuardError:
        raise
    except (Exception, SystemExit) as error:  # whatever a component's code raises
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        raise GuardError(f"it cannot run on the CPU: {said}") from error


def sees_ahead(setup: Setup, interface: Interface) -> bool:
    """Whether a later token moves what the arm's model says at an earlier place, in training or in evaluation.

    For a model whose :func:`fingerprint` was taken. A model that classifies whole sequences sees all of them anyway.
    """
    return _looked_at(Shape(setup.model, interface)).ahead


class _Look(NamedTuple):
    fingerprint: str
    ahead: bool


@cache
def _looked_at(shape: Shape) -> _Look:
    network = shape.on_cpu().train()
    _perturb(network)
    set_dropout(dropouts(network), ("guard",), 0)
    batch = example(shape.interface, SEQUENCES, generator("guard", "tokens"))
    with _repeatable():
        logits, loss = TrainingLoss(network, _LogLikelihood())(batch)
        loss.backward()
    with _repeatable(), torch.no_grad():
        evaluated = network.eval()(*batch.inputs)
    ahead = shape.interface.form != "classification" and _moves(network, batch, logits.detach(), evaluated)
    computed = {"logits": logits, "evaluated": evaluated} | _gradients(network)
    found = hashlib.sha256()
    for name, tensor in sorted(computed.items()):
        if not bool(tensor.isfinite().all()):
            raise GuardError("its logits or gradients are not finite")
        found.update(name.encode() + b"\0" + _content(tensor))
    return _Look(found.hexdigest()[:16], ahead)


def _moves(network: nn.Module, batch: Batch, trained: Tensor, evaluated: Tensor) -> bool:
    """Whether another last token moves the logits of the places before it."""
    *beside, tokens = batch.inputs
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % trained.shape[-1]
    for training, before in ((True, trained), (False, evaluated)):
        with _repeatable(), torch.set_grad_enabled(training):  # some kernels round otherwise without gradients
            after = network.train(training)(*beside, changed).detach()
        if bool(((after - before)[:, :-1].abs() > MOVED * before.abs().amax()).any()):
            return True
    return False


class _LogLikelihood(Loss):
    """Cross-entropy, whatever the experiment's own loss is: it is the model that is looked at."""

    def measure(self, logits: Tensor, targets: Tensor) -> Tensor:
        """(N, V), (N,) -> a scalar."""
        return cross_entropy(logits, targets)


@torch.no_grad()
def _perturb(network: nn.Module) -> None:
    """Move every parameter that starts at a constant: those of fewer than two axes; all others are drawn."""
    for parameter, value in named_parameters(network):
        if value.dim() < 2:
            drawn = torch.empty(value.shape).normal_(0.0, PERTURBATION, generator=generator("guard", parameter.name))
            value.add_(drawn)


@contextmanager
def _repeatable() -> Iterator[None]:
    """One thread, and a global generator that starts at the same place for every model and is left as it was."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of("guard", "global"))
            yield
    finally:
        torch.set_num_threads(threads)


def _gradients(network: nn.Module) -> dict[str, Tensor]:
    """The gradients that are not zero, by logical name."""
    found = {parameter.name: value.grad for parameter, value in named_parameters(network)}
    return {
        f"gradient of {name}": gradient
        for name, gradient in found.items()
        if gradient is not None and bool(gradient.any())
    }


def _content(tensor: Tensor) -> bytes:
    """Type, shape and bytes of a tensor; minus zero is zero."""
    plain = (tensor.detach() + 0.0).contiguous()
    return f"{plain.dtype}{tuple(plain.shape)}".encode() + plain.flatten().view(torch.uint8).numpy().tobytes()
