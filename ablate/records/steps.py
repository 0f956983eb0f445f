"""How far a checkpoint has come, in a file beside it: to read a step, nothing of torch is needed."""

from __future__ import annotations

import math

from ablate.records.layout import AttemptFolder, TrialFolder, read_json
from ablate.records.sealing import dumps, replacing


def note_step(attempt: AttemptFolder, step: int, seconds: float | None = None, *, durable: bool = True) -> None:
    """Say how far the attempt's checkpoint has come; only once the checkpoint is on the disk.

    Args:
        attempt: whose checkpoint it is.
        step: the step that it has reached.
        seconds: how long the trial has trained up to there, over all attempts.
        durable: whether to wait until it is on the disk.
    """
    told = {"step": step} | ({} if seconds is None else {"seconds": seconds})
    with replacing(attempt.checkpoint_step, durable=durable) as temporary:
        temporary.write_text(dumps(told), encoding="utf-8")


def noted_step(attempt: AttemptFolder) -> int | None:
    """The step that the attempt's checkpoint has reached; None without a checkpoint, or where it cannot be told."""
    step = _noted(attempt, "step")
    return step if isinstance(step, int) and not isinstance(step, bool) else None


def noted_seconds(attempt: AttemptFolder) -> float:
    """How long the trial had trained, over all attempts, at the attempt's checkpoint; 0 where that cannot be told."""
    seconds = _noted(attempt, "seconds")
    return float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < math.inf else 0.0


def furthest_step(folder: TrialFolder, *, before: int | None = None) -> int | None:
    """The furthest step that a checkpoint of the trial has reached, or of its attempts before one; else None."""
    attempts = [attempt for attempt in folder.attempts() if before is None or attempt.number < before]
    return max((step for attempt in attempts if (step := noted_step(attempt)) is not None), default=None)


def _noted(attempt: AttemptFolder, key: str) -> object:
    if not attempt.checkpoint.exists():
        return None
    try:
        return read_json(attempt.checkpoint_step).get(key)
    except (OSError, ValueError):
        return None
