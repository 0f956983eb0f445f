"""The slot of loggers, which take a trial's course to where the user looks at it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ablate.slots.component import Component

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger as LightningLogger


class Logger(Component):
    """Shows a trial's course elsewhere too, beside Ablate's own records.

    It is told the trial's settings once, and then, under the names and steps of Ablate's own curves, ``train/loss``,
    ``grad_norm/global`` and ``lr`` of every step (some steps at a time) and the task's metrics at each evaluation. What
    it raises costs the trial nothing: the trial goes on without it, and says so in the attempt's log.
    """

    slot: ClassVar[str] = "logger"
    needs: ClassVar[Mapping[str, str]] = {}
    """The packages that `build` imports and that may be missing, each with what `pip install` brings it by."""

    @abstractmethod
    def build(self, folder: Path, name: str) -> LightningLogger:
        """A Lightning logger for one attempt at a trial.

        Args:
            folder: the attempt's folder, for what is kept in files; a name of its own there is the logger's to take.
            name: what the attempt is called, as ``placement=post, seed=0``, and from the second on ``..., attempt=2``.
        """
