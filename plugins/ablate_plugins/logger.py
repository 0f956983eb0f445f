"""Loggers: where a trial's course is shown beside Ablate's own records.

Each is Lightning's. What they need is imported where it is used: naming a logger in an experiment must not cost the
command line the imports of training.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from ablate.slots import Logger

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger as LightningLogger


class Csv(Logger):
    """Write `csv/metrics.csv` into the attempt's folder, and the trial's settings beside it."""

    kind: Literal["csv"] = "csv"

    def build(self, folder: Path, name: str) -> LightningLogger:
        """Lightning's CSVLogger."""
        from pytorch_lightning.loggers import CSVLogger  # noqa: PLC0415

        return CSVLogger(folder, name="", version="csv")


class TensorBoard(Logger):
    """Write event files into the attempt's folder, for `tensorboard --logdir runs/NAME`."""

    kind: Literal["tensorboard"] = "tensorboard"

    needs: ClassVar[Mapping[str, str]] = {"tensorboard": "ablate-arch[tensorboard]"}

    def build(self, folder: Path, name: str) -> LightningLogger:
        """Lightning's TensorBoardLogger, in a folder of the attempt's name: TensorBoard calls a run by its folder."""
        from pytorch_lightning.loggers import TensorBoardLogger  # noqa: PLC0415

        run = re.sub(r"[^\w.=+-]+", "_", name)[:100]
        return TensorBoardLogger(folder, name="tensorboard", version=run, default_hp_metric=False)


class WeightsAndBiases(Logger):
    """Send the course to Weights & Biases, one run an attempt."""

    kind: Literal["wandb"] = "wandb"
    project: str = "ablate"
    """The project that the runs are filed under."""
    offline: bool = False
    """Keep the runs in the attempts' folders, for `wandb sync` to send later."""

    needs: ClassVar[Mapping[str, str]] = {"wandb": "ablate-arch[wandb]"}

    def build(self, folder: Path, name: str) -> LightningLogger:
        """Lightning's WandbLogger, which ends its run when the trial ends."""
        from pytorch_lightning.loggers import WandbLogger  # noqa: PLC0415

        class OneRun(WandbLogger):
            def finalize(self, status: str) -> None:
                super().finalize(status)
                # Lightning leaves the run open until the process ends, and a worker's next trial would go on in it.
                self.experiment.finish(exit_code=int(status == "failed"))

        return OneRun(name=name, save_dir=folder, project=self.project, offline=self.offline)


class MLflow(Logger):
    """Send the course to MLflow, one run an attempt."""

    kind: Literal["mlflow"] = "mlflow"
    experiment: str = "ablate"
    """The experiment that the runs are filed under."""
    tracking_uri: str | None = None
    """Where MLflow keeps them, as `http://localhost:5000`; by default where MLflow itself would: what
    MLFLOW_TRACKING_URI says, or a file `mlflow.db` where the command is given."""

    needs: ClassVar[Mapping[str, str]] = {"mlflow": "ablate-arch[mlflow]"}

    def build(self, folder: Path, name: str) -> LightningLogger:
        """Lightning's MLFlowLogger."""
        import mlflow  # noqa: PLC0415
        from pytorch_lightning.loggers import MLFlowLogger  # noqa: PLC0415

        # The first look makes the experiment, and a local file with all its tables: workers that start together would
        # all make them, and fail.
        with _one_at_a_time(folder.parent.parent):
            logger = MLFlowLogger(
                self.experiment, run_name=name, tracking_uri=self.tracking_uri or mlflow.get_tracking_uri()
            )
            _ = logger.experiment
        return logger


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder that all trials of a study lie in, where the file system has such locks."""
    import fcntl  # noqa: PLC0415  # components are listed on systems without it too; there, nothing is trained

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
