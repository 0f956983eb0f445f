"""What makes two arms answer different questions: other tasks, other evaluation data, other budgets, matched sizes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ablate.analysis.prose import joined
from ablate.records.tasks import level_of, task_baselines, task_factor

UNMATCHED = 1.0
"""An arm whose parameters or FLOPs differ from the baseline's by more percent than this is not matched."""
_PLACE = "path"
"""The task's option that says where the data lie, which changes nothing in them: their hash is of what they are."""


def incomparable(plan: Mapping[str, Any], arms: Iterable[str], metric: str, *, within: bool = False) -> str:
    """Why values of a metric of these arms (identities) cannot be set against each other; "" where they can.

    Args:
        plan: the plan of them.
        arms: the arms.
        metric: the metric.
        within: whether the difference is taken within each task, and only then averaged.
    """
    known = {arm["id"]: arm for arm in plan["arms"]}
    chosen = [known[id] for id in arms]
    kinds = list(dict.fromkeys(_task(arm) for arm in chosen))
    if len(kinds) > 1 and not within:
        return f"the tasks differ, {' and '.join(f'`{kind}`' for kind in kinds)}"
    units = list(dict.fromkeys(_unit(plan, arm, metric) for arm in chosen))
    if len(units) > 1:
        return f"{metric} is in {' and in '.join(unit or 'no unit' for unit in units)}"
    return ""


def across(ours: tuple[Mapping[str, Any], Mapping[str, Any]], theirs: tuple[Any, Any], metric: str) -> str:
    """Why values of a metric of two studies' arms, each with its plan, cannot be paired; "" where they can.

    Within one study other data are a caveat, since the arms were chosen so; here nothing but the data may be at work.
    """
    (plan, arm), (other, base) = ours, theirs
    if (kind := _task(arm)) != (task := _task(base)):
        return f"the tasks differ, `{kind}` and `{task}`"
    if (unit := _unit(plan, arm, metric)) != (their_unit := _unit(other, base, metric)):
        return f"{metric} is in {unit or 'no unit'} and in {their_unit or 'no unit'}"
    hashes = [str(each.get("data", of["data"])["hash"]) for of, each in (ours, theirs)]
    if hashes[0] != hashes[1]:
        return f"the data differ, their hashes are {hashes[0][:12]} and {hashes[1][:12]}"
    options = [f"{key} {a} and {b}" for key, a, b in _options(arm, base) if key != _PLACE]
    return f"the evaluation data may differ, by the task's {'; '.join(options)}" if options else ""


def comparability(plan: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each way in which arms differ from the baseline beside their levels, and for tasks as blocks."""
    base = next(arm for arm in plan["arms"] if arm["id"] == plan["baseline"])
    blocks = task_factor(plan)
    data: dict[str, list[str]] = {}
    trained: dict[str, list[str]] = {}
    matched: dict[str, dict[str, list[str]]] = {}
    metric = plan["objective"]["metric"]
    for arm in plan["arms"]:
        if blocks and level_of(arm, blocks) != level_of(base, blocks):
            pass  # it is compared with an arm on its own task
        elif (task := _task(arm)) != _task(base):
            data.setdefault(f"on the task `{task}`, not on the baseline's `{_task(base)}`", []).append(arm["name"])
        elif (unit := _unit(plan, arm, metric)) != (theirs := _unit(plan, base, metric)):
            text = f"by {metric} in {unit or 'no unit'}, and the baseline in {theirs or 'no unit'}"
            data.setdefault(text, []).append(arm["name"])
        elif differs := _data(plan, arm, base):
            text = f"on other evaluation data than the baseline ({differs}): a difference may be one of the data"
            data.setdefault(text, []).append(arm["name"])
        if text := _longer(plan, arm, base):
            trained.setdefault(text, []).append(arm["name"])
        for path, value in (arm.get("matched") or {}).items():
            matched.setdefault(path, {}).setdefault(_written(value), []).append(arm["name"])
    if blocks:
        yield from blocked(plan, blocks)
    for text, names in data.items():
        yield f"{joined(names)} {'is' if len(names) == 1 else 'are'} judged {text}."
    for text, names in trained.items():
        yield f"{joined(names)} {'trains' if len(names) == 1 else 'train'} {text}."
    for path, values in matched.items():
        parts = [f"{value} for {joined(names)}" for value, names in values.items()]
        yield f"Matching chose `{path}`: {', '.join(parts)}."


def unit_of(plan: Mapping[str, Any], arm: str) -> str:
    """The unit of the objective on an arm's task."""
    found = next(each for each in plan["arms"] if each["id"] == arm)
    return _unit(plan, found, plan["objective"]["metric"])


def blocked(plan: Mapping[str, Any], factor: str) -> Iterator[str]:
    """What it means for effects that a factor's levels are tasks, as a sentence."""
    metric = plan["objective"]["metric"]
    tasks = {level_of(arm, factor): _unit(plan, arm, metric) for arm in plan["arms"]}
    units = list(dict.fromkeys(tasks.values()))
    lead = f"The {len(tasks)} levels of {factor} are tasks, and blocks as seeds are: every effect is within a task"
    if plan["design"] not in ("full", "fractional"):
        alone = [
            arm["name"]
            for arm in plan["arms"]
            if level_of(arm, factor) not in {level_of(each, factor) for each in _baselines(plan)}
        ]
        less = f"; {joined(alone)} {'has' if len(alone) == 1 else 'have'} no such arm" if alone else ""
        yield f"{lead}, against the arm with the baseline's other levels{less}."
    elif len(units) > 1:
        yield f"{lead}; {metric} is in {' and in '.join(unit or 'no unit' for unit in units)}, so none is averaged."
    else:
        unit = f" ({units[0]})" if units[0] else ""
        yield f"{lead}; a main effect is the mean of {metric}{unit} over the tasks, each with the same weight."


def _baselines(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    known = {plan["baseline"], *task_baselines(plan).values()}
    return [arm for arm in plan["arms"] if arm["id"] in known]


def not_matched(parameters: float, flops: float) -> str:
    """What is not matched in two changes in percent, in words; "" where all is."""
    named = ((parameters, "parameters"), (flops, "training FLOPs"))
    return " and ".join(f"{value:+.0f}% {text}" for value, text in named if abs(value) > UNMATCHED)


def sizes_matched(plan: Mapping[str, Any], parameters: float, flops: float) -> str:
    """Which size `match` has made equal while the other still differs by these changes in percent; "" for any other."""
    match = plan.get("match") or {}
    if match.get("params") and abs(parameters) <= UNMATCHED < abs(flops):
        return "parameters"
    return "training FLOPs" if match.get("train_flops") and abs(flops) <= UNMATCHED < abs(parameters) else ""


def part_not_matched(plan: Mapping[str, Any], arm: Mapping[str, Any]) -> str:
    """The part of the model whose parameters differ most, as ``+50% in feed_forward``; "" where none is known to.

    Models of two kinds have other parts, or the same name for another thing.
    """
    base = next(each for each in plan["arms"] if each["id"] == plan["baseline"])
    if arm["config"]["model"].get("kind") != base["config"]["model"].get("kind"):
        return ""
    ours, theirs = (each["parameters"].get("parts") or {} for each in (arm, base))
    changes = {part: ours.get(part, 0) - size for part, size in theirs.items() if size}
    changed = max(changes, key=lambda part: abs(changes[part]), default="")
    percent = 100 * changes[changed] / theirs[changed] if changed else 0.0
    return f"{percent:+.0f}% in {changed}" if abs(percent) > UNMATCHED else ""


def more_tokens(change: float) -> str:
    """What a change of the training tokens in percent is called; "" where there is none to speak of, or no knowing."""
    return f"{change:+.0f}% training tokens" if abs(change) > UNMATCHED else ""


def _longer(plan: Mapping[str, Any], arm: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    """For how many other steps, or on how many other tokens, than the baseline an arm trains; "" where it does not."""
    ours, theirs = steps_of(plan, arm), steps_of(plan, base)
    tokens = more_tokens(tokens_delta(plan, arm, base))
    if ours != theirs:
        return f"for {ours:,} steps, the baseline for {theirs:,}{f' ({tokens})' if tokens else ''}"
    return f"for as many steps as the baseline, with {tokens}" if tokens else ""


def _task(arm: Mapping[str, Any]) -> str:
    return str(arm["config"]["task"].get("kind", ""))


def _unit(plan: Mapping[str, Any], arm: Mapping[str, Any], metric: str) -> str:
    return str((arm.get("units") or plan["units"]).get(metric, ""))


def training_flops(plan: Mapping[str, Any], arm: Mapping[str, Any]) -> float:
    """FLOPs of all of an arm's training."""
    return float(arm["flops"]) * steps_of(plan, arm)


def tokens_delta(plan: Mapping[str, Any], arm: Mapping[str, Any], base: Mapping[str, Any]) -> float:
    """How many more tokens than the baseline an arm trains on, in percent; NaN where their tokens differ in kind."""
    ours, theirs = (each["tokens"] * steps_of(plan, each) for each in (arm, base))
    alike = _task(arm) == _task(base) and _tokenizer(arm) == _tokenizer(base)
    return 100 * (ours / theirs - 1) if alike and theirs else math.nan


def steps_of(plan: Mapping[str, Any], arm: Mapping[str, Any]) -> int:
    """For how many steps an arm is trained."""
    return int(arm.get("steps") or plan["budget"]["steps"])


def _tokenizer(arm: Mapping[str, Any]) -> Any:
    return arm["config"]["task"].get("tokenizer")


def _data(plan: Mapping[str, Any], arm: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    """In which options of the task an arm differs from the baseline, or that its data do; "" where nothing does."""
    if options := _options(arm, base):
        return ", ".join(f"{key} {a}, not {b}" for key, a, b in options)
    same = arm.get("data", plan["data"])["hash"] == base.get("data", plan["data"])["hash"]
    return "" if same else "another hash"


def _options(arm: Mapping[str, Any], base: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The task's options in which two arms differ, each with both values."""
    ours, theirs = arm["config"]["task"], base["config"]["task"]
    keys = [key for key in dict.fromkeys([*ours, *theirs]) if ours.get(key) != theirs.get(key)]
    return [(key, _written(ours.get(key)), _written(theirs.get(key))) for key in keys]


def _written(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
