"""Does an A/A experiment, whose arms are all the same, find more than chance allows?

Run as ``python -m tests.studies.aa runs/aa`` after ``ablate run experiments/aa.yaml``; exit code 1 where it does.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ablate.analysis.results import Results
from ablate.errors import InputError
from tests.studies.simulation import ALIKE, NONE, Case, Estimates, claims

STUDIES = 100_000
"""Simulated A/A studies."""
CHUNK = 10_000
ALLOWED = 0.99
"""How often a calibrated analysis stays within the bound."""


@dataclass(frozen=True)
class Judged:
    """How many arms of an A/A study got a word that they must not get, and how many may."""

    arms: int
    seeds: int
    claimed: int
    """Arms that are called better or worse, size uncertain or not."""
    bound: int
    """So many, at most, in 99 of 100 calibrated studies."""

    @property
    def passes(self) -> bool:
        """Whether chance alone explains it."""
        return self.claimed <= self.bound

    def __str__(self) -> str:
        found = f"{self.claimed} of {self.arms} arms, with {self.seeds} seeds, are called better or worse"
        allowed = f"a calibrated analysis calls so at most {self.bound} in {ALLOWED:.0%} of such experiments"
        return f"{found}; {allowed}: {'PASS' if self.passes else 'MISS'}"


def bound(arms: int, seeds: int) -> int:
    """The 99% quantile of how many arms are falsely called better or worse where noise is normal.

    They are wrong together, since they share a baseline; and no interval is so narrow that it makes no practical
    difference, which would be the easier case.
    """
    case, rng = Case(ALIKE[0], arms, seeds, effects=False), np.random.default_rng(0)
    parts = [
        claims(Estimates.of(case.differences(rng, CHUNK)).words(NONE)).sum(axis=1) for _ in range(0, STUDIES, CHUNK)
    ]
    return int(np.quantile(np.concatenate(parts), ALLOWED, method="inverted_cdf"))


def judge(folder: Path) -> Judged:
    """Count the words of a study's verdicts.

    Raises:
        ValueError: an arm is more than the baseline under another stream, or a trial has not ended.
    """
    results = Results(folder)
    if not (results.complete and same(results.plan["arms"])):
        raise ValueError(f"{folder} is no complete A/A study")
    words, seeds = [verdict.word for verdict in results.verdicts()], len(results.plan["seeds"])
    claimed = sum(word.startswith(("better", "worse")) for word in words)
    return Judged(len(words), seeds, claimed, bound(len(words), seeds))


def same(arms: Sequence[Mapping[str, Any]]) -> bool:
    """Whether arms are equal but for their streams."""
    first, *others = (
        {**arm["config"], "training": {**arm["config"]["training"], "stream": None}, "steps": arm.get("steps")}
        for arm in arms
    )
    return all(other == first for other in others)


def main(folder: Path) -> int:
    """Print what a study's verdicts claim; 0 where chance alone explains it, else 1."""
    try:
        judged = judge(folder)
    except (ValueError, InputError) as error:
        print(error, file=sys.stderr)
        return 1
    print(judged)
    return 0 if judged.passes else 1


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
