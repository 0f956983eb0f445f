"""Which values an arm tries next: asked in batches, each a function of the arm and of the batches before it.

A sampler is made anew for every batch, from the arm's identity and the batch's number, and is told the batches before.
So the same study proposes the same values on one worker and on four, and after every interruption.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import TrialState, create_trial

from ablate.experiment.identity import digest
from ablate.records.spelling import spelled
from ablate.sweep.bookkeeping.storage import quiet

DIGITS = 4
"""Significant digits of a proposed number: more would not be read, and two that agree in so many are one trial."""
WORST = 1e9
"""What the sampler is told of a combination that diverged: finite, since infinity breaks what it fits."""

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Tried:
    """A combination of values that was tried, and what came of it."""

    values: Values
    cost: float
    """Mean over the tuning seeds, smaller is better; infinite where a seed diverged."""
    rung: int | None = None
    """The step at which it was given up; None if it was trained to the end."""


def combinations(params: Mapping[str, Mapping[str, Any]], points: Mapping[str, Sequence[Any]]) -> list[Values]:
    """A grid: every combination of the points of these parameters, the first parameter slowest."""
    return [dict(zip(params, values, strict=True)) for values in itertools.product(*(points[path] for path in params))]


def proposed(
    method: str, params: Mapping[str, Mapping[str, Any]], identity: str, batch: int, size: int, earlier: Sequence[Tried]
) -> list[Values]:
    """A batch of combinations, drawn at random or proposed by TPE from what was tried before.

    Args:
        method: ``random`` or ``tpe``.
        params: what is tuned, by path, each as ``log``, ``linear`` or ``values``.
        identity: of the arm without its tuned values; keys the sampler with the batch.
        batch: number of the batch, from 0.
        size: how many combinations.
        earlier: what the batches before came to.
    """
    seed = int(digest([identity, batch]), 16) % 2**32
    sampler: BaseSampler = RandomSampler(seed) if method == "random" else TPESampler(seed=seed)
    with quiet():
        study = optuna.create_study(sampler=sampler)  # in memory
    space = distributions(params)
    for tried in earlier:
        cost = tried.cost if math.isfinite(tried.cost) else WORST
        study.add_trial(
            create_trial(
                state=TrialState.COMPLETE if tried.rung is None else TrialState.PRUNED,
                params=told(params, tried.values),
                distributions=space,
                value=cost if tried.rung is None else None,
                intermediate_values={} if tried.rung is None else {tried.rung: cost},
            )
        )
    return [_read(params, study.ask(space).params) for _ in range(size)]


def distributions(params: Mapping[str, Mapping[str, Any]], tried: Sequence[Tried] = ()) -> dict[str, BaseDistribution]:
    """The space that is searched, in Optuna's terms, as wide as what was tried."""
    found: dict[str, BaseDistribution] = {}
    for path, search in params.items():
        if search["values"] is not None:
            found[path] = CategoricalDistribution(tuple(map(spelled, search["values"])))
        else:
            values = [*(search["log"] or search["linear"]), *(each.values[path] for each in tried)]
            found[path] = FloatDistribution(min(values), max(values), log=search["log"] is not None)
    return found


def told(params: Mapping[str, Mapping[str, Any]], values: Values) -> dict[str, Any]:
    """Values in Optuna's terms: one of a list by its spelling, since it may be anything."""
    return {path: value if params[path]["values"] is None else spelled(value) for path, value in values.items()}


def _read(params: Mapping[str, Mapping[str, Any]], asked: Mapping[str, Any]) -> Values:
    values: dict[str, Any] = {}
    for path, search in params.items():
        if search["values"] is not None:
            values[path] = next(value for value in search["values"] if spelled(value) == asked[path])
        else:
            low, high = search["log"] or search["linear"]
            values[path] = min(max(float(f"{asked[path]:.{DIGITS}g}"), low), high)
    return values
