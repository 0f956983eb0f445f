"""The experiment's loggers at work: told what a trial measures, and left out from where they fail."""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ablate.records.layout import AttemptFolder
from ablate.slots import Logger
from ablate.training.job import Job
from ablate.training.module import TrialModule

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger as LightningLogger

log = logging.getLogger(__name__)


class Loggers:
    """Tells every logger of one attempt what is new in the trial's history; used as a context while it trains.

    The history stays the truth: nothing is read back, and a logger that raises is said once in the attempt's log and
    told nothing more. Steps are those of the curves: a training loss has the number of updates before it, and an
    evaluation the number of updates done.
    """

    def __init__(self, job: Job, place: AttemptFolder, module: TrialModule) -> None:
        """Build the loggers, and tell them the trial's settings; what an earlier attempt measured is told no more."""
        self._module = module
        self._told = len(module.history.losses)
        self._evaluations_told = len(module.history.evaluations)
        self._working: dict[Logger, LightningLogger] = {}
        name = f"{job.raw['arm_name']}, seed={job.seed}" + (f", attempt={place.number}" if place.number > 1 else "")
        settings = {key: job.raw[key] for key in ("trial", "arm_name", "levels", "seed")} | dict(job.raw["config"])
        for logger in dict.fromkeys(job.loggers):  # the same one twice would write to the same place
            self._try(logger, partial(self._start, logger, place, name, settings))

    def _start(self, logger: Logger, place: AttemptFolder, name: str, settings: dict[str, Any]) -> None:
        built = self._working[logger] = logger.build(place.path, name)
        built.log_hyperparams(copy.deepcopy(settings))

    def __call__(self) -> None:
        """Tell what has come to the history since the last call."""
        if not self._working:
            return
        history, divergence = self._module.history, self._module.divergence
        end = len(history.losses) if divergence is None else divergence.step + 1  # the record is cut there too
        news = [
            (
                step,
                {
                    "train/loss": history.losses[step],
                    "grad_norm/global": history.norms[step],
                    "lr": history.rates[step],
                },
            )
            for step in range(self._told, end)
        ]
        news += history.evaluations[self._evaluations_told :]
        if news:
            self._told, self._evaluations_told = end, len(history.evaluations)
            self._each(lambda built: _tell(built, news))

    def _each(self, act: Callable[[LightningLogger], None]) -> None:
        for logger, built in list(self._working.items()):
            self._try(logger, partial(act, built))

    def _try(self, logger: Logger, act: Callable[[], None]) -> None:
        try:
            act()
        except (Exception, SystemExit) as error:  # whatever a stranger's service raises; the trial owes it nothing
            failed = self._working.pop(logger, None)
            said = f"{type(error).__name__}: {error}".splitlines()[0]
            kind = getattr(logger, "kind", type(logger).__name__)
            log.warning("the logger `%s` fails, and the trial goes on without it: %s", kind, said)
            if failed is not None:  # a run that is left open would take in the worker's next trial
                with contextlib.suppress(Exception, SystemExit):
                    failed.finalize("failed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End every logger, with the word that Lightning has for how the attempt ended."""
        module = self._module
        over = module.done == module.steps or module.divergence is not None  # which is a result as any other
        status = "failed" if kind else "success" if over else "finished"
        self._each(lambda built: built.finalize(status))


def _tell(logger: LightningLogger, news: list[tuple[int, dict[str, float]]]) -> None:
    for step, values in news:
        logger.log_metrics(dict(values), step)
    logger.save()
