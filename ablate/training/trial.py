"""Training one trial from its folder to its sealed record."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Literal

import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from torch import nn

from ablate.model.parameters import build, root_site
from ablate.records.layout import AttemptFolder, TrialFolder
from ablate.records.sealing import seal, write_json
from ablate.registry import Registry
from ablate.slots import SLOTS, Data
from ablate.training import checkpoints
from ablate.training.data import Batches, TrialData
from ablate.training.job import Job
from ablate.training.loggers import Loggers
from ablate.training.memory import PeakMemory
from ablate.training.module import TrialModule, beginning
from ablate.training.out_of_memory import ran_out_of_memory
from ablate.training.recording import instant, metrics_at, record_of, write_curves_and_readings
from ablate.training.splitting import sees_the_batch

OnProgress = Callable[..., None]
"""Called with step, steps, loss, tokens per second and the memory taken at most, about twice a second; where memory was
too short for the batch, with the size of the micro-batch too."""
PROGRESS_SECONDS = 0.5
EVALUATION_FACTOR = 4
"""Evaluation keeps no activations, so its batches are larger than training's by this factor."""

for _name in ("pytorch_lightning", "lightning_fabric"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # which devices exist is said once, by the plan


def preload() -> None:
    """Import what every trial needs, once, before workers are made from this process."""
    registry = Registry.installed()
    for slot in SLOTS:
        if slot not in ("executor", "section"):
            registry.kinds(slot)


def train(
    folder: TrialFolder,
    attempt: int,
    registry: Registry,
    *,
    device: str = "cpu",
    on_progress: OnProgress = lambda *news: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> str:
    """Train a trial to its end, going on from the newest checkpoint of earlier attempts, and seal its record.

    Args:
        folder: the trial's folder, with its ``config.json``.
        attempt: number of this attempt, from 1; all it writes goes into a folder of its own.
        registry: knows the components that the configuration names.
        device: ``cpu``, ``cuda`` or ``mps``.
        on_progress: told where the trial is, about twice a second.
        should_stop: asked after every step; when it says yes, a checkpoint is written and the trial left.

    Returns:
        ``complete`` or ``diverged``, with the record sealed; ``timed_out``, with the attempt's end sealed; ``paused``
        at a rung, with the objective's value there; or ``interrupted``.

    Raises:
        InputError: the task does not give the metrics that it names.
        OutOfMemoryError: memory is too short for a step, and the batch cannot be split any further.
        Exception: whatever a component raises; nothing is sealed then.
    """
    started = datetime.now(UTC)
    job = Job.read(folder, registry)
    place = folder.attempt(attempt)
    place.path.mkdir(exist_ok=True)
    memory = PeakMemory(device)
    torch.set_num_threads(job.setup.training.threads)
    data = job.load()
    module = _module(job, data, registry)
    checkpoint = _reached(folder, job)
    if checkpoint:
        module.restore(checkpoint)
    if job.pause_at is not None and module.done >= job.pause_at and not module.was_judged_at(job.pause_at):
        module.restore(beginning(_network(job, data)))  # it had passed the rung before that was one
    if module.divergence is None and module.done == job.pause_at:  # it was stopped as it came to the rung
        return _pause(module, place, job)
    if module.done < job.steps and module.divergence is None:
        with Loggers(job, place, module) as loggers:
            watch = _Watch(module, place, job, data, on_progress, should_stop, loggers, memory)
            module.between_steps = watch
            _fit_into_memory(module, job, data, device, folder)
        if watch.left:
            return watch.left
        checkpoint = module.state()
    record = record_of(job, module, data)
    kept = checkpoint if record["end"] == "complete" and job.keep_checkpoints else None
    if kept:  # before the result is sealed: afterwards nobody would come back to write it
        checkpoints.save(place, {**kept, **_beside(data)}, last=True)
    series = write_curves_and_readings(place, module)
    record |= {
        "attempt": attempt,
        "files": {name: f"{place.path.name}/{path.name}" for name, path in series.items()},
        "started": instant(started),
        "sealed": instant(datetime.now(UTC)),
        "device": device,
        "peak_memory": memory.read(),
    }
    if seal(folder.result, record):
        checkpoints.discard(folder, but=place if kept else None)
    return str(record["end"])


def _reached(folder: TrialFolder, job: Job) -> dict[str, Any] | None:
    """The newest checkpoint, or the last one of the trial of fewer steps that this one goes on from."""
    checkpoint = checkpoints.newest(folder)
    if checkpoint is None and job.continues is not None:
        checkpoint = checkpoints.newest_of_fewer_steps(folder, job.continues, job.steps)
    return checkpoint


def _beside(data: Data) -> dict[str, Any]:
    """What a trained network cannot be used without, so that nobody needs the data for it."""
    tokenizer = getattr(data, "tokenizer", None)
    return {"interface": asdict(data.interface)} | ({} if tokenizer is None else {"tokenizer": tokenizer.written()})


class _Watch:
    """What happens after each step beside training: checkpoints, news, loggers, being asked to stop, and timing out."""

    def __init__(
        self,
        module: TrialModule,
        place: AttemptFolder,
        job: Job,
        data: Data,
        on_progress: OnProgress,
        should_stop: Callable[[], bool],
        loggers: Loggers,
        memory: PeakMemory,
    ) -> None:
        self.left: str | None = None
        """``paused``, ``interrupted`` or ``timed_out``, once the trial has been left before its end."""
        self._module = module
        self._job = job
        self._place = place
        self._every = job.checkpoint_seconds
        self._timeout = job.trial_timeout
        self._tokens = job.setup.training.batch * data.interface.tokens
        self._on_progress = on_progress
        self._should_stop = should_stop
        self._loggers = loggers
        self._memory = memory
        self._first = module.done
        self._micro_batch = job.setup.training.batch
        self._start = self._told = self._saved = time.perf_counter()

    def __call__(self) -> None:
        module, now = self._module, time.perf_counter()
        over = module.done == module.steps or module.divergence is not None
        if not over and module.done == self._job.pause_at:
            self._leave(_pause(module, self._place, self._job))
        elif not over and self._should_stop():
            self._leave("interrupted")
        elif not over and self._timeout is not None and module.own_seconds >= self._timeout:
            self._leave("timed_out")
            seal(self._place.end, {"end": "timed_out", "error": self._late(), "at": instant(datetime.now(UTC))})
        elif not over and now - self._saved >= self._every:
            checkpoints.save(self._place, module.state())
            self._saved = time.perf_counter()
        smaller = module.micro_batch < self._micro_batch  # told at once, for who watches to know
        if smaller or now - self._told >= PROGRESS_SECONDS:
            self._told, self._micro_batch = now, module.micro_batch
            speed = (module.done - self._first) * self._tokens / (now - self._start)
            losses = module.history.losses
            loss = losses[-1] if losses else math.nan
            split = () if module.split is None else (module.split,)
            self._on_progress(module.done, module.steps, loss, speed, self._memory.taken(), *split)
        self._loggers()

    def _leave(self, how: str) -> None:
        """Write a checkpoint and end training after this step."""
        checkpoints.save(self._place, self._module.state())
        self._module.trainer.should_stop = True
        self.left = how

    def _late(self) -> str:
        module = self._module
        took = f"{module.own_seconds:,.1f} s of training, and `trial_timeout` is {self._timeout:,g} s"
        return f"at step {module.done} of {module.steps} after {took}"


def _network(job: Job, data: Data) -> nn.Module:
    setup = job.setup
    site, initializer = root_site(data.interface), setup.training.initializer
    return build(setup.model, site, stream=job.stream, initializer=initializer)


def _module(job: Job, data: Data, registry: Registry) -> TrialModule:
    """The network with its initial values, and all that trains it."""
    setup = job.setup
    return TrialModule(
        _network(job, data),
        task=setup.task,
        training=setup.training,
        diverged=job.diverged,
        steps=job.steps,
        evaluation=data.evaluation(EVALUATION_FACTOR * setup.training.batch),
        evaluate_at=job.evaluate_at,
        probes=job.active_probes(registry),
        probe_every=job.probes.every,
        stream=job.stream,
        whole=sees_the_batch(setup),
    )


def _fit_into_memory(module: TrialModule, job: Job, data: Data, device: str, folder: TrialFolder) -> None:
    """Train; where memory was too short and the state before that step is lost, go on from the newest checkpoint."""
    while True:
        try:
            _fit(module, job, data, device)
            return
        except Exception as error:
            if not ran_out_of_memory(error):
                raise
            module.check_it_can_shrink(error)
        module.shrink()  # not above: there the error's traceback still holds what filled the memory
        module.restore(_reached(folder, job) or beginning(_network(job, data)))


def _fit(module: TrialModule, job: Job, data: Data, device: str) -> None:
    """Run Lightning from the step that the module has reached."""
    trainer = pl.Trainer(
        accelerator={"cuda": "gpu"}.get(device, device),
        devices=1,
        precision=_precision(job),
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        plugins=[LightningEnvironment()],  # workers, signals and SLURM are the engine's business
    )
    batches = Batches(data, job.setup.training.batch, job.stream, module.done, job.steps)
    with warnings.catch_warnings():
        # Lightning 2.6 still asks for torch's old name of a leaf; nothing that a user could mend.
        warnings.filterwarnings("ignore", message=r".*LeafSpec.*", category=FutureWarning)
        trainer.fit(module, datamodule=TrialData(batches))


def _pause(module: TrialModule, place: AttemptFolder, job: Job) -> str:
    """Write what a tuning trial that has reached its rung is judged by, and what it would be by another objective."""
    metrics = metrics_at(module, module.done)
    write_json(place.rung, {"step": module.done, "value": metrics[job.raw["observe"]["objective"]], "metrics": metrics})
    return "paused"


def _precision(job: Job) -> Literal["32-true", "bf16-mixed"]:
    """The arithmetic; a plan has made ``auto`` plain."""
    precision = job.setup.training.precision
    if precision == "auto":
        raise ValueError("a trial's precision is resolved when it is planned")
    return precision
