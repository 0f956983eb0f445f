"""Matching: one numeric option of an arm is solved so that its parameters or training FLOPs are the baseline's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from ablate.experiment.fairness import Target
from ablate.experiment.identity import spelled
from ablate.experiment.keys import STEPS
from ablate.experiment.levels import changed
from ablate.experiment.paths import MISSING, value_at
from ablate.experiment.settings import Setup
from ablate.planning.ledger import ledger, parameter_count
from ablate.planning.solving import Insensitive, solve
from ablate.registry import Registry
from ablate.slots import Data, ImpossibleError

WORDS = {"params": "parameters", "train_flops": "training FLOPs"}


@dataclass(frozen=True)
class Candidate:
    """An arm on its way to be matched."""

    setup: Setup
    steps: int
    data: Data
    matched: Mapping[str, Any] = field(default_factory=dict)
    """The values that were solved, by path."""

    def count(self, what: str) -> int:
        """Its parameters, or its FLOPs over the whole training."""
        if what == "params":
            return parameter_count(self.setup, self.data.interface)
        return ledger(self.setup, self.data.interface).flops * self.steps

    def at(self, adjust: str, value: Any, registry: Registry) -> Candidate:
        """The same arm with another value of the option.

        Raises:
            ValueError: the option does not take this value.
        """
        if adjust == STEPS:
            return replace(self, steps=value, matched={**self.matched, adjust: value})
        raw = changed(spelled(self.setup), tuple(adjust.split(".")), value)
        try:
            setup = Setup.model_validate(raw, context={"registry": registry})
        except ValidationError as error:
            raise ValueError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error
        return replace(self, setup=setup, matched={**self.matched, adjust: value})

    def value(self, adjust: str, registry: Registry) -> Any:
        """The option's value; MISSING where the arm has no such option."""
        return self.steps if adjust == STEPS else value_at(tuple(adjust.split(".")), spelled(self.setup), registry)


class UnmatchedError(Exception):
    """An arm cannot be matched; says what is nearest."""


def match(arm: Candidate, what: str, target: Target, baseline: Candidate, registry: Registry) -> Candidate:
    """The arm with the option at the value that brings its count to the baseline's.

    An arm that is within the tolerance already is left as it is.

    Raises:
        UnmatchedError: no value does; the text names the nearest.
    """
    wanted, own, start = baseline.count(what), arm.count(what), arm.value(target.adjust, registry)
    if abs(own - wanted) <= target.within * wanted:
        return arm
    off = f"{WORDS[what]} are {own:,} where the baseline's are {wanted:,} ({100 * (own / wanted - 1):+.1f}%)"
    if start is MISSING or start is None:
        raise UnmatchedError(f"it has no `{target.adjust}` to adjust, and its {off}")
    allowed: set[int | float] = set()
    refusals: list[str] = []

    def count(value: int | float) -> int:
        try:
            counted = arm.at(target.adjust, value, registry).count(what)
        except (ValueError, ImpossibleError) as error:
            refusals.append(str(error))
            raise
        allowed.add(value)
        return counted

    try:
        solution = solve(count, start, wanted, within=target.within, multiple_of=target.multiple_of)
    except Insensitive:
        raise UnmatchedError(f"`{target.adjust}` changes nothing, and its {off}") from None
    if solution.error > target.within and refusals and allowed == {start}:
        raise UnmatchedError(f"`{target.adjust}` takes no other value here ({refusals[0]}), and its {off}")
    if solution.error > target.within:
        nearest = f"`{target.adjust}: {solution.value}` with {solution.count:,} {WORDS[what]}"
        raise UnmatchedError(
            f"nearest is {nearest}, {_off(solution.count, wanted)} {wanted:,}; `within` is {100 * target.within:g}%"
        )
    return arm.at(target.adjust, solution.value, registry)


def check(arm: Candidate, what: str, target: Target, baseline: Candidate) -> None:
    """Whether a matched arm is still within the tolerance once everything is solved.

    Raises:
        UnmatchedError: solving for the other count has put it out.
    """
    wanted, own = baseline.count(what), arm.count(what)
    if abs(own - wanted) > target.within * wanted:
        solved = " and ".join(f"`{path}: {value}`" for path, value in arm.matched.items())
        raise UnmatchedError(f"with {solved} its {WORDS[what]} are {_off(own, wanted)}")


def _off(count: int, wanted: int) -> str:
    return f"{abs(100 * (count / wanted - 1)):.2g}% {'below' if count < wanted else 'above'} the baseline's"
