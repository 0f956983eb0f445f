"""The LightningModule of a trial: one step at a time, with probes, evaluations and the divergence rule."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from ablate.experiment.settings import Diverged, Training
from ablate.model.dropout import set_dropout
from ablate.model.keys import seed_of
from ablate.model.objective import TrainingLoss
from ablate.model.parameters import named_parameters
from ablate.probing import Tap, probed_steps
from ablate.slots import Batch, Probe, Task
from ablate.training.history import Divergence, DivergenceRule, History

FLUSH = 20
"""Steps between two looks at the losses, so that a device is not waited for in every step."""


class TrialModule(pl.LightningModule):
    """Trains a network from the step that its history has reached."""

    def __init__(
        self,
        network: nn.Module,
        *,
        task: Task,
        training: Training,
        diverged: Diverged,
        steps: int,
        evaluation: Sequence[Batch],
        evaluate_at: frozenset[int],
        probes: Sequence[Probe],
        probe_every: int,
        stream: tuple[int | str, ...],
    ) -> None:
        super().__init__()
        self.network = network
        self.task = task
        self.training_options = training
        self.steps = steps
        self.evaluation = evaluation
        self.evaluate_at = evaluate_at
        self.stream = stream
        self.history = History()
        self.divergence: Divergence | None = None
        self.between_steps: Callable[[], None] = lambda: None
        self.done = 0
        self._minimised = TrainingLoss(network, training.loss)
        self._parameters_named = list(named_parameters(network))
        self._rule = DivergenceRule(diverged)
        self._tap = Tap(network, self._parameters_named, probes)
        self._probed = probed_steps(probe_every, steps) if probes else frozenset()
        self._pending: list[Tensor] = []
        self._resumed_optimizer: dict[str, Any] | None = None
        self._started = 0.0
        self._on_sigterm = signal.getsignal(signal.SIGTERM)

    # --- one step ---

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of one batch; the step counts from the trial's start, not from the attempt's."""
        set_dropout(self.network, self.stream, self.done)
        self.key_global_generator()
        rate = self.training_options.optimizer.lr * self.training_options.schedule.factor(self.done, self.steps)
        for group in self._optimizer.param_groups:
            group["lr"] = rate * group.get("lr_scale", 1.0)
        self.history.rates.append(rate)
        if self.done in self._probed:
            self._tap.open()
        _, loss = self._minimised(batch)
        self._pending.append(loss.detach())
        return loss

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Note the global norm, then clip; Lightning calls this once gradients are unscaled."""
        if self.done in self._probed:
            self._tap.gradients()
        limit = self.training_options.clip
        values = [value for _, value in self._parameters_named]
        norm = nn.utils.clip_grad_norm_(values, float("inf") if limit is None else limit)
        self._pending.append(norm.detach())

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        """Count the step, and do what is due after it."""
        if self.done in self._probed:
            self.history.readings += [(self.done, reading, value) for reading, value in self._tap.close()]
        self.done += 1
        if self.done % FLUSH == 0 or self.done in self.evaluate_at or self.done == self.steps:
            self.flush()
        if self.divergence is None and self.done in self.evaluate_at:
            began = time.perf_counter()
            self.history.evaluations.append((self.done, dict(self.evaluate())))
            self.history.evaluating += time.perf_counter() - began
        self.between_steps()
        if self.divergence is not None:
            self.trainer.should_stop = True

    def flush(self) -> None:
        """Bring the losses and norms of the last steps over from the device, and look whether they diverged."""
        if self._pending:
            values = torch.stack([value.float() for value in self._pending]).tolist()
            self.history.losses += values[0::2]
            self.history.norms += values[1::2]
            self._pending = []
            self.divergence = self.divergence or self._rule.check(self.history.losses)

    @torch.no_grad()
    def evaluate(self) -> dict[str, float]:
        """The task's metrics on the fixed evaluation set."""
        self.network.eval()
        self.key_global_generator()
        totals: dict[str, Tensor] = {}
        for batch in self.evaluation:
            here = Batch(tuple(each.to(self.device) for each in batch.inputs), batch.targets.to(self.device))
            with self.trainer.precision_plugin.forward_context():
                found = self.task.tally(self.network, here)
            for name, value in found.items():
                more = value.to(self._sums_on, torch.float64)
                totals[name] = totals[name] + more if name in totals else more
        self.network.train()
        told = self.task.metrics({name: float(total) for name, total in totals.items()})
        return {name: float(value) for name, value in told.items()}

    def key_global_generator(self) -> None:
        """Key torch's own generator by the step: a component that draws from it still repeats itself."""
        torch.manual_seed(seed_of(*self.stream, "global", self.done))

    @property
    def _sums_on(self) -> torch.device:
        """Where sums in float64 are made: MPS has no float64."""
        return torch.device("cpu") if self.device.type == "mps" else self.device

    # --- the optimizer, and going on ---

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The optimizer, as it was at the checkpoint if there was one."""
        self._optimizer = self.training_options.optimizer.build(self._parameters_named)
        if self._resumed_optimizer is not None:
            self._optimizer.load_state_dict(self._resumed_optimizer)
            self._resumed_optimizer = None
        return self._optimizer

    def on_train_start(self) -> None:
        """Start the clock, and put the process's own handler of SIGTERM back in the place of Lightning's."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._on_sigterm)
        self._started = time.perf_counter() - self.history.seconds

    def on_train_end(self) -> None:
        """Stop the clock."""
        self.stop_clock()

    def stop_clock(self) -> None:
        """Note how long training has taken until now."""
        self.history.seconds = self.seconds

    @property
    def seconds(self) -> float:
        """How long training has taken until now, over all attempts."""
        return time.perf_counter() - self._started

    def state(self) -> dict[str, Any]:
        """All that is needed to go on after the step that was just done.

        The schedule and every random stream are functions of the step, so the step stands for them.
        """
        self.flush()
        self.stop_clock()
        return {
            "done": self.done,
            "network": self.network.state_dict(),
            "buffers": dict(self.network.named_buffers()),  # those too that a state_dict leaves out
            "optimizer": self._optimizer.state_dict(),
            "history": self.history.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state`."""
        self.done = state["done"]
        self.network.load_state_dict(state["network"])
        for name, buffer in self.network.named_buffers():
            buffer.copy_(state["buffers"][name])
        self._resumed_optimizer = state["optimizer"]
        self.history = History.restore(state["history"])
        self.divergence = self._rule.check(self.history.losses)
