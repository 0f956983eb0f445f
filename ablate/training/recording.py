"""What is known of a trial that has ended: its record, its curves and its readings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ablate.errors import InputError
from ablate.records.layout import AttemptFolder
from ablate.records.series import CURVES, PROBES, write_series
from ablate.slots import Data, Task
from ablate.training.job import Job
from ablate.training.module import TrialModule
from ablate.training.versions import versions


def record_of(job: Job, module: TrialModule, data: Data) -> dict[str, Any]:
    """What is known of a trial that has ended."""
    history, task = module.history, job.setup.task
    final = history.evaluations[-1][1] if history.evaluations else {}
    bad = module.divergence
    # The objective alone says whether a trial diverged; a plan from before it was written down goes by every metric.
    objective = job.raw["observe"].get("objective")
    judged = [objective] if objective else list(task.units)
    if bad is None:
        _check_metrics(task, final, judged)
    else:
        history.cut(bad.step)
    finite = bad is None and all(math.isfinite(final[name]) for name in judged)
    reason = None if finite else {"rule": bad.rule if bad else "nonfinite", "step": bad.step if bad else module.steps}
    steps = len(history.losses)
    clip = job.setup.training.clip
    clipped = 0 if clip is None else sum(not norm <= clip for norm in history.norms)
    tokens = steps * job.setup.training.batch * data.interface.tokens
    training = history.seconds - history.evaluating
    return {
        "schema": 1,
        **{name: job.raw[name] for name in ("trial", "arm", "arm_name", "levels", "seed", "components", "data")},
        **({"tuned": job.raw["tuned"]} if job.raw.get("tuned") else {}),
        **({"repeat": job.raw["repeat"]} if "repeat" in job.raw else {}),
        **({"rungs": reached} if (reached := _rungs(module, job)) else {}),
        "end": "complete" if finite else "diverged",
        "reason": reason,
        "steps": steps,
        "tokens": tokens,
        "metrics": {name: _finite(final[name]) if finite else None for name in task.units},
        "facts": {
            **data.facts,
            "initial_loss": _finite(history.losses[0]),
            "clip_rate": clipped / steps,
        },
        "seconds": history.seconds,
        "evaluation_seconds": history.evaluating,
        "tokens_per_second": tokens / training if training > 0 else None,
        "micro_batch": module.split,
        "precision": job.setup.training.precision,
        "threads": job.setup.training.threads,
        "versions": versions(),
        **({"lineage": job.raw["lineage"]} if "lineage" in job.raw else {}),
        **({"continued_from": dict(history.continued_from)} if history.continued_from else {}),
    }


def metrics_at(module: TrialModule, step: int) -> dict[str, float | None]:
    """The metrics at an evaluation; None where one is not finite."""
    return {name: _finite(value) for name, value in dict(module.history.evaluations)[step].items()}


def write_curves_and_readings(place: AttemptFolder, module: TrialModule) -> dict[str, Path]:
    """Write the curves and the readings, and say where."""
    history = module.history
    per_step = {"train/loss": history.losses, "grad_norm/global": history.norms, "lr": history.rates}
    curves = [(step, name, value) for name, values in per_step.items() for step, value in enumerate(values)]
    curves += [(step, name, value) for step, metrics in history.evaluations for name, value in metrics.items()]
    write_series(place.curves, CURVES, curves)
    readings = [(step, *reading, value) for step, reading, value in history.readings]
    write_series(place.probes, PROBES, readings)
    return {"curves": place.curves, "probes": place.probes}


def instant(at: datetime) -> str:
    """A time in UTC as records have it, to the second."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _rungs(module: TrialModule, job: Job) -> list[list[Any]]:
    """Step and metrics at each rung that the trial has passed."""
    passed = dict(module.history.evaluations)
    return [[step, metrics_at(module, step)] for step in job.rungs if step in passed]


def _check_metrics(task: Task, final: Mapping[str, float], judged: Sequence[str]) -> None:
    """Hold the metrics that a task gives against those that it says it reports, and those that a trial is judged by.

    Raises:
        InputError: one of them is missing, or is none that the task names.
    """
    kind = getattr(task, "kind", type(task).__name__)
    lacking = [f"does not give `{name}`, the objective" for name in judged if name not in task.units]
    lacking += [f"does not give `{name}`, which is in its `units`" for name in task.units if name not in final]
    surplus = [f"gives `{name}`, which is not in its `units`" for name in final if name not in task.units]
    if wrong := [*lacking, *surplus]:
        raise InputError.one(
            "S306", f"the task `{kind}` {', and '.join(wrong)}", help="`metrics` of a task gives what its `units` name"
        )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
