"""How far a checkpoint has come, in a file beside it: to read a step, nothing of torch is needed."""

from __future__ import annotations

from ablate.records.layout import AttemptFolder, TrialFolder, read_json
from ablate.records.sealing import write_json


def note_step(attempt: AttemptFolder, step: int) -> None:
    """Say which step the attempt's checkpoint has reached; only once the checkpoint is on the disk."""
    write_json(attempt.checkpoint_step, {"step": step})


def noted_step(attempt: AttemptFolder) -> int | None:
    """The step that the attempt's checkpoint has reached; None without a checkpoint, or where it cannot be told."""
    if not attempt.checkpoint.exists():
        return None
    try:
        step = read_json(attempt.checkpoint_step).get("step")
    except (OSError, ValueError):
        return None
    return step if isinstance(step, int) and not isinstance(step, bool) else None


def furthest_step(folder: TrialFolder, *, before: int | None = None) -> int | None:
    """The furthest step that a checkpoint of the trial has reached, or of its attempts before one; else None."""
    attempts = [attempt for attempt in folder.attempts() if before is None or attempt.number < before]
    return max((step for attempt in attempts if (step := noted_step(attempt)) is not None), default=None)
