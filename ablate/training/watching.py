"""What goes on beside a trial's training: news, checkpoints, pauses, and being asked to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime

from ablate.records.layout import AttemptFolder
from ablate.records.sealing import seal, write_json
from ablate.slots import Data
from ablate.training import checkpoints
from ablate.training.job import Job
from ablate.training.loggers import Loggers
from ablate.training.memory import PeakMemory
from ablate.training.module import TrialModule
from ablate.training.recording import instant, metrics_at

OnProgress = Callable[..., None]
"""Called with step, steps, loss, tokens per second and the memory taken at most, about twice a second; where memory was
too short for the batch, with the size of the micro-batch too."""
PROGRESS_SECONDS = 0.5


class News:
    """Tells who watches where the trial is, now and then."""

    def __init__(self, module: TrialModule, job: Job, data: Data, on_progress: OnProgress, memory: PeakMemory) -> None:
        """Speed is measured from now on."""
        self._module = module
        self._tokens = job.setup.training.batch * data.interface.tokens
        self._on_progress = on_progress
        self._memory = memory
        self._first = module.done
        self._micro_batch = job.setup.training.batch
        self._start = self._told = time.perf_counter()

    def __call__(self) -> None:
        """Tell it if the last time is long ago, or the micro-batch has become smaller."""
        module, now = self._module, time.perf_counter()
        smaller = module.micro_batch < self._micro_batch  # told at once, for who watches to know
        if smaller or now - self._told >= PROGRESS_SECONDS:
            self._told, self._micro_batch = now, module.micro_batch
            speed = (module.done - self._first) * self._tokens / (now - self._start)
            losses = module.history.losses
            loss = losses[-1] if losses else math.nan
            split = () if module.split is None else (module.split,)
            self._on_progress(module.done, module.steps, loss, speed, self._memory.taken(), *split)


class Watch:
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
        """Time runs from now on."""
        self.left: str | None = None
        """``paused``, ``interrupted`` or ``timed_out``, once the trial has been left before its end."""
        self._module = module
        self._job = job
        self._place = place
        self._every = job.checkpoint_seconds
        self._timeout = job.trial_timeout
        self._should_stop = should_stop
        self._loggers = loggers
        self._news = News(module, job, data, on_progress, memory)
        self._saved = time.perf_counter()

    def __call__(self) -> None:
        """Do what is due."""
        module = self._module
        if module.done < module.steps and module.divergence is None:
            if why := self._why_to_leave():
                self._leave(why)
            elif time.perf_counter() - self._saved >= self._every:
                self._save()
        self._news()
        self._loggers()

    def _why_to_leave(self) -> str:
        """How the trial is left before its end; "" where it is not."""
        if self._module.done == self._job.pause_at:
            return "paused"
        if self._should_stop():
            return "interrupted"
        late = self._timeout is not None and self._module.own_seconds >= self._timeout
        return "timed_out" if late else ""

    def _leave(self, how: str) -> None:
        """Write a checkpoint and end training after this step, unless it turns out to be the trial's end already."""
        self._module.flush()
        if self._module.divergence is not None:
            return
        if how == "paused":
            pause(self._module, self._place, self._job)
        checkpoints.save(self._place, self._module.state())
        if how == "timed_out":
            seal(self._place.end, {"end": how, "error": self._late(), "at": instant(datetime.now(UTC))})
        self._module.trainer.should_stop = True
        self.left = how

    def _save(self) -> None:
        """Write a checkpoint; what may have begun to diverge is left as it was before, to be replayed from there."""
        self._module.flush()
        if not self._module.suspected:
            checkpoints.save(self._place, self._module.state())
            self._saved = time.perf_counter()

    def _late(self) -> str:
        module = self._module
        took = f"{module.own_seconds:,.1f} s of training, and `trial_timeout` is {self._timeout:,g} s"
        return f"at step {module.done} of {module.steps} after {took}"


def pause(module: TrialModule, place: AttemptFolder, job: Job) -> str:
    """Write what a tuning trial that has reached its rung is judged by, and what it would be by another objective."""
    metrics = metrics_at(module, module.done)
    write_json(place.rung, {"step": module.done, "value": metrics[job.raw["observe"]["objective"]], "metrics": metrics})
    return "paused"
