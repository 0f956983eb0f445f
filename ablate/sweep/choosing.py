"""Which of a plan's trials a call may start: those of some arms, of some seeds, of some ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from ablate.errors import InputError
from ablate.records.spelling import spelled
from ablate.registry import closest

Only = str | Sequence[str] | Mapping[str, Any]
"""Arms: ``baseline`` or another arm's name, ``placement=post``, or several of such; or a level by factor.

An arm has every factor's level, or one of several that are given for it; named arms come beside these.
"""
Seeds = str | Iterable[int]
"""Seeds: numbers, or a text as ``0-2`` (both ends count) or ``0,3,5``."""

RETRIES = {"failed": ("failed", "oom"), "oom": ("oom",), "timeout": ("timed_out",)}
"""What can be run again, as it is asked for, with what is meant: running out of memory is a failure too."""
NAMED = 10
"""How many of what exists a message names."""


Chosen = Callable[[Mapping[str, Any]], bool]
"""Whether a trial, as the plan has it, is one that a call may start."""


def choose(plan: Mapping[str, Any], only: Only = (), seeds: Seeds | None = None) -> Chosen:
    """Tells the trials whose arm is named or has these levels, and whose seed is among these.

    Args:
        plan: the plan, as ``plan.json`` has it.
        only: names of arms and levels that an arm must have, as :data:`Only`; without any, every arm.
        seeds: the seeds to report, as :data:`Seeds`; None for every seed. Tuning has seeds of its own.

    Raises:
        InputError: a factor, a level or a seed is not in the plan, or no arm has these levels (S115).
    """
    arms = _arms(plan, only)
    wanted = None if seeds is None else frozenset(_seeds(plan, seeds))
    return lambda trial: trial["arm"] in arms and (wanted is None or trial["seed"] in wanted or "number" in trial)


def retried(retry: str | Iterable[str]) -> frozenset[str]:
    """What is to be run again, ``failed``, ``oom`` or ``timed_out``, from one word of :data:`RETRIES` or several.

    Raises:
        InputError: no trial ends like that, or what does so is never run again (S115).
    """
    words = frozenset([retry] if isinstance(retry, str) else retry)
    for word in sorted(words.difference(RETRIES), key=str):
        _refuse(f"nothing that ends as `{word}` can be run again", _did_you_mean(str(word), RETRIES, "there are"))
    return frozenset(fate for word in words for fate in RETRIES[word])


# --- arms -----------------------------------------------------------------------------------------------------------


def _arms(plan: Mapping[str, Any], only: Only) -> set[str]:
    arms = list(plan["arms"])
    levels = _levels(plan)
    wanted: dict[str, list[Any]] = {}
    """By factor, the levels that an arm may have."""
    if isinstance(only, Mapping):
        wanted = {name: [_level(levels, name, value)] for name, value in only.items()}
        words: list[str] = []
    else:
        words = [only] if isinstance(only, str) else list(only)
    names: set[str] = set()
    for word in words:
        factor, sign, text = word.partition("=")
        if word == "baseline" or (
            word in {arm["name"] for arm in arms} and not (sign and _known(levels, factor, text))
        ):
            names.add(word)
        elif sign:
            level = _level(levels, factor.strip(), _scalar(text.strip()))
            wanted.setdefault(factor.strip(), []).append(level)
        else:
            homes = [name for name, known in levels.items() if word in map(spelled, known)]
            near = f"did you mean `{homes[0]}={word}`?" if homes else "as `placement=post`, or `baseline`"
            _refuse(f"`{word}` names no arm: give FACTOR=LEVEL", near)
    base = plan.get("baseline", arms[0]["id"])
    named = {arm["id"] for arm in arms if arm["name"] in names or ("baseline" in names and arm["id"] == base)}
    found = {
        arm["id"]
        for arm in arms
        if any(
            all(any(_has(levels, name, level) for level in either) for name, either in wanted.items())
            for levels in (arm["levels"], *arm.get("also", ()))
        )
    }
    if not found:
        told = " and ".join(
            " or ".join(f"{name}={spelled(level)}" for level in either) for name, either in wanted.items()
        )
        # Names of arms have commas in them.
        _refuse(f"no arm is {told}", f"there are: {_listed([arm['name'] for arm in arms], '; ')}")
    return named | found if wanted or not names else named


def _levels(plan: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Every factor with its levels; those that no arm has, since each is excluded, too."""
    levels: dict[str, list[Any]] = {each["name"]: list(each["levels"]) for each in plan.get("factors", ())}
    for arm in plan["arms"]:
        for name, level in arm["levels"].items():
            known = levels.setdefault(name, [])
            if spelled(level) not in map(spelled, known):
                known.append(level)
    return levels


def _level(levels: Mapping[str, list[Any]], name: str, wanted: Any) -> Any:
    """The factor's level that is meant: 2.0 means 2 where there is no 2.0, and true the level ``on`` of a switch."""
    if name not in levels:
        _refuse(f"no factor is called `{name}`", _did_you_mean(name, levels, "there are"))
    known = levels[name]
    for level in known:
        if spelled(level) == spelled(wanted):
            return level
    if isinstance(wanted, bool):
        switched = "on" if wanted else "off"
        if switched in known:
            return switched
    elif isinstance(wanted, int | float):
        for level in known:
            if isinstance(level, int | float) and not isinstance(level, bool) and level == wanted:
                return level
    choices = [spelled(level) for level in known]
    word = spelled(wanted).strip('"')
    near = next((text for text in choices if text.strip('"') == word), None) or closest(word, choices)
    guess = f"did you mean `{near}`? " if near else ""
    return _refuse(f"`{name}` has no level `{spelled(wanted)}`", f"{guess}its levels are {_listed(choices)}")


def _known(levels: Mapping[str, list[Any]], factor: str, text: str) -> bool:
    return spelled(_scalar(text)) in map(spelled, levels.get(factor, ()))


def _scalar(text: str) -> Any:
    """A value as YAML reads it: ``off`` is text, ``null`` is nothing, ``2`` a number; what is quoted is text."""
    from ablate.experiment.yaml.scalars import resolve  # noqa: PLC0415  # it brings the whole language along

    if quoted := re.fullmatch(r"(['\"])(.*)\1", text, re.DOTALL):
        return quoted[2]
    try:
        return resolve(text)
    except OverflowError:
        return text


def _has(levels: Mapping[str, Any], name: str, level: Any) -> bool:
    return name in levels and spelled(levels[name]) == spelled(level)


# --- seeds ----------------------------------------------------------------------------------------------------------


def _seeds(plan: Mapping[str, Any], seeds: Seeds) -> list[int]:
    planned = sorted({trial["seed"] for trial in plan["trials"]})
    if isinstance(seeds, int):
        _refuse(f"the seeds {seeds} are one number", f"give a list: `seeds=[{seeds}]`")
    wanted = list(_ranges(seeds, planned)) if isinstance(seeds, str) else list(seeds)
    if not wanted:
        _refuse("no seed is named", f"the plan has {_spans(planned)}")
    if missing := [seed for seed in wanted if seed not in planned]:
        which = f"seed {missing[0]} is" if len(missing) == 1 else f"seeds {_listed(map(str, missing))} are"
        _refuse(f"{which} not in the plan", f"it has {_spans(planned)}")
    return wanted


def _ranges(text: str, planned: Sequence[int]) -> Iterable[int]:
    for part in text.split(","):
        found = re.fullmatch(r"\s*([0-9]{1,19})(?:\s*-\s*([0-9]{1,19}))?\s*", part)
        if not found:
            _refuse(f"`{text}` names no seeds", "as `0-2`, which is 0, 1 and 2, or as `0,3,5`")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            _refuse(f"`{part.strip()}` is a range that ends before it begins", f"`{last}-{first}`?")
        if last - first >= 2 * len(planned) + NAMED:  # too many to be in the plan: the ends say enough
            yield from (first, last)
        else:
            yield from range(first, last + 1)


def _spans(numbers: Sequence[int]) -> str:
    """Numbers in order, those in a row as a range."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return _listed("-".join(map(str, span)) for span in spans)


# --- messages -------------------------------------------------------------------------------------------------------


def _listed(names: Iterable[str], sign: str = ", ") -> str:
    listed = list(names)
    more = len(listed) - NAMED
    return sign.join(listed[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _did_you_mean(word: str, words: Iterable[str], there: str) -> str:
    listed = list(words)
    near = closest(word, listed)
    exist = f"{there}: {_listed(listed)}" if listed else "there are none"
    return f"did you mean `{near}`? {exist}" if near else exist


def _refuse(message: str, help: str) -> NoReturn:
    raise InputError.one("S115", message, help=help)
