"""Executors: where trials run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ablate.slots import TRAINER, Executor, Need, Pool, Room

Count = Annotated[int, Field(ge=1, le=1024)] | Literal["auto"]


class Local(Executor):
    """Worker processes on this machine: one a core (of `threads` threads each) as far as memory goes, or some a GPU."""

    kind: Literal["local"] = "local"
    parallel: Count = "auto"
    """How many trials at once; `auto`: as many as the cores that this process may use, or the GPUs, have room for."""
    per_gpu: Count = 1
    """How many trials share a GPU where `parallel` is `auto`; `auto`: as many as its memory holds."""

    def room(self, need: Need) -> Room:
        """As many trials as there are cores or GPUs, and as their memory holds; or ``parallel``."""
        from ablate.sweep.workers.machine import this_machine  # noqa: PLC0415
        from ablate.sweep.workers.placing import seats  # noqa: PLC0415

        machine = this_machine(need.device, weigh=self.per_gpu == "auto")
        return seats(need, machine, self.parallel, self.per_gpu).room

    def open(self, trainer: str = TRAINER) -> Pool:
        """Start to import what trials need, in a process of its own."""
        # Naming an executor in an experiment must not cost the command line the engine's imports.
        from ablate.sweep.workers.local import LocalPool  # noqa: PLC0415

        return LocalPool(self.parallel, trainer, per_gpu=self.per_gpu)
