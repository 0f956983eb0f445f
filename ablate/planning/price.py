"""What a plan costs in time and memory: measured where it was calibrated, else a rough guess that says so."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import torch

from ablate.errors import Diagnostic
from ablate.experiment import Experiment
from ablate.experiment.identity import digest
from ablate.probing import probed_steps
from ablate.records.needs import memory_of

EFFICIENCY = 0.5
"""Share of a large matrix product's speed that training reaches; more for wide models, less for narrow ones."""
STEP_SECONDS = 0.004
"""What a step costs beside its matrix products: the optimizer, Lightning, many small operations."""
START_SECONDS = 4.0
"""Until the first trial trains, once a sweep: torch and Lightning are imported while the plan is made."""
TRIAL_SECONDS = 0.4
"""What a trial takes beside its steps: building the model, reading the data, sealing the record."""
PROBED_STEP = 1.0
"""How many steps more a step takes that probes look into: they read every parameter and activation."""
EVALUATION_STEPS = 3.0
"""How many steps' time an evaluation takes where it was not measured: several batches, forward alone."""
PROCESS_BYTES = 400_000_000
"""What a worker holds before it trains: Python, torch, Lightning."""


@dataclass(frozen=True)
class Measured:
    """What some steps of one distinct shape took."""

    step_seconds: float
    memory: int | None
    """Peak of the worker, in bytes; None where the system does not tell."""
    evaluation_seconds: float = 0.0
    """What one look at the evaluation set took."""


@dataclass(frozen=True)
class Price:
    """What running all of a plan takes."""

    basis: Literal["measured", "partly measured", "rough"]
    """Partly: some shapes could not be trained when they were to be measured, and are guessed."""
    seconds: float
    """Training time with probes and evaluations, summed over all trials; what limits of the budget speak of."""
    workers: int
    """Trials at once."""
    wall: float
    """Seconds until the last trial is done, with so many workers: what starts them and each trial is counted too."""
    memory: int
    """Bytes that the workers hold at once, at most."""
    trial_seconds: Mapping[str, float]
    """Training time of one trial of each arm, by the arm's identity."""

    @property
    def longest(self) -> float:
        """Seconds of the longest trial."""
        return max(self.trial_seconds.values())


def shape_of(arm: Mapping[str, Any]) -> str:
    """What arms that take the same time and memory share: model, task, batch and optimizer."""
    config, training = arm["config"], arm["config"]["training"]
    kept = ("batch", "optimizer", "precision", "threads")
    optimizer = training["optimizer"]["kind"]
    return digest([config["model"], config["task"], {name: training[name] for name in kept} | {"optimizer": optimizer}])


def price(plan: Mapping[str, Any], workers: int, measured: Mapping[str, Measured] | None = None) -> Price:
    """What a plan costs.

    A guess leaves out what a task's ``decoding`` takes at each evaluation, where texts are written token by token: that
    hangs on when a model ends them. It takes every sequence to be as long as the task allows (``longest`` of `pairs`),
    and so is too high where most are shorter. What was measured holds both.

    Args:
        plan: the content of ``plan.json``.
        workers: how many trials run at once.
        measured: what some steps of each distinct shape took; without it the price is a guess from this machine's
            speed in a matrix product.
    """
    known = measured or {}
    guessed = any(shape_of(arm) not in known for arm in plan["arms"])
    speed = EFFICIENCY * _speed(plan["device"], plan["threads"]) if guessed else 1.0
    runs = len(plan["seeds"]) + tuning_trials(plan)
    seconds: dict[str, float] = {}
    memory = 0
    for arm in plan["arms"]:
        found = known.get(shape_of(arm))
        step = found.step_seconds if found else STEP_SECONDS + arm["flops"] / speed
        guess = memory_of(arm) + (PROCESS_BYTES if plan["device"] == "cpu" else 0)
        look = found.evaluation_seconds if found else EVALUATION_STEPS * step
        # There is no more than one evaluation a step.
        looks = min(plan["budget"]["evaluations"], arm["steps"]) * look
        seconds[arm["id"]] = step * (arm["steps"] + PROBED_STEP * _probed(plan["probes"], arm["steps"])) + looks
        memory = max(memory, found.memory if found and found.memory else guess)
    again = [seconds[trial["arm"]] for trial in plan.get("repeats", ())]
    total = runs * sum(seconds.values()) + sum(again)
    trials = runs * len(seconds) + len(again)
    used = min(workers, trials)
    wall = START_SECONDS + max((total + TRIAL_SECONDS * trials) / used, TRIAL_SECONDS + max(seconds.values()))
    basis: Literal["measured", "partly measured", "rough"] = "partly measured" if guessed else "measured"
    return Price("rough" if measured is None else basis, total, used, wall, used * memory, seconds)


def price_warnings(experiment: Experiment, plan: Mapping[str, Any], cost: Price) -> Iterator[Diagnostic]:
    """Where the price is over what the budget allows."""
    budget, document = experiment.settings.budget, experiment.document
    word = "" if cost.basis == "measured" else "about "
    if budget.gpu_hours is not None and cost.seconds > 3600 * budget.gpu_hours:
        words = (
            f"the plan takes {word}{cost.seconds / 3600:.3g} hours of training, and `gpu_hours` is {budget.gpu_hours:g}"
        )
        yield document.diagnose("W009", words, ("budget", "gpu_hours"), help="fewer seeds, steps or arms fit into it")
    if budget.trial_timeout is not None and cost.longest > budget.trial_timeout:
        words = f"a trial takes {word}{cost.longest:.3g} s, and `trial_timeout` is {budget.trial_timeout:g} s"
        yield document.diagnose(
            "W009", words, ("budget", "trial_timeout"), help="give trials more time, or fewer steps"
        )


def tuning_trials(plan: Mapping[str, Any]) -> int:
    """How many trials each arm has beside those that it is judged by."""
    tuning = plan.get("tuning")
    if not tuning:
        return 0
    return int(tuning["trials"]) + (len(plan["seeds"]) if tuning.get("at_baseline") else 0)


def _probed(probes: Mapping[str, Any], steps: int) -> int:
    """How many steps probes look into; none where the experiment uses no probe."""
    return 0 if probes["use"] == [] else len(probed_steps(probes["every"], steps))


@cache  # it is this machine's, whatever is planned
def _speed(device: str, threads: int) -> float:
    """Floating-point operations in a second that a large matrix product reaches here."""
    side, enough = (512, 0.03) if device == "cpu" else (4096, 0.1)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        matrix = torch.ones(side, side, device=device)
        matrix @ matrix  # the first one loads the kernel
        count, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < enough:
            (matrix @ matrix)[0, 0].item()  # which waits for the device
            count += 1
        return count * 2 * side**3 / passed
    finally:
        torch.set_num_threads(before)
