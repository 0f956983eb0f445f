"""What tasks count when they judge a network: sums that add up over batches."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from ablate.slots import IGNORED


def tally(logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """``nats`` (summed cross-entropy, float64 where there is one), ``correct`` and ``count`` over targets that count.

    Args:
        logits: (..., V).
        targets: (...), or ``IGNORED``.
    """
    flat, wanted = logits.flatten(0, -2).float(), targets.flatten()
    nats = cross_entropy(flat, wanted, ignore_index=IGNORED, reduction="none")
    precise = nats if nats.device.type == "mps" else nats.double()  # MPS has no float64
    counted = wanted != IGNORED
    correct = (flat.argmax(-1) == wanted) & counted
    return {"nats": precise.sum(), "correct": correct.sum(), "count": counted.sum()}
