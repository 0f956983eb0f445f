"""A trainer whose import leaves a second thread behind, as some libraries do."""

from __future__ import annotations

import threading

from tests.ablate.sweep.stub_trainer import train

__all__ = ["preload", "train"]


def preload() -> None:
    """Start a thread that never ends."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()
