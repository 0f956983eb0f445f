"""Whether `match` and `tune` can be used beside the factors, and whether every arm is tuned alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ablate.errors import Diagnostic
from ablate.experiment.factors import Axis, read_path
from ablate.experiment.fairness import Search
from ablate.experiment.identity import text, written
from ablate.experiment.keys import STEPS
from ablate.experiment.levels import Bench, Level, label, setup_key, shown, value_key
from ablate.experiment.paths import MISSING, Place, overlap, value_at
from ablate.experiment.schema import seed_list

if TYPE_CHECKING:
    from ablate.experiment.cells import Arm

RATE: Place = ("training", "optimizer", "lr")


def check_match(bench: Bench, axes: Sequence[Axis]) -> None:
    """Note what is wrong with `match`."""
    match = bench.settings.match
    for name in ("params", "train_flops"):
        target = getattr(match, name) if match else None
        if target is None:
            continue
        place: Place = ("match", name, "adjust")
        if target.adjust == STEPS and name == "params":
            words = f"`{STEPS}` changes no parameter"
            bench.report("G214", words, place, otherwise="adjust a width: `model.feed_forward.ratio`, say")
            continue
        path = read_path(bench, target.adjust, place)
        if path is None:
            continue
        if path[0] == "task":
            words = f"`{target.adjust}` is part of the task, and all arms are judged on the same"
            bench.report("G214", words, place, otherwise="adjust an option of `model`, or `budget.steps`")
            continue
        value = value_at(path, bench.raw, bench.registry)
        if isinstance(value, bool) or not isinstance(value, int | float):
            words = f"`{target.adjust}` is no number in the baseline, so it cannot be solved for"
            bench.report("G214", words, place, otherwise="adjust an option that is a number, as a width or a ratio")
            continue
        if name == "train_flops" and match and match.params and match.params.adjust == target.adjust:
            words = f"`{target.adjust}` cannot be solved for parameters and for training FLOPs at once"
            bench.report("G214", words, place, otherwise="match training FLOPs by `budget.steps`")
        _check_unvaried(bench, axes, path, "G214", "match", place)


def check_tune(bench: Bench, axes: Sequence[Axis]) -> None:
    """Note what is wrong with `tune`."""
    tune = bench.settings.tune
    if tune is None:
        return
    for dotted, search in tune.params.items():
        place: Place = ("tune", "params", dotted)
        path = read_path(bench, dotted, place, key=True)
        if dotted == STEPS:
            words = f"`{STEPS}` cannot be tuned: what trains longer is better by that alone"
            bench.report("G217", words, place, key=True, otherwise="make it a factor, or give levels their own steps")
        elif path is not None:
            _check_unvaried(bench, axes, path, "G217", "tune", place)
            _check_values(bench, path, search, place)
        if tune.method == "grid" and search.points() is None:
            bench.report(
                "G217", "a grid needs `n`, the number of values of the range", place, otherwise="add `n: 6`, say"
            )
    if tune.method != "grid" and tune.trials is None:
        words = f"`method: {tune.method}` needs `trials`, the number of combinations that each arm tries"
        bench.report("G217", words, ("tune", "method"), otherwise="add `trials: 12`, say")
    if tune.method == "grid" and tune.trials is not None:
        bench.report(
            "G217", "`trials` is for `random` and `tpe`: a grid tries every combination", ("tune", "trials"), key=True
        )
    if tune.widen and (tune.method != "grid" or all(search.values is not None for search in tune.params.values())):
        words = "`widen` is for the ranges of a grid: a list has no next value, and what is drawn has no edge"
        bench.report("G217", words, ("tune", "widen"), otherwise="take it out, or search a range by `method: grid`")
    steps = bench.settings.budget.steps
    if tune.halving and (first := steps // tune.halving.reduction**tune.halving.rungs) < 1:
        words = f"the first rung is at step {first}: {steps} steps do not divide by {tune.halving.reduction} so often"
        bench.report("G217", words, ("tune", "halving"), otherwise="take fewer `rungs`, or more steps")
    _check_seeds(bench, tune.seeds)


def _check_seeds(bench: Bench, seeds: Sequence[int]) -> None:
    """Note seeds that cannot be tuned on."""
    reported = set(seed_list(bench.settings.seeds))
    for index, seed in enumerate(seeds):
        if seed in reported:
            words = f"seed {seed} is reported, so it cannot be tuned on: the best value would be chosen by its noise"
            bench.report("G217", words, ("tune", "seeds", index), otherwise="take seeds that `seeds` does not name")
        elif seed in seeds[:index]:
            bench.report("G217", f"seed {seed} is named twice", ("tune", "seeds", index))
        elif not 0 <= seed < 2**63:
            bench.report("G217", "a seed is at least 0 and less than 2^63", ("tune", "seeds", index))


def _check_values(bench: Bench, path: Place, search: Search, place: Place) -> None:
    """Note values that the option cannot take, and such as are listed twice."""
    if search.values is None:
        now = value_at(path, bench.raw, bench.registry)
        if isinstance(now, int) and not isinstance(now, bool):
            words = f"`{'.'.join(map(str, path))}` is a whole number, and a range has fractions"
            bench.report("G217", words, place, otherwise="write its `values: [...]`")
            return
        ends = search.log or search.linear or []
        tried = [(end, (*place, "log" if search.log else "linear", index)) for index, end in enumerate(ends)]
    else:
        tried = [(value, (*place, "values", index)) for index, value in enumerate(search.values)]
    seen: set[str] = set()
    for value, at in tried:
        setup = bench.setup([Level(None, {path: value}, at)])
        key = text(written(setup)) if setup else value_key(value)
        if key in seen:
            bench.report("G217", f"the value {shown(label(value))} is named twice", at)
        seen.add(key)


def tuning_warnings(bench: Bench, axes: Sequence[Axis], arms: Sequence[Arm]) -> Iterator[Diagnostic]:
    """Arms that are tuned unequally: one lacks a tuned option, or has a learning rate of its own that no other has."""
    tune = bench.settings.tune
    for dotted in tune.params if tune else ():
        path = tuple(dotted.split("."))
        lacking = [
            arm.name for arm in arms if value_at(path, bench.tree(arm.chosen.values()), bench.registry) is MISSING
        ]
        if lacking:
            more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
            names = ", ".join(f"`{name}`" for name in lacking[:3])
            words = (
                f"{names}{more}: there is no `{dotted}` to tune, so fewer combinations are tried than for the others"
            )
            yield bench.document.diagnose("W006", words, ("tune", "params", dotted), key=True)
    for axis in axes:
        for level in axis.levels:
            places = bench.explicit(level.changes)
            if not level.same and RATE in places and len(places) > 1:
                help = (
                    "tune every arm: `tune: {params: {training.optimizer.lr: {log: [1e-4, 3e-2], n: 6}}, seeds: [100]}`"
                )
                name = f"{axis.name}={shown(level.label)}"
                words = f"`{name}` has a learning rate of its own, and the other arms were given none"
                yield bench.document.diagnose("W006", words, level.origin(RATE, bench.document), help=help)


def _check_unvaried(bench: Bench, axes: Sequence[Axis], path: Place, code: str, verb: str, place: Place) -> None:
    for axis in axes:
        for level in axis.levels:
            if not level.same and any(overlap(path, other) for other in bench.explicit(level.changes)):
                dotted = ".".join(map(str, path))
                words = f"`{verb}` sets `{dotted}`, which the factor `{axis.name}` sets too"
                help = "choose another option, or leave this one to one of the two"
                if _differ_without(bench, axis, path):
                    help = f"leave `{path[-1]}` out of the levels: `{verb}` chooses it"
                bench.report(code, words, place, otherwise=help)
                return


def _differ_without(bench: Bench, axis: Axis, path: Place) -> bool:
    """Whether the levels of a factor are all different also where none of them spells the option at ``path``."""
    left = [{at: _cut(value, path[len(at) :]) if path[: len(at)] == at else value
             for at, value in level.changes.items() if at != path} for level in axis.levels]  # fmt: skip
    setups = [bench.setup([Level(None, changes, axis.levels[0].source)], quietly=True) for changes in left]
    return len({setup_key(setup) for setup in setups if setup}) == len(axis.levels)


def _cut(value: Any, path: Place) -> Any:
    """A level's value without the option at ``path`` inside it."""
    if not isinstance(value, Mapping) or path[0] not in value:
        return value
    kept = {key: item for key, item in value.items() if key != path[0]}
    return kept if len(path) == 1 else {**kept, path[0]: _cut(value[path[0]], path[1:])}
