"""What can be said of differences paired by seed: an estimate, its intervals and its tests.

Sources: Student's t for the mean of the differences; the sign-flip test (Fisher 1935); Holm 1979; Wilson 1927.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special, stats

ALPHA = 0.05
"""One minus the confidence of every interval; for simultaneous ones, of all of them together."""
EXACT = 20
"""Up to so many pairs the sign-flip test goes through every one of the 2^n flips; beyond, through random ones."""
FLIPS = 100_000
"""Random flips of the sign-flip test where there are too many to go through."""
LEAST_PAIRS = 3
"""With fewer pairs than these, the spread of the differences says nothing of how many seeds would be enough."""
MOST_SEEDS = 1_000
"""A number of seeds that would settle an effect is not given beyond this."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Contrast:
    """A mean difference over seeds; what cannot be computed is NaN, as an interval whose bounds no float holds.

    ``low`` and ``high`` hold together for the whole family (Bonferroni) and carry the verdict; ``low95`` and ``high95``
    are for this contrast alone. ``agree`` counts the differences that have the mean's sign.
    """

    pairs: int
    effect: float
    low: float
    high: float
    low95: float
    high95: float
    p: float
    p_sign_flip: float
    agree: int
    identical: bool
    sd: float

    def columns(self) -> dict[str, float]:
        """Its estimate by the names that frames have for it, with ``seeds`` for the pairs."""
        keys = ("effect", "low", "high", "low95", "high95", "p", "p_sign_flip", "agree")
        return {"seeds": self.pairs} | {key: getattr(self, key) for key in keys}


@np.errstate(over="ignore", invalid="ignore")
def contrast(differences: Sequence[float] | Floats, family: int) -> Contrast:
    """Estimate the mean of finite differences, one a seed, as one of ``family`` contrasts.

    One difference has no interval; none has no estimate either.
    """
    values = np.asarray(differences, dtype=float)
    n, nan = len(values), math.nan
    if n == 0:
        return Contrast(0, nan, nan, nan, nan, nan, nan, nan, 0, False, nan)
    effect, identical = _known(float(values.mean())), not values.any()
    agree = n if identical else int((np.sign(values) == np.sign(effect)).sum())
    if n == 1:
        return Contrast(1, effect, nan, nan, nan, nan, nan, nan, agree, identical, nan)
    # A mean of equal values is not always that value in floating point, and their spread then not quite zero.
    sd = 0.0 if (values == values[0]).all() else spread(values)
    error = sd / math.sqrt(n)
    p = 1.0 if identical else 0.0 if error == 0 else float(2 * special.stdtr(n - 1, -abs(effect) / error))
    together, alone = _about(effect, _t(n, family) * error), _about(effect, _t(n, 1) * error)
    return Contrast(n, effect, *together, *alone, p, sign_flip(values), agree, identical, sd)


def _known(value: float) -> float:
    return value if math.isfinite(value) else math.nan


def _about(effect: float, half: float) -> tuple[float, float]:
    low, high = effect - half, effect + half
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (math.nan, math.nan)


def scaled(values: Floats) -> tuple[Floats, int]:
    """The values over 2 to the power of the second, none beyond 1: nothing is rounded, and no square overflows."""
    power = int(np.frexp(np.abs(values).max(initial=0.0))[1])
    return np.ldexp(values, -power), power


@np.errstate(over="ignore", invalid="ignore")
def spread(values: Floats) -> float:
    """The standard deviation of values; NaN below two, or where no float holds their squares."""
    return _known(float(values.std(ddof=1))) if len(values) > 1 else math.nan


def _t(pairs: int, family: int) -> float:
    """Half the width of a simultaneous interval, in standard errors."""
    return float(special.stdtrit(pairs - 1, 1 - ALPHA / (2 * family)))


@lru_cache
def _half_widths(family: int) -> Floats:
    """Half the width of a simultaneous interval for each number of seeds from 2, in standard deviations."""
    seeds = np.arange(2, MOST_SEEDS + 1)
    return np.asarray(special.stdtrit(seeds - 1, 1 - ALPHA / (2 * family)) / np.sqrt(seeds), dtype=float)


def sign_flip(differences: Sequence[float] | Floats) -> float:
    """Two-sided p of the sign-flip test: the share of flips whose sum is at least as far from zero as the one seen.

    Exact up to :data:`EXACT` pairs, the smallest possible value being 2 / 2^n; beyond, from seeded random flips.
    """
    values, _ = scaled(np.asarray(differences, dtype=float))
    seen = abs(values.sum())
    slack = 1e-12 * np.abs(values).sum()
    if len(values) <= EXACT:
        # The sums of all flips are those of one half plus those of the other: of 2^20, 2 x 2^10 need be made.
        ours, theirs = (_flipped(half) for half in np.array_split(values, 2))
        least = seen - slack
        if least <= 0:
            return 1.0
        theirs.sort()
        above = len(theirs) - np.searchsorted(theirs, least - ours, side="left")
        below = np.searchsorted(theirs, -least - ours, side="right")
        return float((above + below).sum() / 2.0 ** len(values))
    rng = np.random.default_rng(0)
    far = sum(
        int((np.abs(rng.choice([-1.0, 1.0], (1000, len(values))) @ values) >= seen - slack).sum())
        for _ in range(FLIPS // 1000)
    )
    return (far + 1) / (FLIPS + 1)


def _flipped(values: Floats) -> Floats:
    """The sums of some numbers with each of their 2^n flips of signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def smallest_sign_flip(pairs: int) -> float:
    """The smallest p that the exact sign-flip test can give with so many pairs."""
    return min(1.0, 2.0 ** (1 - pairs))


def holm(p: Sequence[float], family: int) -> list[float]:
    """Holm's adjusted p over a family of planned tests; a test that has no p yet (NaN) counts as the largest."""
    adjusted, largest = [math.nan] * len(p), 0.0
    known = sorted((value, index) for index, value in enumerate(p) if not math.isnan(value))
    for rank, (value, index) in enumerate(known):
        largest = max(largest, min(1.0, (family - rank) * value))
        adjusted[index] = largest
    return adjusted


def wilson(count: int, total: int) -> tuple[float, float]:
    """Wilson's 95% interval for a share; NaN where there is nothing to take a share of."""
    if total == 0:
        return math.nan, math.nan
    z2 = float(special.ndtri(1 - ALPHA / 2)) ** 2
    middle = (count + z2 / 2) / (total + z2)
    half = math.sqrt(z2 * (count * (total - count) / total + z2 / 4)) / (total + z2)
    return max(0.0, middle - half), min(1.0, middle + half)


def correlation(values: Floats, baseline: Floats) -> float:
    """Pearson's correlation of two arms over their common seeds; NaN below three pairs or where one never varies."""
    values, baseline = scaled(values)[0], scaled(baseline)[0]
    if len(values) < 3 or np.ptp(values) == 0 or np.ptp(baseline) == 0:
        return math.nan
    return float(np.corrcoef(values, baseline)[0, 1])


def variance_ratio(values: Floats, baseline: Floats) -> float:
    """Variance of the paired difference over that of the unpaired one; below 1, pairing narrows the interval."""
    if len(values) < 2:
        return math.nan
    values, baseline = scaled(np.stack([values, baseline]))[0]
    unpaired = float(values.var(ddof=1) + baseline.var(ddof=1))
    return float((values - baseline).var(ddof=1)) / unpaired if unpaired > 0 else math.nan


def ranked_direction(differences: Sequence[float] | Floats, diverged: int) -> int:
    """The sign of the signed-rank sum with diverged seeds as the largest of all differences.

    Args:
        differences: of the seeds that finished, positive where the arm is worse.
        diverged: how many seeds diverged in the arm and not in the baseline.

    Returns:
        1 where the arm is worse by ranks, -1 where it is better, 0 where neither.
    """
    values = np.concatenate([np.asarray(differences, dtype=float), np.full(diverged, np.inf)])
    return int(np.sign((np.sign(values) * stats.rankdata(np.abs(values))).sum())) if len(values) else 0


def settling(found: Contrast, smallest: float, family: int) -> int | None:
    """Roughly how many seeds would settle a contrast; None where it has too few pairs to tell."""
    return seeds_to_settle(found.effect, found.sd, smallest, family) if found.pairs >= LEAST_PAIRS else None


def seeds_to_settle(effect: float, sd: float, smallest: float, family: int) -> int | None:
    """Roughly how many seeds would settle an effect, if mean and spread stay as they are now.

    The interval must exclude zero, or lie inside the smallest effect that matters, whichever is nearer.

    Returns:
        A number of seeds, or None where it cannot be said or is beyond :data:`MOST_SEEDS`.
    """
    room = max(abs(effect), smallest - abs(effect))
    if not (math.isfinite(effect) and math.isfinite(sd) and room > 0):
        return None
    enough = _half_widths(family) * sd < room
    return 2 + int(enough.argmax()) if enough.any() else None
