"""Executors: where trials run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ablate.slots import TRAINER, Executor, Pool


class Local(Executor):
    """Worker processes on this machine: one a core (of `threads` threads each), or one a GPU."""

    kind: Literal["local"] = "local"
    parallel: Annotated[int, Field(ge=1, le=1024)] | Literal["auto"] = "auto"
    """How many trials at once; `auto` takes every core that this process may use, or every GPU."""

    def places(self, device: str, threads: int) -> int:
        """One a GPU; else one for every ``threads`` cores; or ``parallel``."""
        from ablate.sweep.local import places  # noqa: PLC0415

        return places(self.parallel, device, threads)

    def open(self, trainer: str = TRAINER) -> Pool:
        """Start to import what trials need, in a process of its own."""
        # Naming an executor in an experiment must not cost the command line the engine's imports.
        from ablate.sweep.local import LocalPool  # noqa: PLC0415

        return LocalPool(self.parallel, trainer)
