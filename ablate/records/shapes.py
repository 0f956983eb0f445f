"""What a plan and a record must look like, so that a damaged file is one clear error wherever it is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

Fault = tuple[str, str]
"""Where in a value something is wrong, and what, with `{}` for the place."""
Shape = Callable[[Any], Fault | None]
"""Says what is wrong with a value first; None where it is as it must be, and then no place is spelled out."""


def plan_fault(plan: Mapping[str, Any]) -> str | None:
    """The first thing that is wrong with a plan, or None. Keys that nothing here knows may hold anything."""
    return next(_of_plan(plan), None)


def record_fault(record: Mapping[str, Any]) -> str | None:
    """The first thing that is wrong with a sealed record, or None."""
    return _told(_RECORD(record))


def label_fault(config: Mapping[str, Any]) -> str | None:
    """The first thing that keeps a trial's configuration from saying what the trial is called, or None."""
    return _told(_LABEL(config))


# --- shapes ---------------------------------------------------------------------------------------------------------


def _told(fault: Fault | None) -> str | None:
    return fault[1].format(f"`{fault[0].removeprefix('.')}`") if fault else None


def _kind(wanted: str, test: Callable[[Any], bool]) -> Shape:
    fault = ("", f"{{}} is not {wanted}")
    return lambda value: None if test(value) else fault


def _is_number(value: Any) -> bool:
    # A whole number that no float can hold is damage, and not a count of anything.
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1e300)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _anything(value: Any) -> Fault | None:
    return None


def _text(value: Any) -> Fault | None:  # most of what there is to check: one call, and no test within it
    return None if isinstance(value, str) else ("", "{} is not text")


_number = _kind("a number", _is_number)
_finite = _kind("a finite number", _is_finite)
_whole = _kind("a whole number", _is_whole)
_positive = _kind("a whole number of at least 1", lambda value: _is_whole(value) and value >= 1)
_prediction = _kind("an effect", lambda value: value in ("better", "worse", "no_difference", "diverged"))
_scalar = _kind("a scalar", lambda value: value is None or isinstance(value, str | bool) or _is_finite(value))


def _maybe(shape: Shape) -> Shape:
    return lambda value: None if value is None else shape(value)


def _each(shape: Shape) -> Shape:
    def check(value: Any) -> Fault | None:
        if not isinstance(value, list):
            return "", "{} is not a list"
        for number, item in enumerate(value):
            if fault := shape(item):
                return f"[{number}]{fault[0]}", fault[1]
        return None

    return check


def _pair(first: Shape, second: Shape) -> Shape:
    def check(value: Any) -> Fault | None:
        if not isinstance(value, list) or len(value) != 2:
            return "", "{} is no pair"
        for index, shape in enumerate((first, second)):
            if fault := shape(value[index]):
                return f"[{index}]{fault[0]}", fault[1]
        return None

    return check


def _values(shape: Shape) -> Shape:
    def check(value: Any) -> Fault | None:
        if not isinstance(value, dict):
            return "", "{} is not a mapping"
        for key, item in value.items():
            if fault := shape(item):
                return f".{key}{fault[0]}", fault[1]
        return None

    return check


def _fields(required: Mapping[str, Shape], **optional: Shape) -> Shape:
    shapes = tuple({**required, **optional}.items())

    def check(value: Any) -> Fault | None:
        if not isinstance(value, dict):
            return "", "{} is not a mapping"
        for key, shape in shapes:
            if key in value:
                if fault := shape(value[key]):
                    return f".{key}{fault[0]}", fault[1]
            elif key in required:
                return f".{key}", "it lacks {}"
        return None

    return check


# --- the files ------------------------------------------------------------------------------------------------------

_LEVELS = _values(_scalar)
_COMPONENTS = _each(
    _fields({"slot": _text, "kind": _text, "origin": _text, "version": _anything, "source": _maybe(_text)})
)
_DATA = _fields({"hash": _text}, facts=_values(_finite))
_TRAINING = _fields({"optimizer": _fields({}, lr=_scalar)}, clip=_maybe(_finite), batch=_whole)
_ARM = _fields(
    {
        "id": _text,
        "name": _text,
        "levels": _LEVELS,
        "config": _fields(
            {"model": _values(_anything), "task": _fields({}, path=_maybe(_text)), "training": _TRAINING}
        ),
        "parameters": _fields({"total": _whole}, non_embedding=_whole, parts=_values(_whole)),
        "flops": _finite,
        "tokens": _whole,
    },
    aliases=_each(_text),
    also=_each(_LEVELS),
    components=_COMPONENTS,
    notes=_each(_text),
    data=_DATA,
    steps=_positive,
    matched=_maybe(_values(_scalar)),
    activations=_maybe(_whole),
    units=_values(_text),
    tuning=_maybe(_fields({"identity": _text, "params": _each(_text)})),
    tuned=_values(_anything),
)
_TUNED = {"id": _text, "arm": _text, "seed": _whole, "tuned": _values(_anything)}
_ENDS = _maybe(_pair(_finite, _finite))
_TUNING = _fields(
    {
        "method": _text,
        "params": _values(_fields({"log": _ENDS, "linear": _ENDS})),
        "seeds": _each(_whole),
        "combinations": _whole,
        "halving": _maybe(_fields({"reduction": _whole, "rungs": _whole})),
    },
    runs=_each(_fields({**_TUNED, "number": _whole})),
    at_baseline=_maybe(_each(_fields(_TUNED))),
    widened=_whole,
)
_PLAN = _fields(
    {
        "name": _text,
        "question": _text,
        "hash": _text,
        "design": _text,
        "baseline": _text,
        "factors": _each(
            _fields(
                {"name": _text, "levels": _each(_scalar), "baseline": _scalar},
                sets=_each(_each(_fields({"path": _text}))),
            )
        ),
        "objective": _fields({"metric": _text, "goal": _text, "smallest_effect": _finite}, secondary=_each(_text)),
        "units": _values(_text),
        "seeds": _each(_whole),
        "budget": _fields({"steps": _positive}),
        "diverged": _values(_anything),
        "arms": _each(_ARM),
        "trials": _each(_fields({"id": _text, "arm": _text, "seed": _whole})),
        "excluded": _each(_fields({"levels": _LEVELS}, name=_text, why=_text)),
        "components": _COMPONENTS,
        "data": _DATA,
        "device": _text,
        "precision": _text,
        "threads": _whole,
        "command": _text,
    },
    fraction=_maybe(
        _fields(
            {"resolution": _maybe(_whole), "runs": _whole, "full": _whole},
            aliases=_maybe(_each(_each(_text))),
            generators=_maybe(_each(_text)),
        )
    ),
    expect=_maybe(
        _each(
            _fields(
                {"effect": _prediction},
                name=_text,
                arm=_maybe(_text),
                factor=_maybe(_text),
                level=_scalar,
                source=_maybe(_text),
            )
        )
    ),
    match=_maybe(_values(_anything)),
    tuning=_maybe(_TUNING),
    repeats=_each(_fields({"id": _text, "arm": _text, "seed": _whole, "repeat": _positive})),
    vocabulary=_maybe(_whole),
    git=_maybe(_fields({"commit": _text}, dirty=_anything)),
    folder=_text,
    plugins=_each(_text),
)
_LABEL = _fields({"trial": _text, "arm_name": _text, "seed": _whole, "levels": _values(_anything)}, repeat=_positive)
_RECORD = _fields(
    {
        "trial": _text,
        "arm_name": _text,
        "seed": _whole,
        "levels": _values(_anything),
        "end": _text,
        "reason": _maybe(_fields({"rule": _text, "step": _maybe(_whole)})),
        "attempt": _positive,
        "metrics": _values(_maybe(_number)),
        "components": _COMPONENTS,
    },
    first_bad=_maybe(_fields({"step": _maybe(_whole), "module": _maybe(_text), "what": _text})),
    replay_seconds=_maybe(_number),
    facts=_maybe(_values(_maybe(_number))),
    steps=_maybe(_whole),
    tokens=_maybe(_whole),
    micro_batch=_maybe(_whole),
    rungs=_each(_pair(_whole, _values(_maybe(_number)))),
    peak_memory=_maybe(_whole),
    seconds=_maybe(_number),
    repeat=_positive,
    lineage=_maybe(_text),
    continued_from=_maybe(_fields({"trial": _text, "steps": _whole, "seconds": _number})),
    tokens_per_second=_maybe(_number),
    started=_maybe(_text),
    sealed=_maybe(_text),
)


def _of_plan(plan: Mapping[str, Any]) -> Iterator[str]:
    if fault := _told(_PLAN(plan)):
        yield fault
    arms = {arm["id"] for arm in plan["arms"]}
    if plan["baseline"] not in arms:
        yield "`baseline` is none of its arms"
    yield from _of_trials("trials", plan["trials"], arms)
    yield from _of_tuning(plan, arms)
    again = {"repeats": plan.get("repeats", ()), "tuning.at_baseline": (plan.get("tuning") or {}).get("at_baseline")}
    for place, trials in again.items():
        yield from _of_trials(place, trials or (), arms, {trial["seed"] for trial in plan["trials"]})
    if plan["objective"]["metric"] not in plan["units"]:
        yield "`objective.metric` is none of its `units`"
    if plan["objective"]["goal"] not in ("min", "max"):
        yield "`objective.goal` is neither `min` nor `max`"
    if not plan["seeds"]:
        yield "`seeds` is empty"


def _of_trials(
    place: str, trials: Iterable[Mapping[str, Any]], arms: Collection[str], seeds: Collection[int] | None = None
) -> Iterator[str]:
    seen: set[str] = set()
    for number, trial in enumerate(trials):
        if trial["arm"] not in arms:
            yield f"`{place}[{number}].arm` is none of its arms"
        if not trial["id"] or "/" in trial["id"] or trial["id"].startswith("."):
            yield f"`{place}[{number}].id` is no identity"
        if seeds is not None and trial["seed"] not in seeds:
            yield f"`{place}[{number}].seed` is none of its trials'"
        if trial["id"] in seen:
            yield f"`{place}[{number}].id` is that of another trial"
        seen.add(trial["id"])


def _of_tuning(plan: Mapping[str, Any], arms: Collection[str]) -> Iterator[str]:
    tuning = plan.get("tuning") or {}
    params = tuning.get("params", {})
    yield from _of_trials("tuning.runs", tuning.get("runs") or (), arms)
    for path, search in params.items():
        ends = search["log"] or search["linear"]
        if ends and not (0 if search["log"] else -math.inf) < ends[0] < ends[1] < math.inf:
            yield f"`tuning.params.{path}` is no range"
    for number, arm in enumerate(plan["arms"]):
        for path, value in arm.get("tuned", {}).items():
            ranged = path in params and (params[path]["log"] or params[path]["linear"])
            if path not in params or (ranged and not (_is_finite(value) and (value > 0 or not params[path]["log"]))):
                yield f"`arms[{number}].tuned.{path}` is nothing that was tried"
