"""Checks of a component's module as a part of training: gradients, compilation, stacked replicas, twenty steps."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from ablate.model.keys import generator
from ablate.testing.case import SAME, Case, built, difference, outputs
from ablate.testing.findings import told
from ablate.testing.subjects import Subject


def gradients(case: Case) -> str | None:
    """Every parameter has a gradient that is finite and not zero throughout, and that of the inputs is finite."""
    for subject in case.subjects:
        module = built(subject)
        inputs = [each.clone().requires_grad_(each.dtype.is_floating_point) for each in subject.inputs]
        scalar = _weighed(module(*inputs))
        if scalar.requires_grad:
            scalar.backward()
        for name, value in module.named_parameters():
            if wrong := _bad(value.grad):
                return f"{wrong} for `{name.removeprefix('inner.')}` {subject.where}"
        if any(each.grad is not None and not each.grad.isfinite().all() for each in inputs):
            return f"a gradient that is not finite for its input {subject.where}"
    return None


def _weighed(found: tuple[Tensor, ...]) -> Tensor:
    """A scalar in which every output counts, each by another weight."""
    weights = [torch.randn(each.shape, generator=generator("testing", "weights", i)) for i, each in enumerate(found)]
    return torch.stack([(each * weight).sum() for each, weight in zip(found, weights, strict=True)]).sum()


def _bad(gradient: Tensor | None) -> str | None:
    if gradient is None:
        return "no gradient"
    if not gradient.isfinite().all():
        return "a gradient that is not finite"
    return None if gradient.any() else "a gradient of zero"


def compiles(case: Case) -> str | None:
    """torch.compile makes one graph of it in training; or it does not, if so declared."""
    wrong = next((each for subject in case.subjects if (each := _compiled(subject))), None)
    if case.traits.compiles:
        return wrong
    return None if wrong else "one graph"


def _compiled(subject: Subject) -> str | None:
    module = built(subject)
    torch._dynamo.reset()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            found = torch.compile(module, fullgraph=True, backend="eager")(*subject.inputs)
    except Exception as error:  # whatever the compiler or the module raises
        return f"{told(error)} {subject.where}"
    moved = difference(outputs(built(subject), subject.inputs), found)
    return f"outputs that differ by {moved:.2g} {subject.where}" if moved > SAME else None


def runs_under_vmap(case: Case) -> str | None:
    """Stacked parameters under torch.func.vmap give what each gives alone; or not, if so declared."""
    wrong = next((each for subject in case.subjects if (each := _mapped(subject))), None)
    if case.traits.vmap:
        return wrong
    return None if wrong else "what each gives alone"


def _mapped(subject: Subject) -> str | None:
    modules = [built(subject), built(subject, seed=1)]
    parameters, buffers = stack_module_state(modules)
    if not parameters and not buffers:
        return None
    wanted = tuple(torch.stack(pair) for pair in zip(*(outputs(each, subject.inputs) for each in modules), strict=True))
    frame = built(subject)

    def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = functional_call(frame, (parameters, buffers), subject.inputs)
        return found

    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            found = vmap(one)(parameters, buffers)
    except Exception as error:
        return f"{told(error)} {subject.where}"
    moved = difference(wanted, found)
    return f"outputs that differ by {moved:.2g} {subject.where}" if moved > SAME else None


def learns(case: Case) -> str | None:
    """Twenty steps of Adam lower the loss of a small regression."""
    for subject in case.subjects:
        losses = _trained(subject)
        if not losses[-1] < losses[0]:
            return f"a loss that went from {losses[0]:.4g} to {losses[-1]:.4g} {subject.where}"
    return None


def _trained(subject: Subject) -> list[float]:
    module = built(subject)
    net = _Regression(module, subject) if subject.inputs[0].dtype.is_floating_point else module
    wanted = [torch.randn(shape, generator=generator("testing", "wanted")) for shape in subject.shapes]
    labels = [each.argmax(-1) for each in wanted]
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    for _ in range(21):
        found = net(*subject.inputs)
        if isinstance(net, _Regression):
            loss = torch.stack([(a - b).square().mean() for a, b in zip(found, wanted, strict=True)]).sum()
        else:
            loss = nn.functional.cross_entropy(found[0].flatten(0, -2), labels[0].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


class _Regression(nn.Module):
    """A component's module between linear maps."""

    def __init__(self, module: nn.Module, subject: Subject) -> None:
        super().__init__()
        self.module = module
        self.before = nn.ModuleList(_linear(each.shape[-1]) for each in subject.inputs)
        self.after = nn.ModuleList(_linear(shape[-1]) for shape in subject.shapes)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        before = (
            linear(each) if each.dtype.is_floating_point else each
            for linear, each in zip(self.before, inputs, strict=True)
        )
        return tuple(linear(each) for linear, each in zip(self.after, self.module(*before), strict=True))


def _linear(width: int) -> nn.Linear:
    linear: nn.Linear = nn.utils.skip_init(nn.Linear, width, width)
    with torch.no_grad():
        linear.weight.normal_(0, width**-0.5, generator=generator("testing", "linear", width))
        linear.bias.zero_()
    return linear
