"""The slot of executors, and how the driver talks to one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ablate.slots.component import Component

TRAINER = "ablate.training.trial:train"
"""What trains a trial, as ``module:function``; a module may have a ``preload()`` that does the imports of later."""


@dataclass(frozen=True)
class Job:
    """One attempt at one trial, in plain values that go to another process or machine."""

    trial: str
    folder: str
    """The trial's folder, which holds ``config.json`` and the folder of this attempt."""
    attempt: int
    device: str = "cpu"
    threads: int = 1
    plugins: tuple[str, ...] = ()
    """Plugin files to bring in beside what is installed."""
    trainer: str = TRAINER


@dataclass(frozen=True)
class Advanced:
    """How far a running trial has come; said a few times a second at most."""

    trial: str
    step: int
    steps: int
    loss: float
    tokens_per_second: float


@dataclass(frozen=True)
class Ended:
    """An attempt is over, and what ran it is free again."""

    trial: str
    end: str
    """``complete``, ``diverged`` or ``failed``; ``timed_out``, ``paused`` (at a rung) or ``interrupted``, all three by
    a checkpoint; ``stale`` where what the plan was made from is gone, which concerns every trial; or ``lost`` with its
    worker."""
    error: str | None = None
    """One line: the exception of a failure, or what the worker died of; of ``stale``, all that is to be said."""


class Pool(Protocol):
    """An executor at work. One thread uses it; no call but ``reports`` waits."""

    def slots(self, device: str, threads: int) -> int:
        """How many trials that need this device and these threads run at once."""
        ...

    def submit(self, job: Job) -> None:
        """Start an attempt; the caller keeps no more than :meth:`slots` of them running."""
        ...

    def reports(self, timeout: float) -> Sequence[Advanced | Ended]:
        """What has happened since; waits at most ``timeout`` seconds for something to happen.

        Every submitted job gets exactly one ``Ended``, whatever it dies of.

        Raises:
            AblateError: nothing can run here at all; says why.
        """
        ...

    def stop(self) -> None:
        """Ask whatever runs to write a checkpoint and end; each then reports ``interrupted``."""
        ...

    def close(self) -> None:
        """End everything at once; nothing runs any more when this returns."""
        ...


class Executor(Component):
    """Runs trials somewhere."""

    slot: ClassVar[str] = "executor"
    default: ClassVar[str | None] = "local"

    def places(self, device: str, threads: int) -> int:
        """How many trials that need this device and these threads would run at once, as far as can be said before."""
        return 1

    @abstractmethod
    def open(self, trainer: str = TRAINER) -> Pool:
        """Begin to get ready and return at once, so that slow imports overlap with planning.

        The pool belongs to the caller, who closes it.
        """
