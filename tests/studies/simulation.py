"""Studies of known truth, simulated, judged as a report judges them, and compared with the truth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from ablate.analysis.pairing import ALPHA, Floats, contrast
from ablate.analysis.skewness import FEWEST, limits, skewness
from ablate.analysis.verdict import WORDS, Evidence, Objective, word

STUDIES = 20_000
"""Simulated studies of a case: enough to tell 5% from 6%."""
CHECKED = 20
"""Studies of a case whose words are found by the functions that a report uses too, one effect at a time."""
UNSURE = ", size uncertain"
ARMS, SEEDS = (1, 5, 20), (3, 6, 10)
NONE = 1e-3
"""Smallest effect that matters where there is no effect: no interval is so narrow as to lie inside of it."""
SMALLEST = 3.0
"""Smallest effect that matters where there are effects."""
EFFECTS = SMALLEST * np.array([0.0, 0.1, -0.5, 1.0, -2.0])
"""Effects that are there: none, two that do not matter, one at the edge, which is the hardest, and one that matters."""

Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.int64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]

NOISE: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
    "log-normal": lambda rng, shape: (rng.lognormal(size=shape) - math.exp(0.5)) / math.sqrt(math.e * (math.e - 1)),
    "t, 3 df": lambda rng, shape: rng.standard_t(3, size=shape) / math.sqrt(3),
    "none": lambda rng, shape: np.zeros(shape),
}
"""Noise of mean 0 and, but for the last, of variance 1."""


@dataclass(frozen=True)
class Shapes:
    """The noise that each arm draws for itself, and the baseline's, which may be turned over."""

    name: str
    arms: str
    baseline: str
    turned: bool = False


ALIKE = tuple(Shapes(name, name, name) for name in ("normal", "exponential", "log-normal", "t, 3 df"))
"""Arms and baseline draw from one distribution, each for itself: what the intervals must hold for."""
SKEWED = tuple(
    shapes
    for noise in ("exponential", "log-normal")
    for shapes in (
        Shapes(f"{noise} in the arms, normal in the baseline", noise, "normal"),
        Shapes(f"{noise} in the arms, none in the baseline", noise, "none"),
        Shapes(f"{noise}, of opposite skew in the baseline", noise, noise, turned=True),
    )
)
"""Arms and baseline differ in shape, so that their differences are skewed: measured, and promised nothing of."""


@dataclass(frozen=True)
class Case:
    """One kind of study."""

    shapes: Shapes
    arms: int
    seeds: int
    effects: bool
    """Whether the arms have true effects."""

    @property
    def smallest(self) -> float:
        """The smallest effect that matters."""
        return SMALLEST if self.effects else NONE

    def truths(self, studies: int) -> Floats:
        """The true effects, by study and arm: each study begins elsewhere in the list."""
        place = np.add.outer(np.arange(studies), np.arange(self.arms)) % len(EFFECTS)
        return EFFECTS[place] if self.effects else np.zeros(place.shape)

    def differences(self, rng: np.random.Generator, studies: int) -> Floats:
        """Differences to the baseline by study, arm and seed, as of outcomes that share a part within a seed."""
        draw, base = NOISE[self.shapes.arms], NOISE[self.shapes.baseline]
        shared = 2 * rng.normal(size=(studies, 1, self.seeds))
        baseline = shared + (-1 if self.shapes.turned else 1) * base(rng, (studies, 1, self.seeds))
        arms = shared + draw(rng, (studies, self.arms, self.seeds)) + self.truths(studies)[..., None]
        return arms - baseline


@dataclass(frozen=True)
class Estimates:
    """Effects with their intervals by study and arm, all at once; :func:`check` holds them to the report's own."""

    effect: Floats
    together: Floats
    """Half the width of the simultaneous interval."""
    alone: Floats

    @classmethod
    def of(cls, differences: Floats) -> Estimates:
        """Student's t over the last axis; the family is the axis before."""
        arms, seeds = differences.shape[-2:]
        error = differences.std(axis=-1, ddof=1) / math.sqrt(seeds)
        together, alone = (special.stdtrit(seeds - 1, 1 - ALPHA / (2 * family)) for family in (arms, 1))
        return cls(differences.mean(axis=-1), together * error, alone * error)

    def words(self, smallest: float) -> Words:
        """Places in :data:`WORDS`, where a smaller value is better."""
        low, high = self.effect - self.together, self.effect + self.together
        sign = np.where(self.effect > 0, WORDS.index("worse"), WORDS.index("better"))
        unsure = np.where(self.effect > 0, WORDS.index(f"worse{UNSURE}"), WORDS.index(f"better{UNSURE}"))
        within, beyond = (-smallest < low) & (high < smallest), (low > smallest) | (high < -smallest)
        ruled = [(within, WORDS.index("no practical difference")), (beyond, sign), ((low > 0) | (high < 0), unsure)]
        conditions, found = zip(*ruled, strict=True)
        return np.select(list(conditions), list(found), WORDS.index("undecided"))


def _any(words: Words, *which: str) -> Flags:
    return np.isin(words, [WORDS.index(name) for name in which])


def claims(words: Words) -> Flags:
    """Which of them say that an effect is not zero."""
    return _any(words, "worse", "better", f"worse{UNSURE}", f"better{UNSURE}")


def check(differences: Floats, smallest: float) -> int:
    """How many effects get another word or interval here than by the functions that decide the verdicts of a report."""
    estimates, objective = Estimates.of(differences), Objective("val/loss", "nats", "min", smallest)
    words, wrong, family = estimates.words(smallest), 0, differences.shape[1]
    for place in np.ndindex(words.shape):
        c, seeds = contrast(differences[place], family), differences.shape[-1]
        evidence = Evidence("arm", "baseline", c, seeds, 0, seeds, 0, seeds, 0, 0, 0, None)
        effect, together, alone = (part[place] for part in (estimates.effect, estimates.together, estimates.alone))
        ours = [effect - together, effect + together, effect - alone, effect + alone]
        same = np.allclose(ours, [c.low, c.high, c.low95, c.high95], rtol=1e-9, atol=1e-12)
        wrong += not (same and word(evidence, objective) == WORDS[words[place]])
    return wrong


@dataclass(frozen=True)
class Share:
    """A share of studies, with its Monte-Carlo interval of 95%."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, shares: npt.ArrayLike) -> Share:
        """The mean over studies of a share within each; NaN where there is no study."""
        values = np.asarray(shares, dtype=float)
        if not (n := len(values)):
            return cls(math.nan, math.nan, math.nan)
        # Wilson's interval, with the variance that there is: 0 or 1 in a study makes it his own.
        value, z2 = float(values.mean()), float(special.ndtri(1 - ALPHA / 2)) ** 2
        half = math.sqrt(z2 * (float(values.var()) / n + z2 / (4 * n * n)))
        middle = value + z2 / (2 * n)
        return cls(value, (middle - half) / (1 + z2 / n), (middle + half) / (1 + z2 / n))

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "–"
        return f"{100 * self.value:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True)
class Found:
    """What the studies of a case said; shares of studies, but for ``alone`` and ``told``, which are of effects."""

    case: Case
    false: Share
    """An arm is called better or worse (size uncertain or not) and is not."""
    turned: Share
    """An arm is called better and is worse, or the other way."""
    equal: Share
    """An arm is said to make no practical difference and does."""
    misled: Share
    """Any of these."""
    told: Share
    """Of effects that matter, those that are called better or worse, rightly."""
    alone: Share
    """95% intervals of one effect that cover it."""
    together: Share
    """All simultaneous intervals cover."""
    warned: Share
    """The report warns of skewed differences; NaN where it does not try."""
    warned_false: Share
    """The same of studies that falsely call an arm better or worse."""
    disagreements: int
    """Effects of the first :data:`CHECKED` studies that the report's own functions judge otherwise."""


def simulate(case: Case, studies: int = STUDIES) -> Found:
    """Draw the studies of a case, judge them, and compare with the truth; the same each time."""
    parts = case.shapes.name, case.arms, case.seeds, case.effects
    rng = np.random.default_rng([ord(letter) for letter in repr(parts)])
    differences, truths = case.differences(rng, studies), case.truths(studies)
    estimates, d = Estimates.of(differences), case.smallest
    words = estimates.words(d)
    up, down = _any(words, "worse", f"worse{UNSURE}"), _any(words, "better", f"better{UNSURE}")
    sized = _any(words, "worse", "better")
    turned = (up & (truths < 0)) | (down & (truths > 0))
    false = turned | (claims(words) & (truths == 0)) | (sized & (abs(truths) <= d))
    equal = _any(words, "no practical difference") & (abs(truths) >= d)
    matters = abs(truths) > d
    off, each = abs(estimates.effect - truths), skewness(differences)
    largest, mean = limits((case.seeds,) * case.arms)
    warned = (abs(each).max(axis=1) > largest) | (abs(each.mean(axis=1)) > mean)
    wrong = false.any(axis=1)
    seen = np.full(studies, case.seeds >= FEWEST)
    return Found(
        case=case, false=Share.of(wrong), turned=Share.of(turned.any(axis=1)), equal=Share.of(equal.any(axis=1)),
        misled=Share.of((false | equal).any(axis=1)), told=Share.of((sized & ~turned)[matters]),
        alone=Share.of((off <= estimates.alone).mean(axis=1)),
        together=Share.of((off <= estimates.together).all(axis=1)), warned=Share.of(warned[seen]),
        warned_false=Share.of(warned[wrong & seen]), disagreements=check(differences[:CHECKED], d),
    )  # fmt: skip


def cases(shapes: tuple[Shapes, ...], *, effects: bool) -> list[Case]:
    """Every number of arms and seeds."""
    return [Case(one, arms, seeds, effects) for one, arms, seeds in itertools.product(shapes, ARMS, SEEDS)]
