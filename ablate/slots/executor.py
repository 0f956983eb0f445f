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
class Need:
    """What a trial takes of the machine that it runs on; of many trials, what the largest takes."""

    device: str = "cpu"
    """``cpu``, ``cuda`` or ``mps``."""
    threads: int = 1
    memory: int = 0
    """Bytes of the device's memory, on ``cpu`` of the machine's, beyond those of a worker that does nothing; 0 where
    nobody has counted them."""


@dataclass(frozen=True)
class Room:
    """How many trials run at once, and what limits it."""

    places: int
    limit: str
    """What sets the number, in a few words that follow it: ``one for each of 2 cores``."""
    short: bool = False
    """Memory sets it, and not what the user asked for or how many cores or devices there are."""


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
    attempt: int
    step: int
    steps: int
    loss: float
    tokens_per_second: float
    memory: int | None = None
    """Bytes of the device's memory, on ``cpu`` of the machine's, that the worker has taken at most, without what it
    shares with others; None where it cannot be measured."""
    micro_batch: int | None = None
    """How many sequences go through at once, where memory was too short for the batch."""


@dataclass(frozen=True)
class Ended:
    """An attempt is over, and what ran it is free again."""

    trial: str
    attempt: int
    """As the job had it: what is said late, or twice, of an earlier attempt is not heard."""
    end: str
    """``complete``, ``diverged`` or ``failed``; ``timed_out``, ``paused`` (at a rung) or ``interrupted``, all three by
    a checkpoint; ``stale`` where what the plan was made from is gone, which concerns every trial; or ``lost`` with its
    worker."""
    error: str | None = None
    """One line: the exception of a failure, or what the worker died of; of ``stale``, all that is to be said."""
    cause: str | None = None
    """``oom`` where the exception says that memory was too short."""


class Pool(Protocol):
    """An executor at work. One thread uses it; no call but ``reports`` waits."""

    def room(self, need: Need) -> Room:
        """How many trials that need this run at once; cheap, and never more than it said before.

        It may become less where trials turn out to take more memory than was foreseen; what runs then goes on.
        """
        ...

    def submit(self, job: Job) -> None:
        """Start an attempt; the caller keeps no more than :meth:`room` says of them running."""
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

    def kill(self, trial: str) -> None:
        """End the attempt at this trial at once, which hangs; it then reports ``lost``."""
        ...

    def close(self) -> None:
        """End everything at once; nothing runs any more when this returns."""
        ...


class Executor(Component):
    """Runs trials somewhere."""

    slot: ClassVar[str] = "executor"
    default: ClassVar[str | None] = "local"

    def room(self, need: Need) -> Room:
        """How many trials that need this would run at once, as far as can be said before."""
        return Room(1, "one after another")

    @abstractmethod
    def open(self, trainer: str = TRAINER) -> Pool:
        """Begin to get ready and return at once, so that slow imports overlap with planning.

        The pool belongs to the caller, who closes it.
        """
