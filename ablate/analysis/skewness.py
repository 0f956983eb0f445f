"""Whether differences are so skewed over the seeds that Student's t intervals may miss.

Intervals hold where the noise of an arm and of the baseline has one shape, whatever it is: the differences are then
symmetric. Where one of them alone is skewed, they are not, and few seeds cannot make up for it. How far off the
intervals are then, and how often these limits notice it, is in reports/calibration.

Source: Joanes & Gill 1998, Comparing measures of sample skewness and kurtosis (their g1).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from ablate.analysis.pairing import Floats
from ablate.analysis.prose import joined, number

FEWEST = 5
"""With fewer seeds than these, skewness cannot be told from chance, and nothing is said of it."""
ALARM = 0.05
"""How often normal noise passes one of the limits, for a study of any size."""
DRAWS = range(400, 4_001)
"""The fewest and the most studies of normal noise that the limits are found by; fewer for large studies."""
VALUES = 4_000_000
"""Random numbers that are drawn for them, unless the fewest studies take more."""
MOST = 3
"""So many effects are named for a skewness that is one of all of them."""


def skewness(values: Floats) -> Floats:
    """The skewness g1 of each row: the third central moment over the second to the power of 3/2; 0 without spread."""
    centred = values - values.mean(axis=-1, keepdims=True)
    squares = centred * centred
    second, third = squares.mean(axis=-1), (squares * centred).mean(axis=-1)
    spread = np.ptp(values, axis=-1) > 0
    found = np.divide(third, second**1.5, out=np.zeros_like(third), where=spread & (second > 0))
    return np.asarray(found, dtype=float)


@lru_cache
def limits(pairs: tuple[int, ...]) -> tuple[float, float]:
    """What a study of normal noise stays within: the largest skewness of any effect, and their mean, without signs.

    Both hold together in all but :data:`ALARM` of studies. The effects share a baseline, as arms do, so that the same
    seeds pull all of them to one side.

    Args:
        pairs: how many seeds each effect has.
    """
    most, rng = max(pairs), np.random.default_rng(0)
    studies = int(np.clip(VALUES // (len(pairs) * most), DRAWS[0], DRAWS[-1]))
    found, chunk = [], max(1, VALUES // 10 // (len(pairs) * most))
    for start in range(0, studies, chunk):
        size = min(chunk, studies - start)
        draws = rng.normal(size=(size, len(pairs), most)) - rng.normal(size=(size, 1, most))
        each = np.empty(draws.shape[:2])
        for count in set(pairs):
            which = np.flatnonzero(np.equal(pairs, count))
            each[:, which] = skewness(draws[:, which, :count])
        found.append([np.abs(each).max(axis=1), np.abs(each.mean(axis=1))])
    both = np.concatenate(found, axis=1)
    # The rarer of the two decides; its own 5% quantile gives the share that each of them may be passed in.
    shares = 1 - both.argsort(axis=1).argsort(axis=1) / studies
    within = 1 - float(np.quantile(shares.min(axis=0), ALARM))
    largest, mean = np.quantile(both, within, axis=1)
    return float(largest), float(mean)


def skewed(differences: Mapping[str, Floats]) -> list[str]:
    """The caveat where effects look skewed over the seeds, with the limits that they pass; without it, nothing.

    Args:
        differences: by effect, its difference in each seed that has it.
    """
    told = {name: np.asarray(values) for name, values in differences.items() if len(values) >= FEWEST}
    if not told:
        return []
    largest, most = limits(tuple(len(values) for values in told.values()))
    each = {name: float(skewness(values)) for name, values in told.items()}
    mean = float(np.mean([*each.values()]))
    said = []
    if beyond := [name for name, value in each.items() if abs(value) > largest]:
        sizes = joined([f"{each[name]:+.2f}" for name in beyond])
        said.append(f"the skewness of {joined(beyond)} is {sizes}, beyond ±{largest:.2f}")
    if len(each) > 1 and abs(mean) > most:
        names = sorted(each, key=lambda name: -each[name] * np.sign(mean))[:MOST]
        size = f"that of all {number(len(each), 'effect')} is {mean:+.2f} on average, beyond ±{most:.2f}"
        said.append(f"{size}, and largest in {joined(names)}")
    if not said:
        return []
    return [
        f"Differences look skewed over the seeds: {'; '.join(said)}. Normal noise passes such a limit in {ALARM:.0%} "
        "of studies of this size. Where the noise of an arm and of the baseline differ in shape, intervals miss more "
        "often than they say: let more seeds confirm these verdicts."
    ]
