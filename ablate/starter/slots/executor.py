"""An executor of my own: where trials run."""

from __future__ import annotations

from typing import Literal

from ablate.slots import TRAINER, Executor, Need, Pool, Room
from pydantic import Field


class MyComponent(Executor):
    """Worker processes on this machine, a few at once; begin with what `open` gives.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    workers: int = Field(1, ge=1, le=1024)
    """How many trials at once."""

    def room(self, need: Need) -> Room:
        """How many trials would run at once, as far as can be said before, and what limits it."""
        return Room(self.workers, "as `workers` says")

    def open(self, trainer: str = TRAINER) -> Pool:
        """A pool: what it must do is in `ablate.slots.Pool`, this one is an example."""
        # What is slow to import is imported here, where trials are run.
        from ablate.sweep.workers.local import LocalPool

        return LocalPool(self.workers, trainer)
