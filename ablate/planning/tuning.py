"""What a plan says of tuning: what each arm tries, and that it can be tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ablate.errors import Diagnostic, InputError
from ablate.experiment import Experiment
from ablate.experiment.fairness import Search
from ablate.experiment.settings import Setup

FURTHER = 3
"""Values beyond each end of a range that it may be widened by."""


def tuned_options(setup: Setup, params: Iterable[str]) -> list[str]:
    """The tuned options, in dotted paths, that an arm has."""
    config = setup.model_dump(mode="json")
    return [path for path in params if _has(config, path.split("."))]


def without_options(value: Any, paths: Iterable[str]) -> Any:
    """A canonical setup without these options: what an arm is, whatever values they are given."""
    for path in paths:
        value = _without(value, path.split("."))
    return value


def with_option(config: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """An arm's configuration with another value of an option, by its dotted path."""
    first, _, rest = path.partition(".")
    return {**config, first: with_option(config[first], rest, value) if rest else value}


def stated(experiment: Experiment, setups: Sequence[Setup]) -> dict[str, Any] | None:
    """How the arms are tuned, as ``plan.json`` has it: what is searched, and how many trials that is an arm.

    Raises:
        InputError: an arm cannot take one of the values (G217).
    """
    tune = experiment.settings.tune
    if tune is None:
        return None
    takes = _Takes(experiment, setups)
    problems: list[Diagnostic] = []
    points: dict[str, list[Any] | None] = {}
    beyond: dict[str, dict[str, list[Any]]] = {}
    for path, search in tune.params.items():
        points[path] = search.points()
        for value in points[path] or search.log or search.linear or ():
            if error := takes(path, value):
                words = f"`{path}` cannot be {value!r} in every arm: {error}"
                problems.append(experiment.document.diagnose("G217", words, ("tune", "params", path), key=True))
                break
        beyond[path] = {side: _taken(takes, path, values) for side, values in _further(search).items()}
    if problems:
        raise InputError(problems)
    combinations = tune.combinations or 0
    return tune.model_dump(mode="json") | {
        "points": points,
        "beyond": beyond if tune.widen else {},
        "combinations": combinations,
        "trials": combinations * len(tune.seeds),
    }


class _Takes:
    """Whether every arm that has an option can take a value of it."""

    def __init__(self, experiment: Experiment, setups: Sequence[Setup]) -> None:
        self._context = {"registry": experiment.registry}
        self._configs = [setup.model_dump(mode="json") for setup in setups]

    def __call__(self, path: str, value: Any) -> str | None:
        """Why an arm cannot, or None."""
        steps = path.split(".")
        for config in self._configs:
            if not _has(config, steps):
                continue
            try:
                Setup.model_validate(with_option(config, path, value), context=self._context)
            except ValidationError as error:
                return str(error.errors()[0]["msg"]).partition("\n")[0]
        return None


def _taken(takes: _Takes, path: str, values: Sequence[Any]) -> list[Any]:
    """The values up to the first that an arm cannot take."""
    for index, value in enumerate(values):
        if takes(path, value):
            return list(values[:index])
    return list(values)


def _further(search: Search) -> dict[str, list[float]]:
    """The values that follow a range on both sides, at the distance of its own."""
    ends = search.log or search.linear
    if ends is None or search.n is None:
        return {"below": [], "above": []}
    low, high = ends
    if search.log:
        ratio = (high / low) ** (1 / (search.n - 1))
        below, above = ([end * ratio ** (sign * step) for step in range(1, FURTHER + 1)] for end, sign in _ways(ends))
    else:
        gap = (high - low) / (search.n - 1)
        below, above = ([end + sign * gap * step for step in range(1, FURTHER + 1)] for end, sign in _ways(ends))
        below, above = ([value if abs(value) > gap / 1e6 else 0.0 for value in side] for side in (below, above))
    return {side: [float(f"{value:.6g}") for value in values] for side, values in (("below", below), ("above", above))}


def _ways(ends: Sequence[float]) -> tuple[tuple[float, int], tuple[float, int]]:
    return (ends[0], -1), (ends[1], 1)


def _has(config: Any, steps: Sequence[str]) -> bool:
    for step in steps:
        if not isinstance(config, Mapping) or step not in config:
            return False
        config = config[step]
    return True


def _without(value: Any, steps: Sequence[str]) -> Any:
    first, *rest = steps
    if not isinstance(value, Mapping) or first not in value:
        return value
    if rest:
        return {**value, first: _without(value[first], rest)}
    return {key: item for key, item in value.items() if key != first}
