"""Designs: which combinations of levels become arms, and how many there will be before any is made."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ablate.experiment.factors import Axis
from ablate.experiment.levels import Level

Chosen = dict[str, Level]
"""One level of each factor."""


@dataclass(frozen=True)
class Design(ABC):
    """Combinations of the levels of some factors; the baseline is always the first, and is not repeated."""

    axes: Sequence[Axis]

    @property
    @abstractmethod
    def size(self) -> int:
        """How many combinations there are, without making them; conditions and rules may leave fewer arms."""

    @abstractmethod
    def others(self) -> Iterator[Chosen]:
        """Every combination but the baseline's."""

    @cached_property
    def baseline(self) -> Chosen:
        """The baseline's level of each factor."""
        return {axis.name: axis.baseline for axis in self.axes}

    def combinations(self) -> Iterator[Chosen]:
        """Every combination, the baseline's first."""
        yield self.baseline
        yield from self.others()

    def _with(self, changed: Sequence[Axis]) -> Iterator[Chosen]:
        """The baseline with every choice of other levels for these factors."""
        for levels in itertools.product(*(axis.others for axis in changed)):
            yield self.baseline | {axis.name: level for axis, level in zip(changed, levels, strict=True)}


class OneAtATime(Design):
    """The baseline, and each other level alone."""

    @property
    def size(self) -> int:
        """1 + the sum of the other levels."""
        return 1 + sum(len(axis.others) for axis in self.axes)

    def others(self) -> Iterator[Chosen]:
        """Factor by factor."""
        for axis in self.axes:
            yield from self._with([axis])


class Full(Design):
    """Every combination."""

    @property
    def size(self) -> int:
        """The product of the levels."""
        return math.prod(len(axis.levels) for axis in self.axes)

    def others(self) -> Iterator[Chosen]:
        """The last factor varies fastest."""
        for levels in itertools.product(*(axis.levels for axis in self.axes)):
            chosen = dict(zip(self.baseline, levels, strict=True))
            if chosen != self.baseline:
                yield chosen


class EachAndAll(Design):
    """The baseline, each change alone, and all changes at once: for factors of two levels.

    ``leave_one_out`` begins with the complete model, so that all changes at once leave the bare one; ``add_one``
    begins with the bare model.
    """

    @property
    def size(self) -> int:
        """1 + one for each factor + 1."""
        return len(self.axes) + 2 if len(self.axes) > 1 else len(self.axes) + 1

    def others(self) -> Iterator[Chosen]:
        """Each change, then all."""
        for axis in self.axes:
            yield from self._with([axis])
        if len(self.axes) > 1:
            yield from self._with(self.axes)


class Pairs(Design):
    """The baseline, each change alone, and every two changes together."""

    @property
    def size(self) -> int:
        """1 + the changes + the products of every two factors' changes."""
        changes = [len(axis.others) for axis in self.axes]
        return 1 + sum(changes) + sum(one * other for one, other in itertools.combinations(changes, 2))

    def others(self) -> Iterator[Chosen]:
        """Changes alone, then pairs."""
        for axis in self.axes:
            yield from self._with([axis])
        for pair in itertools.combinations(self.axes, 2):
            yield from self._with(pair)


@dataclass(frozen=True)
class FractionalDesign(Design):
    """A regular fraction of all combinations of factors of two levels; the baseline is one of its arms.

    Source: Box, Hunter and Hunter 2005, Statistics for Experimenters, chapter 6; made by pyDOE.
    """

    wanted: int = 4
    """The resolution asked for; the fraction may have a better one."""

    @cached_property
    def signs(self) -> list[tuple[int, ...]]:
        """One row an arm, one sign a factor; the baseline's level is +1, and so the first row is the baseline."""
        if len(self.axes) < 2:
            return list(itertools.product((1, -1), repeat=len(self.axes)))
        from pydoe import fracfact_by_res  # noqa: PLC0415  # it imports scipy, which no other design needs

        rows = fracfact_by_res(len(self.axes), self.wanted)
        for resolution in range(self.wanted + 1, len(self.axes) + 1):  # a better one costs nothing while it is as large
            try:
                better = fracfact_by_res(len(self.axes), resolution)
            except ValueError:  # so many factors have none
                break
            if len(better) > len(rows):
                break
            rows = better
        return sorted((tuple(int(sign) for sign in row) for row in rows), reverse=True)

    @property
    def size(self) -> int:
        """The rows of the fraction."""
        return len(self.signs)

    def others(self) -> Iterator[Chosen]:
        """Every row but the first."""
        for row in self.signs[1:]:
            pairs = zip(self.axes, row, strict=True)
            yield {axis.name: axis.baseline if sign > 0 else axis.others[0] for axis, sign in pairs}

    def stated(self) -> dict[str, Any]:
        """What is mixed up with what: resolution, generators, and two-way interactions that are aliased."""
        columns = zip(*self.signs, strict=True)
        singles = {frozenset([axis.name]): column for axis, column in zip(self.axes, columns, strict=True)}
        pairs: dict[frozenset[str], tuple[int, ...]] = {}
        for one, other in itertools.combinations(singles, 2):
            pairs[one | other] = tuple(a * b for a, b in zip(singles[one], singles[other], strict=True))
        words: dict[tuple[int, ...], list[frozenset[str]]] = {}
        for effect, column in {**singles, **pairs}.items():
            words.setdefault(column, []).append(effect)
        order = [axis.name for axis in self.axes]
        aliases = [
            [":".join(sorted(effect, key=order.index)) for effect in group]
            for group in words.values()
            if len(group) > 1
        ]
        return {
            "resolution": self._resolution(),
            "runs": self.size,
            "full": 2 ** len(self.axes),
            "aliases": aliases,
        }

    def _resolution(self) -> int | None:
        """The length of the shortest word of the defining relation; None for the whole product, which has none."""
        if self.size >= 2 ** len(self.axes):
            return None
        columns = list(zip(*self.signs, strict=True))
        masks = [sum(1 << row for row, sign in enumerate(column) if sign < 0) for column in columns]
        for length in range(3, len(masks) + 1):
            for chosen in itertools.combinations(masks, length):
                product = 0
                for mask in chosen:
                    product ^= mask
                if product == 0:
                    return length
        return None


@dataclass(frozen=True)
class Listed(Design):
    """The arms that the file spells out."""

    spelled: Sequence[Mapping[str, Level]] = ()

    @property
    def size(self) -> int:
        """The baseline, and the arms that are spelled."""
        return 1 + len(self.spelled)

    def others(self) -> Iterator[Chosen]:
        """As spelled; a factor that is not named has the baseline's level."""
        for levels in self.spelled:
            yield self.baseline | dict(levels)
