"""Training one trial from its folder to its sealed record."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from torch import nn

from ablate.model.parameters import build, root_site
from ablate.records.layout import TrialFolder
from ablate.records.sealing import seal
from ablate.registry import Registry
from ablate.slots import SLOTS, Data
from ablate.training import checkpoints
from ablate.training.data import Stretches, TrialData
from ablate.training.first_bad import FirstBadWatch, first_bad_step
from ablate.training.job import Job
from ablate.training.loggers import Loggers
from ablate.training.memory import PeakMemory
from ablate.training.module import TrialModule, beginning
from ablate.training.out_of_memory import first_line, ran_out_of_memory
from ablate.training.recording import instant, record_of, write_curves_and_readings
from ablate.training.splitting import sees_the_batch
from ablate.training.watching import News, OnProgress, Watch, pause

EVALUATION_FACTOR = 4
"""Evaluation keeps no activations, so its batches are larger than training's by this factor."""

log = logging.getLogger(__name__)
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
        return pause(module, place, job)
    if module.done < job.steps and module.divergence is None:
        with Loggers(job, place, module) as loggers:
            watch = Watch(module, place, job, data, on_progress, should_stop, loggers, memory)
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
        "device": device,
        "peak_memory": memory.read(),
    }
    if record["end"] == "diverged" and job.first_bad:
        left = math.inf if job.trial_timeout is None else job.trial_timeout - module.own_seconds
        replayed = FirstBadWatch(module.network, first_bad_step(job, module), should_stop, left)
        began = time.perf_counter()
        _replay(folder, job, module, data, device, replayed, partial(News, on_progress=on_progress, memory=memory))
        record["replay_seconds"] = time.perf_counter() - began
        if replayed.stopped:
            return "interrupted"
        record["first_bad"] = asdict(replayed.found) if replayed.found else None
    if seal(folder.result, record | {"sealed": instant(datetime.now(UTC))}):
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
            _fit(module, job, data, device, ends=module.evaluate_at)
            return
        except Exception as error:
            if not ran_out_of_memory(error):
                raise
            module.check_it_can_shrink(error)
        module.shrink()  # not above: there the error's traceback still holds what filled the memory
        module.restore(_reached(folder, job) or beginning(_network(job, data)))


def _replay(
    folder: TrialFolder,
    job: Job,
    module: TrialModule,
    data: Data,
    device: str,
    watch: FirstBadWatch,
    news: Callable[[TrialModule, Job, Data], News],
) -> None:
    """Train again from the last state before a trial diverged to where it did, watched in the steps that matter.

    Where there is no such state, or the replay itself fails, nothing is found: the trial's result is known already.
    """
    if watch.is_late():
        return
    try:
        state = _reached(folder, job)
        if state is None or state["done"] > watch.first:
            if module.history.continued_from:
                return
            state = beginning(_network(job, data))
        module.restore(state)
        module.evaluate_at, module.between_steps = frozenset(), news(module, job, data)
        last = min(watch.step + 1, job.steps)
        _fit(module, job, data, device, ends=range(1, last + 1), callbacks=[watch])
    except Exception as error:
        log.warning("the step that diverged cannot be replayed: %s", first_line(error))


def _fit(
    module: TrialModule,
    job: Job,
    data: Data,
    device: str,
    ends: Iterable[int],
    callbacks: Sequence[pl.Callback] = (),
) -> None:
    """Run Lightning from the step that the module has reached to the last of ``ends``, and its callbacks at each."""
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
        callbacks=list(callbacks),
    )
    stretches = Stretches(data, job.setup.training.batch, job.stream, module.done, ends)
    with warnings.catch_warnings():
        # Lightning 2.6 still asks for torch's old name of a leaf; nothing that a user could mend.
        warnings.filterwarnings("ignore", message=r".*LeafSpec.*", category=FutureWarning)
        trainer.fit(module, datamodule=TrialData(stretches))


def _precision(job: Job) -> Literal["32-true", "bf16-mixed"]:
    """The arithmetic; a plan has made ``auto`` plain."""
    precision = job.setup.training.precision
    if precision == "auto":
        raise ValueError("a trial's precision is resolved when it is planned")
    return precision
