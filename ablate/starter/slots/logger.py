"""A logger of my own: where a trial's course is shown beside Ablate's own records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ablate.slots import Logger
from pydantic import Field

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger as LightningLogger


class MyComponent(Logger):
    """Write the course into the attempt's folder, a line of JSON for each step.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    every: int = Field(1, ge=1)
    """Steps of which one is written."""

    def build(self, folder: Path, name: str) -> LightningLogger:
        """One of Lightning's loggers, or one that derives from them, as here."""
        # What is slow to import is imported here, where a trial is trained.
        from pytorch_lightning.loggers import Logger as LightningLogger

        every = self.every

        class Lines(LightningLogger):
            name, version = "my_component", 0

            def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
                self._write({"settings": dict(params)})

            def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
                if (step or 0) % every == 0:
                    self._write({"step": step, **metrics})

            def _write(self, values: Mapping[str, Any]) -> None:
                with (folder / "my_component.jsonl").open("a", encoding="utf-8") as file:
                    file.write(json.dumps(values, default=str) + "\n")

        return Lines()
