"""Peak memory is that of one trial, or unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate.training import memory
from ablate.training.memory import PeakMemory


def test_a_peak_is_forgotten_when_the_next_begins() -> None:
    first = PeakMemory("cpu")
    held = bytearray(200_000_000)
    largest = first.read()
    del held
    after = PeakMemory("cpu").read()
    assert largest
    assert after
    assert largest - after > 150_000_000


def test_where_it_cannot_be_reset_it_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "_CLEAR", tmp_path / "nowhere" / "clear_refs")
    assert PeakMemory("cpu").read() is None
