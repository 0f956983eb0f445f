"""The typed settings of an experiment that are no component: how arms are trained, judged, watched and bounded."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ablate.experiment.quantities import Duration, Size
from ablate.slots import Initializer, Loss, Model, Optimizer, Options, Probe, Schedule, Task


def _default(slot: type[Any]) -> Any:
    """A field for a slot that has a default kind, looked up in the registry when an experiment names none."""
    return Field(default_factory=lambda: slot.default, validate_default=True)


class Training(Options):
    """How every arm is trained."""

    optimizer: Optimizer
    """How gradients become updates."""
    schedule: Schedule = _default(Schedule)
    """The learning rate's course."""
    initializer: Initializer = _default(Initializer)
    """How initial values are drawn."""
    loss: Loss = Field(default_factory=lambda: {"kind": Loss.default}, validate_default=True)  # left out of identities
    """What training minimises; what is reported is the task's affair."""
    batch: int = Field(32, ge=1)
    """Sequences in a step."""
    clip: float | None = Field(1.0, gt=0)
    """Largest global norm of the gradient; null for no clipping."""
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"
    """Arithmetic, in Lightning's words; `auto` is bf16-mixed where a GPU has it and 32-true elsewhere."""
    threads: int = Field(1, ge=1)
    """CPU threads of a trial; results differ bitwise by it, so it is part of a trial's identity."""
    stream: str | None = None
    """A name that gives an arm random streams of its own: two arms equal but for it are an A/A pair."""


class Setup(Options):
    """What an arm is: a model, trained in some way on a task."""

    model: Model
    """The network."""
    task: Task
    """What it is trained and judged on."""
    training: Training
    """How it is trained."""


def stream_of(setup: Setup, seed: int) -> tuple[int | str, ...]:
    """What keys every random stream of an arm's trial."""
    name = setup.training.stream
    return (seed,) if name is None else (seed, name)


class Objective(Options):
    """What arms are compared by: the final step's value on the fixed evaluation set."""

    metric: str = "val/loss"
    """One of the task's metrics."""
    goal: Literal["min", "max"] = "min"
    """Which way is better."""
    smallest_effect: float = Field(gt=0)
    """The smallest difference that matters, in the metric's unit; verdicts are judged against it."""
    secondary: list[str] = Field(default_factory=list)
    """Further metrics that are reported with intervals and no verdict."""


class Diverged(Options):
    """When a trial is given up as diverged, which is a result."""

    nonfinite: bool = True
    """Give up at the first loss that is not finite."""
    loss_above_initial: float | None = Field(2.0, gt=0)
    """Give up when the training loss stays this many nats above its value at initialisation; null for never."""
    patience: int = Field(20, ge=1)
    """For how many steps in a row."""


class Probes(Options):
    """What is measured during training, and how often."""

    every: int = Field(50, ge=1)
    """Steps between two measurements, beside some early ones and the last."""
    use: list[Probe] | None = None
    """Which probes measure; by default all that are installed and not opt-in."""


class Budget(Options):
    """What an experiment may cost."""

    steps: int = Field(ge=1, le=100_000_000)
    """Training steps of a trial."""
    evaluations: int = Field(10, ge=1, le=10_000)
    """How often a trial is evaluated, evenly spaced; the last time is after the last step."""
    retries: int = Field(1, ge=0)
    """How often in a row a trial may lose its worker without a new checkpoint."""
    checkpoint_seconds: float = Field(30.0, gt=0)
    """Seconds between two checkpoints of a trial."""
    keep_checkpoints: bool = True
    """Whether a complete trial keeps its last checkpoint, which `ablate export` and a longer `steps` need."""
    max_trials: int = Field(10_000, ge=1)
    """More trials than this are refused before any arm is made."""
    gpu_hours: float | None = Field(None, gt=0)
    """Hours of training, over all trials, after which the sweep stops; an hour of a worker on the CPU counts too."""
    wall: Duration | None = None
    """Time that one call of `ablate run` takes at most, as `8h`; the next call goes on."""
    trial_timeout: Duration | None = None
    """Time that a trial may train, as `20m`."""
    disk: Size | None = None
    """What the study's folder may hold, as `20GiB`."""


class Trained(Setup):
    """A setup with its own number of steps: all that a level of a factor may set."""

    budget: Budget
    """Of the budget, the steps alone: the rest is for the whole experiment."""

    @property
    def setup(self) -> Setup:
        """What it is, without the steps."""
        return Setup(model=self.model, task=self.task, training=self.training)


class Expectation(Options):
    """A prediction, written before the run."""

    arm: dict[str, Any]
    """The arm, by its levels."""
    versus: Literal["baseline"] = "baseline"
    """What it is compared with."""
    effect: Literal["better", "worse", "no_difference", "diverged"]
    """What is expected of it."""
    source: str = ""
    """Where the expectation comes from, as "Xiong et al. 2020, Fig. 2"."""
