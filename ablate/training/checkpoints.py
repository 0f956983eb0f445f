"""Checkpoints: written whole or not at all; the newest readable one wins, and a broken one is said."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ablate.records.layout import AttemptFolder, TrialFolder
from ablate.records.sealing import replacing
from ablate.records.steps import note_step

log = logging.getLogger(__name__)
FORMAT = 3


def save(attempt: AttemptFolder, state: dict[str, Any], *, last: bool = False) -> None:
    """Replace the attempt's checkpoint, durably; after the ``last`` one the result is sealed, which tells its step."""
    with replacing(attempt.checkpoint) as temporary:
        write({"format": FORMAT, **state}, temporary)
    note_step(attempt, state["done"], _own_seconds(state.get("history", {})), durable=not last)


def write(state: dict[str, Any], path: Path) -> None:
    """Write to a file that is ours: where the disk takes no more, torch says so of such a file alone."""
    try:
        with path.open("wb") as file:
            torch.save(state, file)
    except RuntimeError as error:
        if isinstance(cause := error.__context__, OSError):
            raise OSError(cause.errno, cause.strerror, str(path)) from error
        raise


def read(attempt: AttemptFolder) -> dict[str, Any]:
    """The attempt's checkpoint; tensors are on the CPU, and no code is run.

    Raises:
        Exception: it cannot be read; a torn file raises whatever its bytes happen to mean.
    """
    state = dict(torch.load(attempt.checkpoint, map_location="cpu", weights_only=True))
    if state["format"] != FORMAT:
        raise ValueError(f"its format is {state['format']}, and not {FORMAT}")
    return state


def newest(folder: TrialFolder) -> dict[str, Any] | None:
    """The newest checkpoint of any attempt that can be read, as :func:`read` gives it."""
    for attempt in reversed(folder.attempts()):
        if not attempt.checkpoint.exists():
            continue
        try:
            return read(attempt)
        except Exception as error:  # a torn file raises whatever its bytes happen to mean
            log.warning("the checkpoint of attempt %d cannot be read (%s) and is not used", attempt.number, error)
    return None


def newest_of_fewer_steps(folder: TrialFolder, trial: str, steps: int) -> dict[str, Any] | None:
    """What a trial of so many steps goes on from where the same trial of fewer steps ended.

    Args:
        folder: the folder of the longer trial.
        trial: the shorter one, which lies beside it.
        steps: how many the longer one has.
    """
    state = newest(TrialFolder(folder.path.with_name(trial)))
    if state is None or not state["done"] < steps:
        log.warning("no checkpoint of trial %s can be used, so this trial is trained from the start", trial)
        return None
    history = state["history"]
    begun = {"trial": trial, "steps": state["done"], "seconds": history["seconds"]}
    return {**state, "history": {**history, "continued_from": begun}}


def discard(folder: TrialFolder, but: AttemptFolder | None) -> None:
    """Remove the checkpoints of a trial whose result is sealed, which nothing goes on from; all but one attempt's."""
    for attempt in folder.attempts():
        if attempt != but:
            try:
                attempt.checkpoint.unlink(missing_ok=True)
                attempt.checkpoint_step.unlink(missing_ok=True)
            except OSError as error:  # the result is sealed: what is left over costs space, and `ablate gc` removes it
                log.warning("the checkpoint of attempt %d cannot be removed (%s)", attempt.number, error)


def _own_seconds(history: Mapping[str, Any]) -> float | None:
    """What the trial itself has trained, without the one of fewer steps that it went on from."""
    seconds, before = history.get("seconds"), history.get("continued_from")
    return seconds if seconds is None or before is None else seconds - before["seconds"]
