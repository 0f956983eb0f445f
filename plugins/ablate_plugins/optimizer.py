"""Optimizers: how gradients become updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import nn

from ablate.slots import Optimizer, Parameter
from ablate_plugins.initializer import LOOKED_UP


def _groups(parameters: Sequence[tuple[Parameter, nn.Parameter]]) -> list[dict[str, Any]]:
    """One group that decays, of two or more axes, and one that does not: gains, biases and other vectors."""
    matrices = [value for parameter, value in parameters if len(parameter.shape) >= 2]
    others = [value for parameter, value in parameters if len(parameter.shape) < 2]
    groups: list[dict[str, Any]] = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


class AdamW(Optimizer):
    """Adam with decoupled weight decay; gains and biases are not decayed.

    Source: Loshchilov and Hutter 2019, Decoupled Weight Decay Regularization.
    """

    kind: Literal["adamw"] = "adamw"
    lr: float = Field(1e-3, gt=0)
    """Peak learning rate."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay of the mean of the gradients."""
    beta2: float = Field(0.98, ge=0, lt=1)
    """Decay of the mean of their squares."""
    eps: float = Field(1e-8, gt=0)
    """Added to the root of the mean square."""
    weight_decay: float = Field(0.01, ge=0)
    """Share of a matrix that decays per step at a learning rate of 1."""

    def build(self, parameters: Sequence[tuple[Parameter, nn.Parameter]]) -> torch.optim.Optimizer:
        """The optimizer, with one group that decays and one that does not."""
        return torch.optim.AdamW(
            _groups(parameters),
            lr=self.lr,
            betas=(self.beta1, self.beta2),
            eps=self.eps,
            weight_decay=self.weight_decay,
            fused=True,
        )


class Adam(Optimizer):
    """Divide the mean of the gradients by the root of their mean square; nothing is decayed.

    The defaults of `beta2` and `eps` are those of Vaswani et al. 2017, §5.3, where Adam's own are 0.999 and 1e-8.
    Source: Kingma and Ba 2015, Adam: A Method for Stochastic Optimization.
    """

    kind: Literal["adam"] = "adam"
    lr: float = Field(1e-3, gt=0)
    """Peak learning rate."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay of the mean of the gradients."""
    beta2: float = Field(0.98, ge=0, lt=1)
    """Decay of the mean of their squares."""
    eps: float = Field(1e-9, gt=0)
    """Added to the root of the mean square."""

    def build(self, parameters: Sequence[tuple[Parameter, nn.Parameter]]) -> torch.optim.Optimizer:
        """The optimizer, with one group."""
        return torch.optim.Adam(
            [value for _, value in parameters], lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps, fused=True
        )


class Sgd(Optimizer):
    """Stochastic gradient descent with momentum.

    Source: Sutskever et al. 2013, On the Importance of Initialization and Momentum in Deep Learning.
    """

    kind: Literal["sgd"] = "sgd"
    lr: float = Field(0.1, gt=0)
    """Peak learning rate."""
    momentum: float = Field(0.9, ge=0, lt=1)
    """Share of the last update's direction that is kept."""
    nesterov: bool = False
    """Whether the gradient is looked for ahead, where the momentum leads."""
    weight_decay: float = Field(0.0, ge=0)
    """Share of a matrix that is added to its gradient; gains and biases are not decayed."""

    @model_validator(mode="after")
    def _momentum_to_look_ahead(self) -> Self:
        if self.nesterov and not self.momentum:
            raise ValueError("`nesterov` needs a `momentum` above 0")
        return self

    def build(self, parameters: Sequence[tuple[Parameter, nn.Parameter]]) -> torch.optim.Optimizer:
        """The optimizer, with one group that decays and one that does not."""
        return torch.optim.SGD(
            _groups(parameters),
            lr=self.lr,
            momentum=self.momentum,
            nesterov=self.nesterov,
            weight_decay=self.weight_decay,
            fused=True,
        )


class _Together(torch.optim.Optimizer):
    """Several optimizers, each for parameters of its own, as one: groups and state are shared with them."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer]) -> None:
        self._parts = parts
        super().__init__([group for part in parts for group in part.param_groups], {})
        self._share()

    def _share(self) -> None:
        first = 0
        for part in self._parts:
            end = first + len(part.param_groups)
            part.param_groups, part.state, first = self.param_groups[first:end], self.state, end

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over groups and state, which are new objects afterwards."""
        super().load_state_dict(state_dict)
        self._share()

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step of each."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for part in self._parts:
            part.step()
        return loss


class Muon(Optimizer):
    """Orthogonalise the momentum of the blocks' matrices; all else goes by AdamW.

    AdamW has embeddings, positions, the output, vectors, and what has three axes or more. Matrices decay with either,
    vectors do not. Source: Jordan et al. 2024, Muon; Liu et al. 2025, Muon is Scalable for LLM Training, §2.2, for an
    update of AdamW's size, by which one learning rate and one weight decay serve both.
    """

    kind: Literal["muon"] = "muon"
    lr: float = Field(1e-3, gt=0)
    """Peak learning rate, of both."""
    momentum: float = Field(0.95, ge=0, lt=1)
    """Decay of the mean of a matrix's gradients."""
    nesterov: bool = True
    """Whether the newest gradient counts once more in the momentum."""
    size: Literal["match_rms_adamw", "original"] = "match_rms_adamw"
    """An update's size: times 0.2√max(rows, columns), about that of AdamW's, or times √max(1, rows/columns), which
    wants a rate some twenty times higher."""
    adamw_scale: float = Field(1.0, gt=0)
    """What AdamW's rate is as a multiple of `lr`; for `original`, whose rate is too high for it."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """AdamW's decay of the mean of the gradients."""
    beta2: float = Field(0.98, ge=0, lt=1)
    """AdamW's decay of the mean of their squares."""
    eps: float = Field(1e-8, gt=0)
    """What AdamW adds to the root of the mean square."""
    weight_decay: float = Field(0.01, ge=0)
    """Share of a matrix that decays per step at a learning rate of 1."""

    def build(self, parameters: Sequence[tuple[Parameter, nn.Parameter]]) -> torch.optim.Optimizer:
        """One optimizer of both; groups of AdamW have `lr_scale`."""
        hidden = [value for parameter, value in parameters if _is_hidden(parameter)]
        others = [(parameter, value) for parameter, value in parameters if not _is_hidden(parameter)]
        parts: list[torch.optim.Optimizer] = []
        if hidden:
            parts.append(
                torch.optim.Muon(
                    hidden,
                    lr=self.lr,
                    weight_decay=self.weight_decay,
                    momentum=self.momentum,
                    nesterov=self.nesterov,
                    adjust_lr_fn=self.size,
                )
            )
        if others:
            parts.append(
                torch.optim.AdamW(
                    [{**group, "lr_scale": self.adamw_scale} for group in _groups(others)],
                    lr=self.lr * self.adamw_scale,
                    betas=(self.beta1, self.beta2),
                    eps=self.eps,
                    weight_decay=self.weight_decay,
                    fused=True,
                )
            )
        return _Together(parts)


def _is_hidden(parameter: Parameter) -> bool:
    """Whether a parameter is a matrix inside of a block, and no looked-up table."""
    return len(parameter.shape) == 2 and parameter.layer is not None and parameter.role not in LOOKED_UP


class _Lion(torch.optim.Optimizer):
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                for value in group["params"]:
                    if value.grad is not None:
                        self._update(value, group)
        return loss

    def _update(self, value: nn.Parameter, group: dict[str, Any]) -> None:
        state = self.state[value]
        if not state:
            state["mean"] = torch.zeros_like(value)
        direction = state["mean"].lerp(value.grad, 1 - group["beta1"]).sign_()
        value.mul_(1 - group["lr"] * group["weight_decay"]).sub_(direction, alpha=group["lr"])
        state["mean"].lerp_(value.grad, 1 - group["beta2"])


class Lion(Optimizer):
    """Step by the learning rate in every coordinate, in the sign of a mean of the gradients.

    Wants a rate three to ten times lower than AdamW's and a weight decay as much higher, hence these defaults; gains
    and biases are not decayed. Source: Chen et al. 2023, Symbolic Discovery of Optimization Algorithms, alg. 2.
    """

    kind: Literal["lion"] = "lion"
    lr: float = Field(1e-4, gt=0)
    """Peak learning rate."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """Weight of the mean against the newest gradient, in the update."""
    beta2: float = Field(0.99, ge=0, lt=1)
    """Decay of the mean of the gradients."""
    weight_decay: float = Field(0.1, ge=0)
    """Share of a matrix that decays per step at a learning rate of 1."""

    def build(self, parameters: Sequence[tuple[Parameter, nn.Parameter]]) -> torch.optim.Optimizer:
        """The optimizer, with one group that decays and one that does not."""
        options = {"lr": self.lr, "beta1": self.beta1, "beta2": self.beta2, "weight_decay": self.weight_decay}
        return _Lion(_groups(parameters), options)


class Adafactor(Optimizer):
    """Adam's division with a mean square kept by row and column alone; steps are in proportion to a parameter's size.

    The learning rate is relative: it and its schedule say which share of its own root mean square (of at least
    `smallest`) a parameter moves by. From step 1/lr² on, 10,000 at the default, the paper's 1/√step is lower and takes
    its place. Source: Shazeer and Stern 2018, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, alg. 4.
    """

    kind: Literal["adafactor"] = "adafactor"
    lr: float = Field(1e-2, gt=0)
    """Peak learning rate, as a share of a parameter's root mean square."""
    smallest: float = Field(1e-3, gt=0)
    """The root mean square that a smaller parameter, as a bias of 0, is taken to have."""
    decay: float = Field(0.8, ge=0)
    """The mean square forgets by step^-decay."""
    clip: float = Field(1.0, ge=1)
    """Largest root mean square of an update before it is multiplied by the rate."""
    weight_decay: float = Field(0.0, ge=0)
    """Share of a matrix that decays per step at a learning rate of 1; gains and biases are not decayed."""

    def build(self, parameters: Sequence[tuple[Parameter, nn.Parameter]]) -> torch.optim.Optimizer:
        """The optimizer, with one group that decays and one that does not."""
        return torch.optim.Adafactor(
            _groups(parameters),
            lr=self.lr,
            beta2_decay=-self.decay,
            eps=(None, self.smallest),
            d=self.clip,
            weight_decay=self.weight_decay,
        )
