"""What training minimises: the loss of a batch, and what modules of slot ``auxiliary`` add to it."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ablate.slots import Batch, Loss


class TrainingLoss:
    """The loss of a network on a batch; called for one network at a time, in its training or evaluation mode."""

    def __init__(self, network: nn.Module, loss: Loss) -> None:
        self._network = network
        self._loss = loss
        self._added: list[Tensor] = []
        self.adds: str | None = None
        """The path of a module that adds to the loss, or None where none does."""
        for module in network.modules():
            site: Any = getattr(module, "site", None)
            if getattr(site, "slot", None) == "auxiliary":
                self.adds = self.adds or str(site.path)
                module.register_forward_hook(self._note)

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The logits, and the loss with all that is added to it: a scalar."""
        self._added = []
        logits: Tensor = self._network(*batch.inputs)
        loss = self._loss.measure(logits.flatten(0, -2).float(), batch.targets.flatten())
        for added in self._added:
            loss = loss + added
        self._added = []
        return logits, loss

    def _note(self, module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        self._added.append(output)
