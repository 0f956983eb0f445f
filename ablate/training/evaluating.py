"""The fixed evaluation set of a trial, in as many pieces as memory asks for."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from ablate.slots import Batch, Task
from ablate.training.out_of_memory import OutOfMemoryError, first_line, ran_out_of_memory
from ablate.training.splitting import cut, free

log = logging.getLogger(__name__)


class Evaluation:
    """Judges a network on the same batches each time; sums make a batch that is cut count as one that is not."""

    def __init__(self, network: nn.Module, task: Task, batches: Sequence[Batch]) -> None:
        """Nothing is evaluated yet."""
        self._network = network
        self._task = task
        self._batches = batches
        self.at_once = max((len(batch.targets) for batch in batches), default=1)
        """So many rows go through the network at once."""

    @torch.no_grad()
    def __call__(self, device: torch.device, forward: Callable[..., Mapping[str, Tensor]]) -> dict[str, float]:
        """The task's metrics; ``forward`` calls what it is given with the arguments, in the trial's precision."""
        self._network.eval()
        totals: dict[str, Tensor] = {}
        sums_on = torch.device("cpu") if device.type == "mps" else device  # MPS has no float64
        pieces = deque(self._batches)
        while pieces:
            piece = pieces.popleft()
            if len(piece.targets) > self.at_once:
                pieces.extendleft(reversed(cut(piece, self.at_once)))
                continue
            found = self._tally(piece, device, forward)
            if found is None:
                pieces.appendleft(piece)
                continue
            for name, value in found.items():
                more = value.to(sums_on, torch.float64)
                totals[name] = totals[name] + more if name in totals else more
        self._network.train()
        told = self._task.metrics({name: float(total) for name, total in totals.items()})
        return {name: float(value) for name, value in told.items()}

    def _tally(
        self, batch: Batch, device: torch.device, forward: Callable[..., Mapping[str, Tensor]]
    ) -> Mapping[str, Tensor] | None:
        """The task's sums over a batch; None where memory is too short, and half as many rows are to be tried.

        Raises:
            OutOfMemoryError: memory is too short for a single sequence.
        """
        try:
            return forward(self._task.tally, self._network, batch.to(device))
        except Exception as error:
            if not ran_out_of_memory(error):
                raise
            if len(batch.targets) == 1:
                raise OutOfMemoryError(f"in the evaluation of one sequence: {first_line(error)}") from error
        self.at_once = len(batch.targets) // 2
        free()
        log.warning(
            "out of memory in the evaluation of %d sequences at a time: it goes on with %d, which changes no metric",
            len(batch.targets),
            self.at_once,
        )
        return None
