"""A search among whole numbers for the one whose count is nearest to a target, with few calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

from ablate.slots import ImpossibleError

MOST_CALLS = 200
FURTHEST = 64
"""How many times further a search goes, up or down, while the count stays what it is."""

EXHAUSTIVE = 16
"""Between two indices that are allowed and no further apart than this, each one is looked at."""


class _Spent(Exception):
    """All calls are made."""


class Search:
    """Looks for the index, from 1 up, whose count is nearest to the target; counts rise or fall with it by steps.

    An index that ``count`` refuses by a ValueError or an ImpossibleError is passed over. First the search goes outwards
    until counts lie on both sides of the target, then inwards by secants, and by halves where these do not get on.
    """

    def __init__(self, count: Callable[[int], int], first: int, target: int) -> None:
        self.first = first
        self.known: dict[int, int | None] = {}
        """What each index counts that was looked at; None where it was refused."""
        self._count = count
        self._target = target
        # What is allowed is often every multiple of some number that divides the first: a width's, of its heads.
        self._divisors = [step for step in range(1, min(first, 512) + 1) if first % step == 0]

    @property
    def is_flat(self) -> bool:
        """Whether everything that was allowed counts the same, and that was more than one index."""
        counts = self._allowed()
        return len(counts) > 1 and len(set(counts.values())) == 1 and self._target not in counts.values()

    def best(self, *, decimals: int | None) -> tuple[int, int] | None:
        """The index whose count is nearest to the target, and its count; None if none was allowed.

        With ``decimals``, indices are decimal numbers of so many places, and the shortest one of that count is chosen.
        """
        found = None
        try:
            self._outwards()
            self._inwards()
            found = self._nearest()
            if decimals is not None and found is not None and not self.is_flat:
                found = self._shortest(found, decimals)
        except _Spent:
            found = found or self._nearest()
        return None if found is None else (found, self._allowed()[found])

    def _at(self, index: int) -> int | None:
        if index not in self.known:
            if len(self.known) >= MOST_CALLS - 1:  # whoever searches has looked at the start already
                raise _Spent
            try:
                self.known[index] = self._count(index)
            except (ValueError, ImpossibleError):
                self.known[index] = None
        return self.known[index]

    def _allowed(self) -> dict[int, int]:
        return {index: count for index, count in sorted(self.known.items()) if count is not None}

    def _nearest(self) -> int | None:
        distance = {index: abs(count - self._target) for index, count in self._allowed().items()}
        return min(distance, key=lambda index: (distance[index], abs(index - self.first), index), default=None)

    def _bracket(self) -> tuple[int, int] | None:
        """Two neighbours among what was allowed whose counts lie on both sides of the target."""
        for (low, below), (high, above) in pairwise(self._allowed().items()):
            if (below - self._target) * (above - self._target) < 0:
                return low, high
        return None

    def _is_met(self) -> bool:
        return self._target in self.known.values()

    def _secant(self) -> float | None:
        """Where a line through the two counts nearest to the target meets it; through zero, if there is one alone."""
        by_count = {count: index for index, count in self._allowed().items()}
        near = sorted(by_count, key=lambda count: abs(count - self._target))[:2]
        if len(near) == 2:
            slope = (by_count[near[0]] - by_count[near[1]]) / (near[0] - near[1])
            return by_count[near[0]] + (self._target - near[0]) * slope
        return by_count[near[0]] * self._target / near[0] if near and near[0] > 0 else None

    def _outwards(self) -> None:
        """Look further up or down until counts lie on both sides of the target, or nothing more is to be had."""
        if not any(self._at(index) is not None for index in self._around()):
            return
        limits: dict[int, int | None] = {1: None, -1: 0}
        moves = 0
        while not self._is_met() and self._bracket() is None:
            way = self._way(limits)
            if way == 0:
                return
            counts = self._allowed()
            edge = max(counts) if way > 0 else min(counts)
            goal = self._goal(edge, way, moves)
            if (limit := limits[way]) is not None and (goal - limit) * way >= 0:
                goal = (edge + limit + (way < 0)) // 2
            moves += 1
            if all(self._at(index) is None for index in self._snapped(goal, edge, way)):
                limits[way] = goal

    def _around(self) -> Iterator[int]:
        """The first index, its neighbours, and then what is further away."""
        yield self.first
        for distance in range(1, 17):
            yield from (index for index in (self.first + distance, self.first - distance) if index >= 1)
        for power in range(1, 7):
            yield from (self.first << power, max(1, self.first >> power))

    def _way(self, limits: dict[int, int | None]) -> int:
        """Up (1), down (-1), or nowhere (0)."""
        counts = self._allowed()
        low, high = min(counts), max(counts)
        rise = counts[high] - counts[low]
        towards = 1 if (counts[low] < self._target) == (rise >= 0) else -1
        for way in (towards, -towards) if rise == 0 else (towards,):
            edge = high if way > 0 else low
            same = [index for index, count in counts.items() if count == counts[edge]]
            limit = limits[way]
            if max(same) < FURTHEST * min(same) and (limit is None or abs(limit - edge) > 1):
                return way
        return 0

    def _goal(self, edge: int, way: int, moves: int) -> int:
        """How far to go from the edge of what was looked at: to the secant, further where that was tried before."""
        flat = len(set(self._allowed().values())) == 1
        secant = self._secant()
        if secant is None or (flat and moves):
            move = math.ceil(edge * (3 if way > 0 else 0.75))
        else:
            move = max(1, math.ceil((secant - edge) * way)) << max(0, moves - 2)
        return min(edge + move, 8 * edge) if way > 0 else max(edge - move, edge // 8, 1)

    def _snapped(self, goal: int, edge: int, way: int) -> Iterator[int]:
        """The goal, and the multiples near it of what divides the first index, each beyond the edge."""
        for step in self._divisors:
            near = round(goal / step)
            index = step * (max(near, edge // step + 1) if way > 0 else min(near, -(-edge // step) - 1))
            if index >= 1:
                yield index

    def _inwards(self) -> None:
        """Look between the two sides until nothing between them is left."""
        slow, level = 0, False
        while not self._is_met() and (bracket := self._bracket()) is not None:
            low, high = bracket
            secant = self._secant()
            halve = level or slow >= 2 or secant is None
            index = self._free((low + high) // 2 if halve or secant is None else round(secant), low, high)
            if index is None:
                return
            count = self._at(index)
            level = count in (self.known[low], self.known[high])
            left, right = self._bracket() or (index, index)
            slow = slow + 1 if 2 * (right - left) > high - low else 0

    def _free(self, wanted: int, low: int, high: int) -> int | None:
        """What is nearest to ``wanted`` between the two and was not looked at.

        Where indices were refused, those first that are in the rhythm of what is allowed. Between two neighbours of a
        slow rhythm, only what a faster one would have: every multiple of 32 stands for every multiple of 1 to 16.
        """
        rhythm = math.gcd(*(index - low for index in self._allowed())) if None in self.known.values() else 1
        wanted = min(max(wanted, low + 1), high - 1)
        steps = [rhythm, 1]
        if high - low == rhythm > EXHAUSTIVE:
            steps = [rhythm // prime for prime in range(2, rhythm + 1) if rhythm % prime == 0 and _is_prime(prime)]
        for step in steps:
            middle = low + round((wanted - low) / step) * step
            for distance in range(0, high - low, step):
                for index in (middle - distance, middle + distance):
                    if low < index < high and index not in self.known:
                        return index
        return None

    def _shortest(self, found: int, decimals: int) -> int:
        """The index with the fewest decimal places among those that count what the one found does."""
        counts = self._allowed()
        others = [index for index, count in counts.items() if count != counts[found]]
        low = max((index for index in others if index < found), default=0)
        high = min((index for index in others if index > found), default=math.inf)
        for places in range(decimals):
            step: int = 10 ** (decimals - places)
            for index in (found // step * step, -(-found // step) * step):
                if low < index < high and self._at(index) == counts[found]:
                    return index
        return found


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))
