"""Lightning alone, in plain processes with the trials packed; the module is also what Ray Tune and Hydra drive."""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings

_began = time.perf_counter()

import pytorch_lightning as pl  # noqa: E402
import torch  # noqa: E402
from pytorch_lightning.utilities.types import OptimizerLRSchedulerConfig  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

from ablate.model.keys import generator  # noqa: E402
from ablate.slots import Batch, Data  # noqa: E402
from tests.benchmarks.ways.trials import BATCH, EVALUATIONS, Measured, Parts, name, packed, parts  # noqa: E402


def measure(steps: int, cores: int) -> Measured:
    """Train all trials."""
    return packed("tests.benchmarks.ways.bare_lightning", steps, cores)


class Batches(Dataset[Batch]):
    """The batches of a trial, one a step."""

    def __init__(self, data: Data, seed: int, steps: int) -> None:
        self._data, self._seed, self._steps = data, seed, steps

    def __len__(self) -> int:
        return self._steps

    def __getitem__(self, step: int) -> Batch:
        return self._data.batch(BATCH, generator(self._seed, "data", step))


class Module(pl.LightningModule):
    """What a user would write for these trials."""

    def __init__(self, made: Parts, steps: int) -> None:
        super().__init__()
        self.network, self._made, self._steps = made.network, made, steps
        self._total, self._count = 0.0, 0
        self.loss = float("nan")

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        factor = self._made.schedule.factor
        schedule = torch.optim.lr_scheduler.LambdaLR(self._made.optimizer, lambda step: factor(step, self._steps))
        return {"optimizer": self._made.optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        # Lightning sums the norm in the order of the optimizer's groups: other rounding, which 300 steps make large.
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)

    def training_step(self, batch: Batch, index: int) -> torch.Tensor:
        return cross_entropy(self.network(*batch.inputs).flatten(0, 1), batch.targets.flatten())

    def validation_step(self, batch: Batch, index: int) -> None:
        logits = self.network(*batch.inputs).flatten(0, 1)
        self._total += float(cross_entropy(logits, batch.targets.flatten(), reduction="sum"))
        self._count += batch.targets.numel()

    def on_validation_epoch_end(self) -> None:
        self.loss, self._total, self._count = self._total / self._count, 0.0, 0


def train(placement: str, seed: int, steps: int) -> float:
    """Train one trial; gives its last loss."""
    torch.set_num_threads(1)
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)
    made = parts(placement, seed)
    module = Module(made, steps)
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=1,
        val_check_interval=steps // EVALUATIONS,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the loaders have no workers, which would cost more than they bring
        trainer.fit(
            module,
            DataLoader(Batches(made.data, seed, steps), batch_size=None),
            DataLoader(list(made.data.evaluation(4 * BATCH)), batch_size=None),  # type: ignore[arg-type]
        )
    return module.loss


def main() -> None:
    """Train the trials that are named, and print what they came to."""
    imported = time.perf_counter()
    steps, trials = int(sys.argv[1]), json.loads(sys.argv[2])
    losses = {name(placement, seed): train(placement, seed, steps) for placement, seed in trials}
    print(json.dumps({"losses": losses, "import": imported - _began, "train": time.perf_counter() - imported}))


if __name__ == "__main__":
    main()
