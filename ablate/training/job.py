"""What a trial's folder says is to be trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from ablate.errors import InputError, StaleError
from ablate.experiment.settings import Diverged, Probes, Setup, stream_of
from ablate.records.layout import TrialFolder, read_json
from ablate.registry import Registry
from ablate.slots import Data, Logger, Probe

_LOGGERS = TypeAdapter(list[Logger])


@dataclass(frozen=True)
class Job:
    """A trial's ``config.json``, validated."""

    raw: Mapping[str, Any]
    seed: int
    setup: Setup
    steps: int
    diverged: Diverged
    evaluations: int
    checkpoint_seconds: float
    probes: Probes
    loggers: Sequence[Logger] = ()
    trial_timeout: float | None = None
    """Seconds that the trial may train, over all attempts."""
    rungs: Sequence[int] = ()
    """Steps at which a tuning trial is evaluated to be judged among its batch."""
    pause_at: int | None = None
    """The one of them at which this attempt ends."""
    first_bad: bool = True
    """Whether the last steps are replayed where the trial diverges."""
    keep_checkpoints: bool = True
    """Whether the last checkpoint stays once the trial is complete."""
    continues: str | None = None
    """The trial of fewer steps that this one may go on from, which lies beside it; else None."""

    @classmethod
    def read(cls, folder: TrialFolder, registry: Registry) -> Job:
        """Read and validate; the registry knows the components that are named."""
        raw = read_json(folder.config)
        context = {"registry": registry}
        config, observe = raw["config"], raw["observe"]
        return cls(
            raw=raw,
            seed=raw["seed"],
            setup=Setup.model_validate({name: config[name] for name in Setup.model_fields}, context=context),
            steps=config["steps"],
            diverged=Diverged.model_validate(config["diverged"]),
            evaluations=observe["evaluations"],
            checkpoint_seconds=observe["checkpoint_seconds"],
            probes=Probes.model_validate(observe["probes"], context=context),
            loggers=_LOGGERS.validate_python(observe.get("loggers", []), context=context),
            trial_timeout=observe.get("trial_timeout"),
            rungs=observe.get("rungs", ()),
            pause_at=observe.get("pause_at"),
            first_bad=observe.get("first_bad", True),
            keep_checkpoints=observe.get("keep_checkpoints", True),
            continues=raw.get("continues"),
        )

    @property
    def stream(self) -> tuple[int | str, ...]:
        """What keys every random stream of the trial."""
        return stream_of(self.setup, self.seed)

    @property
    def evaluate_at(self) -> frozenset[int]:
        """How many updates are done at each evaluation; the last is the last step."""
        spaced = {round(self.steps * n / self.evaluations) for n in range(1, self.evaluations + 1)}
        return frozenset(spaced | set(self.rungs)) - {0}

    def load(self) -> Data:
        """The task's data.

        Raises:
            StaleError: they can no longer be read, or are not those that the plan was made with.
        """
        try:
            data = self.setup.task.load(self.raw["folder"])
        except InputError as error:  # the plan has read them
            raise StaleError(error.diagnostics) from error
        if data.digest != self.raw["data"]["hash"]:
            raise StaleError.one(
                "S305",
                "the task's data have changed since the plan was made",
                help="bring the old data back and run the same command; or give the experiment a new name",
            )
        return data

    def active_probes(self, registry: Registry) -> list[Probe]:
        """The probes that measure: those that the experiment names, or all that are not opt-in."""
        if self.probes.use is not None:
            return self.probes.use
        found = [component() for component in registry.all("probe")]
        return [probe for probe in found if isinstance(probe, Probe) and probe.always]
