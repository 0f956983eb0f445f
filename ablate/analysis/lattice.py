"""Where the arms of a factorial design stand: at which level of each factor, and which factors are no part of them."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeGuard

from ablate.records.frames import spelled

Place = tuple[str | None, ...]
"""How an arm's level of each factor is spelled; None where the factor is no part of the arm."""


def spelled_level(levels: Mapping[str, Any], factor: str) -> str | None:
    """How an arm's level of a factor is spelled; None where the factor is no part of it, since null is a level."""
    return spelled(levels[factor]) if factor in levels else None


def changes(levels: Mapping[str, Any], base: Mapping[str, Any], without: str) -> str:
    """In which factors beside one a cell differs from another, as ``scale=off, placement=post``; "" for none."""
    apart = (name for name in levels if name != without and spelled_level(levels, name) != spelled_level(base, name))
    return ", ".join(f"{name}={spelled_level(levels, name)}" for name in apart)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a level or a value is a number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def cells_of(arm: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The cells of the design that an arm fills, each by its levels: its own, and those that fell together with it."""
    return [arm["levels"], *(arm.get("also") or ())]


def levels_in_order(factor: Mapping[str, Any]) -> list[Any]:
    """A factor's levels, the baseline's first; as the plan has them where the baseline has none of them."""
    if "baseline" not in factor:
        return list(factor["levels"])
    reference = spelled(factor["baseline"])
    return sorted(factor["levels"], key=lambda level: spelled(level) != reference)


class Lattice:
    """The arms of a plan by their levels.

    A factor that is no part of an arm divides it no further: the arm stands for all of the factor's levels at once,
    wherever that factor is not what is asked for. An arm that several combinations resolve to stands for each of them.
    """

    def __init__(self, plan: Mapping[str, Any]) -> None:
        """Lay out a plan's arms."""
        self.factors: tuple[str, ...] = tuple(factor["name"] for factor in plan["factors"])
        self.places: dict[str, Place] = {arm["id"]: self.place(arm["levels"]) for arm in plan["arms"]}
        others = {self.place(cell): arm["id"] for arm in plan["arms"] for cell in cells_of(arm)[1:]}
        self.arms: dict[Place, str] = others | {place: arm for arm, place in self.places.items()}
        """The identity of the arm at each place."""
        gaps = {tuple(level is None for level in place) for place in self.arms}
        self._gaps = sorted(gaps, key=sum)

    @property
    def whole(self) -> bool:
        """Whether every factor is part of every arm."""
        return not any(any(gap) for gap in self._gaps)

    def place(self, levels: Mapping[str, Any]) -> Place:
        """Levels as a key that keeps 1, 1.0, true, null and none at all apart."""
        return tuple(spelled_level(levels, factor) for factor in self.factors)

    def arm(self, at: Mapping[str, str], needed: Collection[str] = ()) -> str | None:
        """The identity of the arm at these levels, or None; the factors in ``needed`` have to be part of it."""
        for gap in self._gaps:
            lacks = [factor for factor, gone in zip(self.factors, gap, strict=True) if gone]
            if any(factor in needed for factor in lacks):
                continue
            found = self.arms.get(tuple(None if factor in lacks else at.get(factor) for factor in self.factors))
            if found is not None:
                return found
        return None

    def lacking(self, at: Mapping[str, str], needed: Sequence[str]) -> list[str]:
        """Which of the needed factors are no part of the arm at these levels; none where there is no such arm."""
        arm = self.arm(at)
        return [] if arm is None else [factor for factor in needed if not self.has(arm, factor)]

    def has(self, arm: str, factor: str) -> bool:
        """Whether a factor is part of an arm."""
        return self.places[arm][self.factors.index(factor)] is not None

    def at(self, factor: str, level: str) -> list[str]:
        """The identities of the arms at a level of a factor, in the plan's order."""
        index = self.factors.index(factor)
        return [arm for arm, place in self.places.items() if place[index] == level]

    def unbalanced(self, ones: Sequence[str], others: Sequence[str], but: str) -> list[str]:
        """The factors whose levels have not the same shares among two sets of arms, beside the one they differ in.

        A factor that is no part of any arm of one set divides neither.
        """
        found = []
        for index, factor in enumerate(self.factors):
            sides = [[at for arm in arms if (at := self.places[arm][index]) is not None] for arms in (ones, others)]
            shares = [{level: Fraction(side.count(level), len(side)) for level in side} for side in sides]
            if factor != but and all(sides) and shares[0] != shares[1]:
                found.append(factor)
        return found

    def unmoved(self, factor: str) -> list[str]:
        """The identities of the arms in which levels of a factor fell together, so that it changes nothing there."""
        index, found = self.factors.index(factor), dict[str, None]()
        seen: dict[tuple[str, Place], str | None] = {}
        for place, arm in self.arms.items():
            rest = (arm, (*place[:index], *place[index + 1 :]))
            if seen.setdefault(rest, place[index]) != place[index]:
                found[arm] = None
        return [arm for arm in self.places if arm in found]

    def without(self, factor: str) -> list[str]:
        """The identities of the arms that a factor is no part of."""
        return [arm for arm in self.places if not self.has(arm, factor)]


def combinations(axes: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Every combination of a level of each axis; one without any where there is no axis."""
    for levels in itertools.product(*axes.values()):
        yield dict(zip(axes, levels, strict=True))
