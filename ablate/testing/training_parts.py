"""Checks of what trains a model: optimizers, initialisers, schedules and losses."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ablate.model.keys import generator
from ablate.slots import IGNORED, Initializer, Loss, Optimizer, Parameter, Placement, Schedule, Site, Wiring
from ablate.testing.case import Case
from ablate.testing.modules import global_generators_kept

# --- optimizers: on a regression with two matrices, a vector and a single number ---

_SITE = Site(path="block.0.feed_forward", slot="feed_forward", width=6, depth=2, context=8, layer=0)


class _Problem:
    """Parameters with their names, and the loss that they have."""

    def __init__(self, only: Callable[[Parameter], bool] = lambda _: True) -> None:
        shapes = {"w1": (8, 6), "w2": (1, 8), "bias": (8,), "gain": ()}
        self.values = {
            name: nn.Parameter(0.5 * torch.randn(shape, generator=generator("testing", name)))
            for name, shape in shapes.items()
        }
        named = [
            (Parameter(f"block.0.feed_forward.{name}", name, 0, shape, _SITE), self.values[name])
            for name, shape in shapes.items()
        ]
        self.named = [(parameter, value) for parameter, value in named if only(parameter)]

    def loss(self) -> Tensor:
        x = torch.randn(32, 6, generator=generator("testing", "x"))
        wanted = x.sum(-1, keepdim=True).sin()
        hidden = torch.tanh(x @ self.values["w1"].T + self.values["bias"])
        return ((hidden @ self.values["w2"].T) * self.values["gain"] - wanted).square().mean()

    def step(self, optimizer: torch.optim.Optimizer) -> float:
        optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    def state(self) -> list[Tensor]:
        return [value.detach().clone() for value in self.values.values()]


def lowers(case: Case) -> str | None:
    """Twenty steps at the peak rate lower the loss."""
    problem = _Problem()
    optimizer = _optimizer(case).build(problem.named)
    losses = [problem.step(optimizer) for _ in range(21)]
    return None if losses[-1] < losses[0] else f"a loss that went from {losses[0]:.4g} to {losses[-1]:.4g}"


def takes_any_parameters(case: Case) -> str | None:
    """Matrices alone and vectors alone are optimised too."""
    for what, only in (("matrices", lambda p: len(p.shape) > 1), ("vectors", lambda p: len(p.shape) < 2)):
        problem = _Problem(only)
        before = problem.state()
        problem.step(_optimizer(case).build(problem.named))
        moved = [not torch.equal(one, two) for one, two in zip(before, problem.state(), strict=True)]
        if sum(moved) != len(problem.named):
            return f"{len(problem.named) - sum(moved)} that did not move of {what} alone"
    return None


def follows_rate(case: Case) -> str | None:
    """Every group's `lr` is its rate: at 0 nothing moves, and each parameter is in a group."""
    problem = _Problem()
    optimizer = _optimizer(case).build(problem.named)
    held = [value for group in optimizer.param_groups for value in group["params"]]
    if len(held) != len(problem.named) or {id(value) for value in held} != {id(value) for _, value in problem.named}:
        return f"{len(held)} parameters in its groups, of {len(problem.named)}"
    problem.step(optimizer)
    for group in optimizer.param_groups:
        group["lr"] = torch.zeros_like(group["lr"]) if isinstance(group["lr"], Tensor) else 0.0
    before = problem.state()
    problem.step(optimizer)
    still = all(torch.equal(one, two) for one, two in zip(before, problem.state(), strict=True))
    return None if still else "parameters that move at a rate of 0"


def resumes(case: Case) -> str | None:
    """From its state_dict an optimizer goes on as if nothing had been."""
    one, two = _Problem(), _Problem()
    first = _optimizer(case).build(one.named)
    for _ in range(3):
        one.step(first)
    with torch.no_grad():
        for value, other in zip(one.values.values(), two.values.values(), strict=True):
            other.copy_(value)
    second = _optimizer(case).build(two.named)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for _ in range(3):
        one.step(first), two.step(second)
    same = all(torch.equal(a, b) for a, b in zip(one.state(), two.state(), strict=True))
    return None if same else "other parameters three steps later"


def _optimizer(case: Case) -> Optimizer:
    assert isinstance(case.component, Optimizer)
    return case.component


# --- initialisers ---

_MATRICES = {"q": (8, 8), "o": (8, 12), "w1": (16, 8), "w2": (8, 16), "embed": (11, 8), "kernel": (8, 8, 3)}


def fills(case: Case) -> str | None:
    """Each value is set to a finite number, of the tensor that is given, whatever was in it."""
    for role, shape in _MATRICES.items():
        one, two = _filled(case, role, shape), _filled(case, role, shape, fill=1.0)
        if not one.isfinite().all():
            return f"values that are not finite, or were not filled, in {shape} of role {role}"
        if not torch.equal(one, two):
            return f"values that depend on what was in the tensor, in {shape} of role {role}"
    constant = all(len(_filled(case, role, shape).unique()) < 2 for role, shape in _MATRICES.items())
    return "one value throughout each matrix" if constant else None


def draws_from_its_generator(case: Case) -> str | None:
    """The generator alone decides: the same gives the same, another gives others, and no global one is moved."""
    moved: list[str] = []
    for role, shape in _MATRICES.items():
        with global_generators_kept(moved):
            one, two, other = (_filled(case, role, shape, seed=seed) for seed in (0, 0, 1))
        if moved:
            return f"a draw from the global generator of {' and '.join(moved)}"
        if not torch.equal(one, two):
            return f"other values from the same generator, in {shape} of role {role}"
        if torch.equal(one, other) and len(one.unique()) > 1:  # a role may be given zeros
            return f"the same values from another generator, in {shape} of role {role}"
    return None


def _filled(case: Case, role: str, shape: tuple[int, ...], *, fill: float = math.nan, seed: int = 0) -> Tensor:
    assert isinstance(case.component, Initializer)
    at = Site(path="embed" if role == "embed" else "block.0.mixer", slot="mixer", width=8, depth=2, context=8, layer=0)
    tensor = torch.full(shape, fill)
    parameter = Parameter(f"{at.path}.{role}.weight", role, None if role == "embed" else 0, shape, at)
    case.component.fill(tensor, parameter, generator("testing", "fill", seed))
    return tensor


# --- schedules and placements: pure functions ---


def scheduled(case: Case) -> str | None:
    """The factor is a finite number from 0 to 1 at every step, over 0 at some, and the same whenever it is asked."""
    assert isinstance(case.component, Schedule)
    for steps in (1, 2, 3, 10, 100, 1000, 10000):
        asked = range(0, steps, max(1, steps // 200))
        factors = {step: case.component.factor(step, steps) for step in (*asked, steps - 1)}
        for step, factor in factors.items():
            if type(factor) not in (int, float) or not 0 <= factor <= 1 + 1e-9:
                return f"{factor!r} at step {step} of {steps}"
        if not any(factors.values()):
            return f"0 at every step of {steps}"
        if factors != {step: case.component.factor(step, steps) for step in reversed(factors)}:
            return f"other factors at a second call, of {steps} steps"
    return None


def wires(case: Case) -> str | None:
    """A Wiring, which the place alone decides."""
    assert isinstance(case.component, Placement)
    for layer in (0, 1, 5):
        for slot in ("mixer", "cross", "feed_forward"):
            site = Site(f"block.{layer}.{slot}", slot, 16, 6, 8, layer)
            found: Any = case.component.wiring(site)
            if not isinstance(found, Wiring) or any(type(each) is not bool for each in found):
                return f"{found!r} at `{site.path}`"
            if found != case.component.wiring(site):
                return f"another wiring at a second call at `{site.path}`"
    return None


# --- losses ---


def measures(case: Case) -> str | None:
    """A finite scalar with a finite gradient, also where logits are large."""
    for size in (1.0, 100.0):
        logits, targets = _predictions(size)
        found = _loss(case)(logits, targets)
        if found.shape != () or not found.isfinite():
            return (
                f"the shape {tuple(found.shape)}"
                if found.shape != ()
                else f"{float(found)} for logits of size {size:g}"
            )
        found.backward()
        if logits.grad is None or not logits.grad.isfinite().all() or not logits.grad.any():
            return f"no gradient, or one of zero or not finite, for logits of size {size:g}"
    return None


def ignores(case: Case) -> str | None:
    """Targets of IGNORED take no part: the loss is that of the others, and 0 where there are none."""
    logits, targets = _predictions(1.0)
    kept = targets.clone()
    kept[1::3] = IGNORED
    found, alone = _loss(case)(logits, kept), _loss(case)(logits[kept != IGNORED], kept[kept != IGNORED])
    if abs(float(found.detach() - alone.detach())) > 1e-5 * max(1.0, abs(float(alone.detach()))):
        return f"{float(found.detach()):.6g} with ignored targets, and {float(alone.detach()):.6g} without them"
    found.backward()
    if logits.grad is not None and logits.grad[kept == IGNORED].any():
        return "a gradient where a target is ignored"
    logits, _ = _predictions(1.0)
    nothing = _loss(case)(logits, torch.full_like(targets, IGNORED))
    if float(nothing.detach()) != 0:
        return f"{float(nothing.detach()):g} where all targets are ignored"
    if nothing.requires_grad:
        nothing.backward()
        if logits.grad is not None and logits.grad.isnan().any():
            return "a gradient of NaN where all targets are ignored"
    return None


def _predictions(size: float) -> tuple[Tensor, Tensor]:
    logits = size * torch.randn(12, 7, generator=generator("testing", "logits"))
    targets = torch.randint(7, (12,), generator=generator("testing", "targets"))
    return logits.requires_grad_(), targets


def _loss(case: Case) -> Callable[[Tensor, Tensor], Tensor]:
    assert isinstance(case.component, Loss)
    return case.component.measure
