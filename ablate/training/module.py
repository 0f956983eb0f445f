"""The LightningModule of a trial: one step at a time, with probes, evaluations and the divergence rule."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from ablate.experiment.settings import Diverged, Training
from ablate.model.dropout import dropouts, set_dropout
from ablate.model.keys import seed_of
from ablate.model.objective import TrainingLoss
from ablate.model.parameters import named_parameters
from ablate.probing import Tap, probed_steps
from ablate.slots import Batch, Probe, Task
from ablate.training.evaluating import Evaluation
from ablate.training.history import Divergence, DivergenceRule, History
from ablate.training.out_of_memory import OutOfMemoryError, first_line, ran_out_of_memory
from ablate.training.splitting import MicroBatch, free, micro_batches

log = logging.getLogger(__name__)

FLUSH = 20
"""Steps between two looks at the losses, so that a device is not waited for in every step."""


class TrialModule(pl.LightningModule):
    """Trains a network from the step that its history has reached.

    Where memory is too short for a step, the batch goes through in micro-batches of half as many rows, and of half as
    many again, while the gradient, the update and what is recorded stay those of the whole batch.
    """

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
        whole: str | None = None,
    ) -> None:
        """Nothing is trained yet; ``whole`` says why a batch must stay in one piece, where it must."""
        super().__init__()
        self.automatic_optimization = False  # a step is ours as a whole: around its parts Lightning does much
        self.network = network
        self.training_options = training
        self.steps = steps
        self.evaluation = Evaluation(network, task, evaluation)
        self.evaluate_at = evaluate_at
        self.stream = stream
        self.history = History()
        self.divergence: Divergence | None = None
        self.between_steps: Callable[[], None] = lambda: None
        self.done = 0
        self.micro_batch = training.batch
        """So many rows go through the network at once in training."""
        self._minimised = TrainingLoss(network, training.loss)
        added = self._minimised.adds
        self._whole = whole or (f"`{added}` adds to the loss what it sees in the whole batch" if added else None)
        self._dropouts = dropouts(network)
        self._parameters_named = list(named_parameters(network))
        self._buffers_named = [(each._buffers, name) for each in network.modules() for name in each._buffers]
        self._rule = DivergenceRule(diverged)
        self._tap = Tap(network, self._parameters_named, probes)
        self._probed = probed_steps(probe_every, steps) if probes else frozenset()
        self._pending: list[Tensor] = []
        self._resumed_optimizer: dict[str, Any] | None = None
        self._started: float | None = None
        """When the clock would have begun had all training been in one piece; None while it stands still."""
        self._on_sigterm = signal.getsignal(signal.SIGTERM)

    # --- one step ---

    def training_step(self, stretch: Iterable[Batch], batch_idx: int) -> Tensor | None:
        """Make the steps of a stretch and what is due after each, until training is to end; the last one's loss.

        Lightning's precision is that of the forward passes, and it wraps all of this: it is left, and entered for them.
        """
        loss = None
        with torch.autocast(self.device.type, enabled=False):
            for batch in stretch:
                try:
                    loss = self._step(batch.to(self.device))
                    self._after_step()
                except StopIteration as error:  # which Lightning would take for the end of the data
                    raise RuntimeError("a component raised StopIteration") from error
                if self.trainer.should_stop:
                    break
        return loss

    def _step(self, batch: Batch) -> Tensor:
        """Make one step, from the batch to the update, and give its loss; it counts from the trial's start."""
        rate = self.training_options.optimizer.lr * self.training_options.schedule.factor(self.done, self.steps)
        for group in self._optimizer.param_groups:
            group["lr"] = rate * group.get("lr_scale", 1.0)
        self.history.rates[self.done :] = [rate]  # a step that is repeated counts once
        measured: list[tuple[Tensor, Tensor]] = []
        closure: Callable[[], Any] = partial(self._fitting, batch, measured)
        self._optimizer.step(closure)
        if not measured:
            raise RuntimeError(f"{type(self._optimizer).__name__}.step does not call the closure that it is given")
        loss, norm = measured[0]  # an optimizer may look further in a step, which is one step all the same
        self._pending += [loss, norm]
        return loss

    @torch.enable_grad()  # an optimizer may ask for it where there are none, as Lightning's own closures allow
    def _fitting(self, batch: Batch, measured: list[tuple[Tensor, Tensor]]) -> Tensor:
        """The gradient, clipped, in micro-batches that fit; after an out-of-memory again, with smaller ones.

        The step is a function of the parameters and the buffers, and a pass leaves parameters alone. Where it has
        changed a buffer, the state before the step is no longer there, and the error goes to whoever can restore it.
        """
        while True:
            before = self._written()
            try:
                loss = self._passes(micro_batches(batch, self.micro_batch))
                break
            except Exception as error:
                if not ran_out_of_memory(error):
                    raise
                self.check_it_can_shrink(error)
                if not _unchanged(before, self._written()):
                    raise
            self.shrink()  # not above: there the error's traceback still holds what filled the memory
        for callback in self.trainer.callbacks:  # type: ignore[attr-defined]
            callback.on_before_optimizer_step(self.trainer, self, self._optimizer)
        if self.done in self._probed:
            self._tap.gradients()
        limit = self.training_options.clip
        values = [value for _, value in self._parameters_named]
        norm = nn.utils.clip_grad_norm_(values, float("inf") if limit is None else limit)
        measured.append((loss, norm.detach()))
        return loss

    def _passes(self, parts: Sequence[MicroBatch]) -> Tensor:
        """Forward and backward through all micro-batches: their gradients add up, and so do the losses, to this one."""
        self.key_global_generator()
        for _, value in self._parameters_named:
            value.grad = None
        if self.done in self._probed:
            self._tap.open()
        losses = []
        for part in parts:
            set_dropout(self._dropouts, self.stream, self.done, part.rows)
            with self.trainer.precision_plugin.forward_context():
                _, loss = self._minimised(part.batch)
                loss = loss if part.rows is None else loss * part.share
            loss.backward()
            losses.append(loss.detach())
        return reduce(add, losses)

    def _written(self) -> list[tuple[Tensor, int]]:
        """Every buffer, and how often it was written to."""
        found = [buffers[name] for buffers, name in self._buffers_named if name in buffers]
        return [(buffer, buffer._version) for buffer in found if buffer is not None]

    def check_it_can_shrink(self, error: BaseException) -> None:
        """Make sure that a step can do with less memory than it had when this error came.

        Raises:
            OutOfMemoryError: it cannot; says why.
        """
        if isinstance(error, OutOfMemoryError):
            raise error
        batch, said = self.training_options.batch, first_line(error)
        if self._whole is not None:
            raise OutOfMemoryError(f"the batch of {batch} is not split, since {self._whole}: {said}") from error
        if self.micro_batch == 1:
            raise OutOfMemoryError(f"even with a micro-batch of 1: {said}") from error

    def shrink(self) -> None:
        """Halve the micro-batch, and give back what the step that did not fit has left."""
        had, self.micro_batch = self.micro_batch, self.micro_batch // 2
        self._tap.drop()
        self.zero_grad(set_to_none=True)
        free()
        log.warning(
            "out of memory at step %d with %d sequences at a time: the trial goes on with a micro-batch of %d; the "
            "batch of %d stays the same",
            self.done,
            had,
            self.micro_batch,
            self.training_options.batch,
        )

    def _after_step(self) -> None:
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

    def evaluate(self) -> dict[str, float]:
        """The task's metrics on the fixed evaluation set."""
        self.key_global_generator()

        def forward(tally: Callable[..., Mapping[str, Tensor]], *inputs: Any) -> Mapping[str, Tensor]:
            with self.trainer.precision_plugin.forward_context():
                return tally(*inputs)

        return self.evaluation(self.device, forward)

    @property
    def suspected(self) -> bool:
        """Whether the last loss may be the beginning of a divergence, as far as losses have been looked at."""
        return self.divergence is not None or self._rule.suspects

    def was_judged_at(self, step: int) -> bool:
        """Whether there was an evaluation after so many steps."""
        return any(done == step for done, _ in self.history.evaluations)

    def key_global_generator(self) -> None:
        """Key torch's own generators by the step: a component that draws from them still repeats itself.

        Not by ``torch.manual_seed``: for each kind of device not in use yet it keeps the call, with a traceback.
        """
        seed = seed_of(*self.stream, "global", self.done)
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)
        elif self.device.type == "mps":
            torch.mps.manual_seed(seed)

    @property
    def split(self) -> int | None:
        """The size of the micro-batch where the batch does not go through at once, else None."""
        return self.micro_batch if self.micro_batch < self.training_options.batch else None

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
        self.history.seconds = self.seconds
        self._started = None

    @property
    def seconds(self) -> float:
        """How long training has taken until now, over all attempts."""
        return self.history.seconds if self._started is None else time.perf_counter() - self._started

    @property
    def own_seconds(self) -> float:
        """The same without the trial of fewer steps that this one goes on from."""
        return self.seconds - self.history.inherited_seconds

    def state(self) -> dict[str, Any]:
        """All that is needed to go on after the step that was just done.

        The schedule and every random stream are functions of the step, so the step stands for them.
        """
        self.flush()
        self.history.seconds = self.seconds
        return {
            "done": self.done,
            "network": self.network.state_dict(),
            "buffers": dict(self.network.named_buffers()),  # those too that a state_dict leaves out
            "optimizer": self._optimizer.state_dict(),
            "history": self.history.state(),
            "micro_batch": self.micro_batch,
            "evaluated_at_once": self.evaluation.at_once,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state`; a micro-batch that was found since stays."""
        self._tap.drop()
        self._pending = []
        self.done = state["done"]
        self.network.load_state_dict(state["network"])
        for name, buffer in self.network.named_buffers():
            buffer.copy_(state["buffers"][name])
        self._resumed_optimizer = state["optimizer"]
        self.history = History.restore(state["history"])
        self.micro_batch = min(self.micro_batch, state.get("micro_batch", self.micro_batch))
        at_once = self.evaluation.at_once
        self.evaluation.at_once = min(at_once, state.get("evaluated_at_once", at_once))
        self._rule = DivergenceRule(self._rule.options)
        self.divergence = self._rule.check(self.history.losses)


def _unchanged(before: Sequence[tuple[Tensor, int]], now: Sequence[tuple[Tensor, int]]) -> bool:
    same = zip(before, now, strict=False)
    return len(before) == len(now) and all(a is b and m == n for (a, m), (b, n) in same)


def beginning(network: nn.Module) -> dict[str, Any]:
    """The state before the first step, for :meth:`TrialModule.restore`, from a network with its initial values."""
    buffers = dict(network.named_buffers())
    state = {"done": 0, "network": network.state_dict(), "buffers": buffers, "optimizer": None}
    return state | {"history": History().state()}
