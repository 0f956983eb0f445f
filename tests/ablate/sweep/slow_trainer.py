"""A trainer whose import takes its time."""

from __future__ import annotations

import time

from tests.ablate.sweep.stub_trainer import train

__all__ = ["preload", "train"]


def preload() -> None:
    """Take longer than anybody waits."""
    time.sleep(60)
