"""The search of one arm: which tuning trials run, which are given up, and which values are best.

All of it is a function of what is known of the trials, so that it is the same after every interruption.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ablate.experiment.identity import digest
from ablate.planning.tuning import with_option
from ablate.sweep.tuning.sampling import Tried, Values, combinations, proposed


@dataclass
class Known:
    """What the trials' folders say: costs, smaller is better, infinite where a trial diverged."""

    finals: dict[str, float] = field(default_factory=dict)
    """Of the trials that were trained to the end or diverged, by their identity."""
    steps: dict[str, int] = field(default_factory=dict)
    """How many steps each of these was trained."""
    rungs: dict[str, dict[int, float]] = field(default_factory=dict)
    """Of each trial at the rungs that it has reached, by step."""
    pruned: set[str] = field(default_factory=set)
    """The trials that were given up."""

    def at(self, trial: str, step: int) -> float | None:
        """A trial's cost at a rung, or at its end if it came to that first; None if it is not there yet."""
        return self.rungs.get(trial, {}).get(step, self.finals.get(trial))

    def passed(self, trial: str, step: int) -> bool:
        """Whether a trial ended later than at this rung, and was not evaluated there: it had been none then."""
        return self.steps.get(trial, 0) > step and step not in self.rungs.get(trial, {})


@dataclass(frozen=True)
class Run:
    """A tuning trial that is to run, to the end or to a rung."""

    trial: Mapping[str, Any]
    pause_at: int | None = None


@dataclass(frozen=True)
class Pruned:
    """A tuning trial that is given up at a rung."""

    trial: Mapping[str, Any]
    step: int


@dataclass(frozen=True)
class Standing:
    """How far a search is."""

    trials: Sequence[Mapping[str, Any]]
    """Every trial of the search so far, as ``plan.json`` has it."""
    runs: Sequence[Run]
    """Those that are still to come to their next rung or end."""
    prunes: Sequence[Pruned]
    """Those that are given up and not yet marked so."""
    given_up: Sequence[str]
    """Those that are marked so."""
    tried: Sequence[Tried] | None
    """What every combination came to; None while something is missing."""

    @cached_property
    def best(self) -> Tried | None:
        """The combination of the smallest cost, the first of equals; None while something is missing."""
        ended = [tried for tried in self.tried or () if tried.rung is None]
        return min(ended, key=lambda tried: tried.cost) if ended else None


Batch = Sequence[Sequence[Mapping[str, Any]]]
"""The trials of each of its combinations, one a tuning seed."""


class Search:
    """How one arm is tuned."""

    def __init__(self, arm: Mapping[str, Any], tuning: Mapping[str, Any]) -> None:
        """Of an arm of a plan that has something to tune."""
        self.arm = arm
        self.params: Mapping[str, Mapping[str, Any]] = {
            path: tuning["params"][path] for path in arm["tuning"]["params"]
        }
        self._identity = str(arm["tuning"]["identity"])
        self._tuning = tuning
        self.rungs: Sequence[int] = rungs(arm, tuning)
        """The steps at which a batch is judged before the last."""
        self._rounds: list[list[Values]] = []
        """The combinations of a grid; what it was widened by comes after it."""
        if tuning["method"] == "grid":
            self._rounds.append(combinations(self.params, tuning["points"]))
        self._batches: list[list[Values]] = []

    @property
    def count(self) -> int:
        """How many combinations the arm tries."""
        return sum(map(len, self._rounds)) if self._rounds else int(self._tuning["combinations"])

    def widen(self, more: Sequence[Values]) -> None:
        """Try these too."""
        self._rounds.append(list(more))

    def standing(self, known: Known) -> Standing:
        """How far the search is, going by what is known."""
        trials: dict[str, Mapping[str, Any]] = {}
        tried: list[Tried] = []
        given_up: list[str] = []
        number = 0
        for asked in self._known_batches(tried):
            values: list[Values] = []
            batch: list[Sequence[Mapping[str, Any]]] = []
            for each in asked:
                combination = [tuned_trial(self.arm, each, seed) for seed in self._tuning["seeds"]]
                if combination[0]["id"] in trials:
                    continue  # proposed once more: it is tried once, and judged in its first batch
                values.append(each)
                batch.append([{**trial, "number": number} for trial in combination])
                trials |= {trial["id"]: trial for trial in batch[-1]}
                number += 1
            runs, losers, found = self._judge(batch, values, known)
            given_up += [pruned.trial["id"] for pruned in losers if pruned.trial["id"] in known.pruned]
            prunes = [pruned for pruned in losers if pruned.trial["id"] not in known.pruned]
            if found is None or prunes:
                return Standing(list(trials.values()), runs, prunes, given_up, None)
            tried += found
        return Standing(list(trials.values()), (), (), given_up, tried)

    def _known_batches(self, tried: Sequence[Tried]) -> Iterator[list[Values]]:
        """The batches one after the other; each is asked for once what came before it is in ``tried``."""
        if self._rounds:
            yield from self._rounds
            return
        size = self._tuning["batch"] if self._tuning["method"] == "tpe" else self.count
        for start in range(0, self.count, size):
            index = start // size
            if index == len(self._batches):
                wanted = min(size, self.count - start)
                method = self._tuning["method"]
                self._batches.append(proposed(method, self.params, self._identity, index, wanted, tried))
            yield self._batches[index]

    def _judge(
        self, batch: Batch, values: Sequence[Values], known: Known
    ) -> tuple[list[Run], list[Pruned], list[Tried] | None]:
        """What is to run and what is given up of a batch; once nothing is to run, what each combination came to.

        A combination with a trial that has passed a rung is not judged there: its value at another step would be
        held against the others'. It costs nothing to keep, since it has been trained.
        """
        alive = list(range(len(batch)))
        tried: dict[int, Tried] = {}
        prunes: list[Pruned] = []
        for step in self.rungs:
            judged = [index for index in alive if not any(known.passed(trial["id"], step) for trial in batch[index])]
            costs = {index: [known.at(trial["id"], step) for trial in batch[index]] for index in judged}
            if runs := self._missing(batch, costs, step):
                return runs, prunes, None
            means = {index: _mean(each) for index, each in costs.items()}
            keep = max(1, math.ceil(len(judged) / self._tuning["halving"]["reduction"]))
            losers = sorted(judged, key=lambda index: (means[index], index))[keep:]
            for index in losers:
                tried[index] = Tried(values[index], means[index], step)
                prunes += [Pruned(trial, step) for trial in batch[index] if trial["id"] not in known.finals]
            alive = [index for index in alive if index not in losers]
        finals = {index: [known.finals.get(trial["id"]) for trial in batch[index]] for index in alive}
        if runs := self._missing(batch, finals, None):
            return runs, prunes, None
        tried |= {index: Tried(values[index], _mean(each)) for index, each in finals.items()}
        return [], prunes, [tried[index] for index in range(len(batch))]

    def _missing(
        self,
        batch: Batch,
        costs: Mapping[int, Sequence[float | None]],
        step: int | None,
    ) -> list[Run]:
        return [
            Run(trial, step)
            for index, each in costs.items()
            for trial, cost in zip(batch[index], each, strict=True)
            if cost is None
        ]


def tuned_trial(arm: Mapping[str, Any], values: Values, seed: int, repeat: int | None = None) -> dict[str, Any]:
    """A trial of an arm with tuned values, as ``plan.json`` has it; ``repeat`` is the number of one that is again."""
    again = {} if repeat is None else {"repeat": repeat}
    identity = {"arm": arm["tuning"]["identity"], "tuned": dict(values), "seed": seed, **again}
    return {"id": digest(identity), "arm": arm["id"], "seed": seed, "tuned": dict(values), **again}


def tuned_arm(arm: Mapping[str, Any], values: Values) -> dict[str, Any]:
    """An arm with tuned values in its configuration."""
    config = arm["config"]
    for path, value in values.items():
        config = with_option(config, path, value)
    return {**arm, "tuned": dict(values), "config": config}


def rungs(arm: Mapping[str, Any], tuning: Mapping[str, Any]) -> list[int]:
    """The steps at which a batch is judged before the last, the earliest first; none without halving."""
    halving = tuning.get("halving")
    if not halving:
        return []
    return [arm["steps"] // halving["reduction"] ** rung for rung in range(halving["rungs"], 0, -1)]


def _mean(costs: Sequence[float | None]) -> float:
    return math.fsum(math.inf if cost is None else cost for cost in costs) / len(costs)
