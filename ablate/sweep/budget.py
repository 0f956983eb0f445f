"""The limits of a study's budget, watched while it runs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from ablate.records.layout import StudyFolder, TrialFolder
from ablate.records.usage import Use, folder_size, trained_seconds

MEASURE = 1.0
"""Seconds between two looks at the disk at least."""
SHARE = 0.01
"""Share of the time that looking at the disk may take: a large study is measured more seldom."""


class Budget:
    """What is used of the limits of a plan's budget, those of one call included."""

    def __init__(self, study: StudyFolder, plan: Mapping[str, Any], began: float) -> None:
        """Take what earlier calls have used from the study's folder; this one began at ``began`` (monotonic)."""
        limits = plan["budget"]
        self._hours, self._wall, self._disk = (limits.get(name) for name in ("gpu_hours", "wall", "disk"))
        self._study = study
        self._began = began
        self._trained: dict[str, float] = {}
        """Seconds of training that each trial's folder tells of."""
        if self._hours is not None:
            self._trained = {folder.id: trained_seconds(folder) for folder in study.trials()}
        self._total = math.fsum(self._trained.values())
        self._since: dict[str, float] = {}
        """When each running trial made its first step in this call."""
        self._started = False
        """Whether this call has made a step, or seen a trial to its end."""
        self._size = 0
        self._measure_at = -math.inf

    def exhausted(self) -> Use | None:
        """The first limit that is reached, if one is."""
        now = time.monotonic()
        if self._hours is not None:
            running = sum(now - since for since in self._since.values())
            if (use := Use("gpu_hours", self._hours, (self._total + running) / 3600)).reached:
                return use
        if self._wall is not None and (use := Use("wall", self._wall, now - self._began, self._started)).reached:
            return use
        if self._disk is not None and (use := Use("disk", self._disk, self._on_disk(now))).reached:
            return use
        return None

    def trains(self, trial: str) -> None:
        """A trial has made a step: what came before, as its imports, is no training."""
        self._since.setdefault(trial, time.monotonic())
        self._started = True

    def ended(self, folder: TrialFolder) -> None:
        """An attempt is over; its folder tells how long it has trained."""
        self._started = True
        self._since.pop(folder.id, None)
        if self._hours is not None:
            seconds = trained_seconds(folder)
            self._total += seconds - self._trained.get(folder.id, 0.0)
            self._trained[folder.id] = seconds

    def _on_disk(self, now: float) -> int:
        if now >= self._measure_at:
            self._size = folder_size(self._study.path)
            took = time.monotonic() - now
            self._measure_at = now + max(MEASURE, took / SHARE)
        return self._size
