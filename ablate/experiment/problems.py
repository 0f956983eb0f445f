"""Turning what validation found into diagnostics that say where, what, and what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ablate.errors import Diagnostic
from ablate.experiment.keys import instead_of_pruning, meant, meant_value, to_write
from ablate.experiment.paths import Place
from ablate.experiment.reading import Document, looks_like_number
from ablate.registry import Registry, closest

WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "none_required": "null",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
TRUTHS = {**dict.fromkeys(("yes", "y", "on", "1"), "true"), **dict.fromkeys(("no", "n", "off", "0"), "false")}
LENGTHS = {"too_short": ("min_length", "at least"), "too_long": ("max_length", "at most")}
BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def diagnose(
    error: ValidationError,
    document: Document,
    registry: Registry,
    *,
    data: Any = None,
    origins: Mapping[Place, Place] | None = None,
) -> list[Diagnostic]:
    """Everything that a validation found, each at its place in the file.

    ``data`` is what was validated, if it is not the document itself; ``origins`` says which of its places were set
    from where in the document (a level's value, say).
    """
    data = document.data if data is None else data
    found: dict[Place, list[Mapping[str, Any]]] = {}
    for item in error.errors():
        found.setdefault(_place(item, data), []).append(item)
    _drop_what_another_explains(found)
    problems = [
        _diagnostic(place, items, data, document, registry, _origin(place, origins or {}))
        for place, items in found.items()
    ]
    return in_order(problems)


def _drop_what_another_explains(found: dict[Place, list[Mapping[str, Any]]]) -> None:
    """Leave out the other branches of a union where one was followed further, and a key that was only misspelt."""
    for place in list(found):
        if any(other[: len(place)] == place for other in found if len(other) > len(place)):
            rest = [item for item in found[place] if item["type"] not in WANTED and item["type"] != "literal_error"]
            if rest:
                found[place] = rest
            else:
                del found[place]
    unknown = [place for place, items in found.items() if items[0]["type"] == "extra_forbidden"]
    missing = [place for place, items in found.items() if items[0]["type"] == "missing"]
    for place in unknown:
        meant = [other for other in missing if other[:-1] == place[:-1]]
        near = closest(str(place[-1]), [str(other[-1]) for other in meant])
        for other in meant:
            if other[-1] == near:
                found.pop(other, None)


def in_order(problems: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Problems in the order of their places in the file."""
    return sorted(problems, key=lambda problem: (problem.span.line, problem.span.column) if problem.span else (0, 0))


def _place(item: Mapping[str, Any], data: Any) -> Place:
    """Where in the data an error is: pydantic's path without the names of the union's branches."""
    place: list[str | int] = []
    value = data
    path: Sequence[str | int] = item["loc"]
    for index, step in enumerate(path):
        children = value if isinstance(value, Mapping) else dict(enumerate(value)) if isinstance(value, list) else {}
        if step in children:
            value = children[step]
            place.append(step)
        elif item["type"] == "missing" and index == len(path) - 1:
            place.append(step)
    return tuple(place)


def _origin(place: Place, origins: Mapping[Place, Place]) -> Place:
    """The place in the document that a value came from."""
    for length in range(len(place), -1, -1):
        if place[:length] in origins:
            return origins[place[:length]] + place[length:]
    return place


def _diagnostic(
    place: Place,
    items: Sequence[Mapping[str, Any]],
    data: Any,
    document: Document,
    registry: Registry,
    origin: Place,
) -> Diagnostic:
    kind = items[0]["type"]
    name = _name(place)
    if kind == "extra_forbidden":
        help = meant(place, data, registry)
        return document.diagnose("S101", f"unknown key `{name}`{_within(place)}", origin, key=True, help=help)
    if kind == "unknown_component":
        context = items[0]["ctx"]
        near = context["close"]
        help = f"did you mean `{near}`?" if near else f"there is: {', '.join(context['kinds'])}"
        if context["failed"]:
            help += f" (these plugins could not be used: {', '.join(context['failed'])})"
        return document.diagnose("S102", items[0]["msg"], origin, help=help)
    if kind == "missing":
        form = to_write(place, data, registry)
        return document.diagnose("S104", f"`{name}` is missing{_within(place)}", origin[:-1], key=True, help=form)
    message, remedy = _explain(name, items)
    return document.diagnose("S103", message, origin, help=remedy)


def _explain(name: str, items: Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    """What is wrong with a value, and what would be right."""
    item = items[0]
    kind, value = item["type"], item["input"]
    if kind in BOUNDS:
        key, words = BOUNDS[kind]
        bound = item["ctx"][key]
        number = f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"
        return f"`{name}` must be {words} {number}, not {_shown(value)}", None
    if kind in LENGTHS:
        key, words = LENGTHS[kind]
        count = item["ctx"][key]
        return f"`{name}` must have {words} {count} {'item' if count == 1 else 'items'}, not {len(value)}", None
    if kind == "literal_error":
        expected = [str(choice).strip("'") for choice in item["ctx"]["expected"].replace(" or ", ", ").split(", ")]
        near = meant_value(str(value), expected)
        remedy = f"did you mean `{near}`?" if near else None
        if near == value:  # text that is spelled as a number
            remedy = f"write `{near}` without quotes"
        if name == "method" and not near:
            remedy = instead_of_pruning(str(value), tuning=True)
        if name == "schema" and not near:
            remedy = f"this version of Ablate reads version {expected[-1]} of the format"
        choice = f"one of {', '.join(expected)}" if len(expected) > 1 else expected[0]
        return f"`{name}` must be {choice}, not {_shown(value)}", remedy
    if kind == "percent":
        return f"`{name}` must be less than 1, not {_shown(value)}", f"write `{item['ctx']['written']}`"
    wanted = list(dict.fromkeys(WANTED[each["type"]] for each in items if each["type"] in WANTED))
    if "a number" in wanted:
        wanted = [want for want in wanted if want != "a whole number"]
    if wanted:
        right = (
            looks_like_number(value) if isinstance(value, str) and any("number" in want for want in wanted) else None
        )
        if isinstance(value, float) and value.is_integer() and "a whole number" in wanted:
            right = str(int(value))
        if "true or false" in wanted:
            right = right or TRUTHS.get(str(value).lower())
        if name == "seeds" and "a mapping" in wanted:
            right = right or _range(value)
        return f"`{name}` must be {' or '.join(wanted)}, not {_shown(value)}", right and f"write `{right}`"
    return item["msg"].removeprefix("Value error, "), None


def _range(value: Any) -> str | None:
    """How seeds such as ``0-5``, the last one included, are written."""
    ends = re.fullmatch(r"([0-9]{1,18})\s*(?:-|:|\.\.)\s*([0-9]{1,18})", value) if isinstance(value, str) else None
    first, last = map(int, ends.groups()) if ends else (1, 0)
    return f"{{range: [{first}, {last + 1}]}}" if first <= last else None


def _shown(value: Any) -> str:
    """A value in a message: short, and text told from what only looks like it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text `{value[:60]}`"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else f"{value!r:.60}"


def _name(place: Place) -> str:
    """What a value is called: its key, and in a list also where in it: ``seeds[0]``."""
    if not place:
        return "the file"
    return f"{_name(place[:-1])}[{place[-1]}]" if isinstance(place[-1], int) else str(place[-1])


def _within(place: Place) -> str:
    return f" in `{'.'.join(map(str, place[:-1]))}`" if len(place) > 1 else ""
