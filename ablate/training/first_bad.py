"""Where a diverged trial broke first: its last steps are replayed, and every module of the network watched in them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from ablate.model.parameters import named_modules, named_parameters
from ablate.training.job import Job
from ablate.training.module import TrialModule

OUT_OF_RANGE = 1e4
"""A value over this is out of range, where a loss over its limit has no value that is not finite (the guide line for
attention logits of Wortsman et al. 2023, Small-scale proxies)."""


@dataclass(frozen=True)
class FirstBad:
    """The first bad value of a trial: in which step, in which module (None where it is in none), and what it was.

    All that is known may be that there was no time left to look for it.

    ``what`` is ``output`` (of the module, in forward order), ``gradient`` (the first module that the backward pass
    leaves with gradients that are not finite), ``update`` (finite gradients, but not so the parameters after them),
    ``loss`` (every module's output is fine, the loss or the objective is not), or ``out_of_range`` (an output over
    :data:`OUT_OF_RANGE`, where all values are finite).
    """

    step: int | None
    module: str | None
    what: str


OUT_OF_TIME = FirstBad(None, None, "out_of_time")


def first_bad_step(job: Job, module: TrialModule) -> int:
    """The step whose loss was the first bad one; the number of all steps where only the last evaluation was."""
    bad = module.divergence
    if bad is None:
        return job.steps
    return bad.step if bad.rule == "nonfinite" else bad.step - job.diverged.patience + 1


@dataclass
class _Call:
    """One call of a module, with what shows how gradients came in and went out."""

    name: str
    module: nn.Module
    inputs: list[Tensor]
    outputs: list[Tensor] = field(default_factory=list)


class FirstBadWatch(pl.Callback):
    """Watches the step whose loss was the first bad one, and the step before, whose update can be the cause.

    Each step must be a stretch of its own.

    Values that are NaN or positively infinite are bad; negative infinity is what masks are made of. A module that
    gives one in a step whose loss and gradients are finite has masked it, and is not to blame.
    """

    def __init__(
        self, network: nn.Module, step: int, should_stop: Callable[[], bool], seconds: float = math.inf
    ) -> None:
        """Time runs from now on.

        Args:
            network: what is watched.
            step: that of the loss; the number of all steps stands for the evaluation after the last.
            should_stop: asked after every step.
            seconds: how long the replay may take.
        """
        self._until = time.perf_counter() + seconds
        self.found: FirstBad | None = None
        self.stopped = False
        """Whether the replay was left early, since it was asked to."""
        self.step = step
        self.first = max(0, step - 1)
        """The first step that is watched."""
        self._should_stop = should_stop
        self._output: tuple[str | None, str] | None
        self._gradient: tuple[str | None, str] | None
        self._network = network
        self._names = [(name or "model", module) for name, module in named_modules(network)]
        self._parameters = list(named_parameters(network))
        self._handles: list[RemovableHandle] = []
        self._forget()

    def is_late(self) -> bool:
        """Whether nothing was found while there was time; that is what is found then."""
        if self.found is None and time.perf_counter() >= self._until:
            self.found = OUT_OF_TIME
        return self.found is OUT_OF_TIME

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *args: Any) -> None:
        """Begin to watch, if this is one of the steps."""
        assert isinstance(pl_module, TrialModule)
        if pl_module.done >= self.first and self.found is None:
            self._open()

    def on_before_optimizer_step(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *args: Any) -> None:
        """Look at the gradients while they are neither clipped nor used."""
        if self._handles:
            self._end_pass()

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, *args: Any) -> None:
        """Say what was bad first in the step, if anything was."""
        if self._handles:
            assert isinstance(pl_module, TrialModule)
            self.found = self._judged(pl_module.done - 1, bool(torch.isfinite(outputs["loss"])))
            self._close()
        self.stopped = self.found is None and self._should_stop()  # what is found already is not thrown away
        trainer.should_stop = trainer.should_stop or self.stopped or self.is_late()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Watch the evaluation, where it is all that was bad."""
        assert isinstance(pl_module, TrialModule)
        if self.found is None and pl_module.done == self.step == pl_module.steps:
            self._open()
            metrics = pl_module.evaluate()
            self.found = self._judged(self.step, all(map(math.isfinite, metrics.values())))
            self._close()

    def _judged(self, step: int, finite: bool) -> FirstBad | None:
        if not finite:
            return FirstBad(step, *(self._output or (None, "loss")))
        if self._gradient:
            return FirstBad(step, *(self._output or self._gradient))
        for parameter, value in self._parameters:
            if not _finite(value):
                return FirstBad(step, parameter.name.rpartition(".")[0] or "model", "update")
        return FirstBad(step, self._large, "out_of_range") if step == self.step and self._large else None

    # --- the hooks of one step ---

    def _forget(self) -> None:
        self._output = self._gradient = None
        self._large: str | None = None
        self._running: list[_Call] = []
        self._calls: list[_Call] = []
        """Every call of a module in one pass through the network, in the order in which they began."""

    def _open(self) -> None:
        self._forget()
        for name, module in self._names:
            self._handles.append(module.register_forward_pre_hook(self._begins(name), with_kwargs=True))
            self._handles.append(module.register_forward_hook(self._ends))

    def _close(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._forget()

    def _begins(self, name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if module is self._network:
                self._end_pass()
            # A tensor that several modules take gets a view for each, whose gradient is what that module sends back.
            views: dict[int, Tensor] = {}
            args = tuple(_viewed(value, views) for value in args)
            kwargs = {key: _viewed(value, views) for key, value in kwargs.items()}
            inputs = list(views.values())
            if self._output is None and any(_reaches(value, math.inf) for value in inputs):
                # Between two modules: in the arithmetic of the one that calls both, or in the batch itself.
                self._output = (self._running[-1].name if self._running else None, "output")
            self._calls.append(_Call(name, module, inputs))
            self._running.append(self._calls[-1])
            return args, kwargs

        return hook

    def _ends(self, module: nn.Module, inputs: Any, output: Any) -> None:
        call = self._running.pop()
        call.outputs = [value for value in _tensors(output) if value.is_floating_point()]
        for value in call.outputs:
            if value.requires_grad:
                value.retain_grad()
            if self._output is None and _reaches(value, math.inf):
                self._output = (call.name, "output")
            if self._large is None and _reaches(value, OUT_OF_RANGE):
                self._large = call.name

    def _end_pass(self) -> None:
        """Judge the gradients so far, and let go of the pass: the next micro-batch must fit where this one did.

        A pass that ran out of memory has none, and has left its calls half-way.
        """
        if self._gradient is None and not all(_finite(value.grad) for _, value in self._parameters):
            self._gradient = self._origin_of_gradients()
        self._calls, self._running = [], []

    def _origin_of_gradients(self) -> tuple[str | None, str]:
        """The innermost module that was sent finite gradients and sends others back, or keeps others itself."""
        for call in reversed(self._calls):
            own = (value.grad for value in call.module.parameters(recurse=False))
            sent = (value.grad for value in call.inputs)
            if all(_finite(value.grad) for value in call.outputs) and not all(map(_finite, (*own, *sent))):
                return call.name, "gradient"
        return None, "gradient"


def _viewed(value: Any, views: dict[int, Tensor]) -> Any:
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    if id(value) not in views:
        views[id(value)] = value.view_as(value)
        if value.requires_grad:
            views[id(value)].retain_grad()
    return views[id(value)]


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from (tensor for part in value.values() for tensor in _tensors(part))
    elif isinstance(value, tuple | list):
        yield from (tensor for part in value for tensor in _tensors(part))


def _reaches(value: Tensor, limit: float) -> bool:
    return bool((value.isnan() | (value >= limit)).any())


def _finite(value: Tensor | None) -> bool:
    return value is None or bool(value.isfinite().all())
