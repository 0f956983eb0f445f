"""Trials that have hung: a trial times out between two steps, and one that never ends its step would run for ever."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ablate.records.layout import TrialFolder
from ablate.records.usage import trained_seconds

GRACE = 300.0
"""Seconds that a trial may say nothing once its time is up; an evaluation at that moment takes a while."""


@dataclass
class _Clock:
    up: float
    """When its time is up, if it trains all the while."""
    heard: float
    """When it last said something."""


class Silence:
    """Knows since when each running trial has said nothing, and which one has hung."""

    def __init__(self, timeout: float | None) -> None:
        """``timeout`` is the budget's ``trial_timeout``; without one a trial may take as long as it likes."""
        self._timeout = timeout
        self._clocks: dict[str, _Clock] = {}
        self._hung: set[str] = set()

    def begins(self, folder: TrialFolder) -> None:
        """An attempt at this trial is handed out."""
        if self._timeout is not None:
            now = time.monotonic()
            self._clocks[folder.id] = _Clock(now + max(0.0, self._timeout - trained_seconds(folder)), now)

    def hears(self, trial: str) -> None:
        """The trial has said something."""
        if trial in self._clocks:
            self._clocks[trial].heard = time.monotonic()

    def hung(self) -> list[str]:
        """The trials that are to be ended: their time is up, and they have said nothing since, or for long."""
        now = time.monotonic()
        found = [trial for trial, clock in self._clocks.items() if now - max(clock.up, clock.heard) >= GRACE]
        for trial in found:
            del self._clocks[trial]
        self._hung.update(found)
        return found

    def ended(self, trial: str) -> str | None:
        """The attempt is over; why it was ended, if it had hung."""
        self._clocks.pop(trial, None)
        if trial not in self._hung:
            return None
        self._hung.discard(trial)
        return (
            f"`trial_timeout` is {self._timeout:,g} s, and it said nothing for {GRACE:,g} s more; its worker was ended"
        )
