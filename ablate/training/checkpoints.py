"""Checkpoints: written whole or not at all; the newest readable one wins, and a broken one is said."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from ablate.records.layout import AttemptFolder, TrialFolder
from ablate.records.sealing import replacing
from ablate.records.steps import note_step

log = logging.getLogger(__name__)
FORMAT = 3


def save(attempt: AttemptFolder, state: dict[str, Any]) -> None:
    """Replace the attempt's checkpoint, durably."""
    with replacing(attempt.checkpoint) as temporary:
        _write({"format": FORMAT, **state}, temporary)
    note_step(attempt, state["done"], state.get("history", {}).get("seconds"))


def _write(state: dict[str, Any], path: Path) -> None:
    """Write to a file that is ours: where the disk takes no more, torch says so of such a file alone."""
    try:
        with path.open("wb") as file:
            torch.save(state, file)
    except RuntimeError as error:
        if isinstance(cause := error.__context__, OSError):
            raise OSError(cause.errno, cause.strerror, str(path)) from error
        raise


def newest(folder: TrialFolder) -> dict[str, Any] | None:
    """The newest checkpoint of any attempt that can be read; tensors are on the CPU, and no code is run."""
    for attempt in reversed(folder.attempts()):
        if not attempt.checkpoint.exists():
            continue
        try:
            state = torch.load(attempt.checkpoint, map_location="cpu", weights_only=True)
            if state["format"] == FORMAT:
                return dict(state)
            log.warning("the checkpoint of attempt %d has another format and is not used", attempt.number)
        except Exception as error:  # a torn file raises whatever its bytes happen to mean
            log.warning("the checkpoint of attempt %d cannot be read (%s) and is not used", attempt.number, error)
    return None
