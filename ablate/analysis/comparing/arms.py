"""Which arm of one study goes with which of another, and why two that do cannot be set against each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ablate.analysis.comparability import across
from ablate.records.spelling import spelled

Plan = Mapping[str, Any]
Arm = Mapping[str, Any]


@dataclass(frozen=True)
class Pair:
    """An arm of study A and the arm of study B that goes with it."""

    a: Arm
    b: Arm

    @property
    def name(self) -> str:
        """What B calls it, and what A calls it where that is something else."""
        ours, theirs = str(self.b["name"]), str(self.a["name"])
        return ours if ours == theirs else f"{ours} (in A: {theirs})"

    @property
    def alike(self) -> bool:
        """Whether both are the same arm to the last option, tuned ones too: then so are their trials, seed by seed."""
        return bool(self.a["id"] == self.b["id"] and (self.a.get("tuned") or {}) == (self.b.get("tuned") or {}))

    def apart(self, a: Plan, b: Plan, metric: str) -> str:
        """Why their values of a metric cannot be set against each other; "" where they can."""
        return across((a, self.a), (b, self.b), metric)


@dataclass(frozen=True)
class Matched:
    """The arms of two studies, matched."""

    pairs: list[Pair]
    """In B's order."""
    only_a: list[str]
    """Names of A's arms that B has none for."""
    only_b: list[str]


def _levels(arm: Arm) -> str:
    return json.dumps(sorted((factor, spelled(level)) for factor, level in arm["levels"].items()))


KEYS: tuple[Callable[[Arm], str], ...] = (lambda arm: str(arm["name"]), _levels, lambda arm: str(arm["id"]))
"""What makes two arms one another's counterpart, tried in this order: their name, their levels, their configuration."""


def match(a: Plan, b: Plan) -> Matched:
    """Match the arms of two plans; each goes with one at most."""
    rest_a, rest_b = list(a["arms"]), list(b["arms"])
    found: dict[str, Pair] = {}
    for key in KEYS:
        theirs = {key(arm): arm for arm in reversed(rest_a)}
        for arm in rest_b:
            if (other := theirs.pop(key(arm), None)) is not None:
                found[arm["id"]] = Pair(other, arm)
        taken = {pair.a["id"] for pair in found.values()}
        rest_a = [arm for arm in rest_a if arm["id"] not in taken]
        rest_b = [arm for arm in rest_b if arm["id"] not in found]
    pairs = [found[arm["id"]] for arm in b["arms"] if arm["id"] in found]
    return Matched(pairs, [str(arm["name"]) for arm in rest_a], [str(arm["name"]) for arm in rest_b])
