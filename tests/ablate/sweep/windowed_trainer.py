"""The real trainer, in processes that wait in the windows that a test has armed; see `windows`."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO
from unittest.mock import patch

import torch

from ablate.records.layout import AttemptFolder, TrialFolder
from ablate.registry import Registry
from ablate.training import trial
from tests.ablate.sweep.windows import Windows

preload = trial.preload
_CHECKPOINT = AttemptFolder(Path("a001")).checkpoint.name
_RESULT = TrialFolder(Path("t")).result.name
_windows = Windows.of_environment()


def _around(call: Callable[..., Any], file: str, window: str) -> Callable[..., Any]:
    def publish(source: Any, target: Any, **options: Any) -> Any:
        within = Path(target).name == file
        if within:
            _windows.pause(f"{window}-before")
        done = call(source, target, **options)
        if within:
            _windows.pause(f"{window}-after")
        return done

    return publish


def _half_saved(save: Callable[..., None]) -> Callable[..., None]:
    def write(state: Any, file: BinaryIO) -> None:
        if _windows.armed() == "checkpoint-half":
            whole = io.BytesIO()
            save(state, whole)
            file.write(whole.getvalue()[: len(whole.getvalue()) // 2])
            file.flush()
            _windows.pause("checkpoint-half")
            file.seek(0)
        save(state, file)

    return write


# This module is imported by the processes that train, and by no other.
patch.object(os, "replace", _around(os.replace, _CHECKPOINT, "checkpoint")).start()
patch.object(os, "link", _around(os.link, _RESULT, "sealing")).start()
patch.object(torch, "save", _half_saved(torch.save)).start()


def train(
    folder: TrialFolder, attempt: int, registry: Registry, *, should_stop: Callable[[], bool], **options: Any
) -> str:
    """Train; ``training-N`` is the moment after the Nth step since it was armed."""
    _windows.note()
    steps = {"": 0}

    def asked() -> bool:
        window = _windows.armed() or ""
        if window.startswith("training-"):
            steps[window] = steps.get(window, 0) + 1
            if steps[window] >= int(window.removeprefix("training-")):
                _windows.pause(window)
        return should_stop()

    return trial.train(folder, attempt, registry, should_stop=asked, **options)
