"""Ways to spoil an experiment: as text, and as values that are written as text again.

Each takes what is to be spoiled and ``pick``, which chooses a number below the one that it is given; the same picks
make the same document.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

from ablate.experiment.reading import parse
from ablate.experiment.yaml.writing import dump

Pick = Callable[[int], int]
Mutation = Callable[[str, Pick], str]

SCALARS = [
    "", "~", "null", "true", "false", "on", "off", "yes", "no", "none", "0", "-1", "1.5", "010", "1e-3", "1e999",
    ".nan", ".inf", "-.inf", "99999999999999999999", "1_000", "0x10", "12:30", "2024-01-01", "1%", "20m", "20GiB",
    "[]", "{}", "[[]]", "[1, a, null]", "{a: 1}", "{kind: none}", "{kind: attention}", "{kind: nosuch}",
    "{kind: [1]}", "{kind: {}}", "{kind: null}", "{kind: mlp, ratio: -1}", "model", "model.residual",
    "model.mixer.scale.kind", "model..norm", ".", "/", "../x", "fuzzed.yaml", "x.py", "baseline", "why", "kind",
    "a=b, c", '""', '"\\0"', '"\\x1b[31m"', '"\\ud800"', "'a", '"a', "[a", "{a", "*a", "&a b", "!!str a", "!x", "|",
    ">", "a: b", "a #b", "%a", "@a", "<<", "é", "🙂", "\u202ea", "x" * 300, "[" * 120, "{range: [0, 3]}",
    "{range: [3, 0]}", "{values: [1, 2]}", "{log: [1e-4, 1], n: 3}",
]  # fmt: skip
PIECES = [
    "\t", "\0", "\x1b", "\x7f", "\x85", "\u2028", "\ufeff", "\ud800", "🙂", "é", ":", ": ", "#", " #", "'", '"', "[",
    "]", "{", "}", ",", "- ", "? ", "&a ", "*a ", "!", "|\n", "%", "---\n", "...\n", "\r", "\n", "\n\n", "  ", "<<: ",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 10**18, 0.5, -0.0, 1e300, "", "on", "yes", "none", "pre", "model.norm", "kind",
    "\x1b[31m", "\u202e", "a\nb", "x" * 300, "🙂", [], [[]], [None], ["pre", "pre"], [1, 1.0, True], {},
    {"kind": "none"}, {"kind": None}, {"kind": ["x"]}, {"a": {"b": {"c": 1}}}, {"": 1}, {"model.norm": "rms"},
    {"why": "so"}, {"range": [0, 10]}, {"path": "model.width", "levels": [16, 32]}, {"switch": "model.norm"},
    {"levels": {"a": {}, "b": {}}},
]  # fmt: skip
# A scalar of a key or of a list, as they are written in the experiments that are spoiled.
_SCALAR = re.compile(r"(?<=[:\[,-] )[^\s,\[\]{}#]+|(?<=\[)[^\s,\[\]{}#]+")
_KEY = re.compile(r"[\w.]+(?=:\s)")


def drop_line(text: str, pick: Pick) -> str:
    lines = text.splitlines(keepends=True)
    del lines[pick(len(lines))]
    return "".join(lines)


def repeat_line(text: str, pick: Pick) -> str:
    lines = text.splitlines(keepends=True)
    lines.insert(pick(len(lines)), lines[pick(len(lines))])
    return "".join(lines)


def swap_lines(text: str, pick: Pick) -> str:
    lines = text.splitlines(keepends=True)
    one, other = pick(len(lines)), pick(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def replace_scalar(text: str, pick: Pick) -> str:
    found = list(_SCALAR.finditer(text))
    if not found:
        return text
    match = found[pick(len(found))]
    return text[: match.start()] + SCALARS[pick(len(SCALARS))] + text[match.end() :]


def misspell_key(text: str, pick: Pick) -> str:
    """Change, add or remove one letter of a key."""
    found = list(_KEY.finditer(text))
    if not found:
        return text
    match = found[pick(len(found))]
    at = match.start() + pick(len(match[0]))
    return text[:at] + ("", "x", text[at] + "x", text[at].upper())[pick(4)] + text[at + 1 :]


def splice(text: str, pick: Pick) -> str:
    at = pick(len(text))
    return text[:at] + PIECES[pick(len(PIECES))] + text[at:]


def indent(text: str, pick: Pick) -> str:
    """Move one line to the right, or to the margin."""
    lines = text.splitlines(keepends=True)
    at = pick(len(lines))
    lines[at] = (" ", "  ", "    ", "\t", "")[pick(5)] + lines[at].lstrip(" ")
    return "".join(lines)


def cut(text: str, pick: Pick) -> str:
    return text[: pick(len(text))]


def replace_value(text: str, pick: Pick) -> str:
    return _with_data(text, pick, lambda around, key, _: around.__setitem__(key, VALUES[pick(len(VALUES))]))


def drop_value(text: str, pick: Pick) -> str:
    return _with_data(text, pick, lambda around, key, _: around.__delitem__(key))


def repeat_value(text: str, pick: Pick) -> str:
    """Put a value a second time where it is: as another item, or under another key."""

    def repeat(around: Any, key: Any, _: list[tuple[Any, Any]]) -> None:
        if isinstance(around, list):
            around.append(copy.deepcopy(around[key]))
        else:
            around[key + "2"] = copy.deepcopy(around[key])

    return _with_data(text, pick, repeat)


def move_value(text: str, pick: Pick) -> str:
    """Put a value where another is."""

    def move(around: Any, key: Any, places: list[tuple[Any, Any]]) -> None:
        other, there = places[pick(len(places))]
        other[there] = copy.deepcopy(around[key])

    return _with_data(text, pick, move)


def rename_key(text: str, pick: Pick) -> str:
    """Give a value the key of another."""

    def rename(around: Any, key: Any, places: list[tuple[Any, Any]]) -> None:
        other = places[pick(len(places))][1]
        if isinstance(around, dict):
            around[str(other)] = around.pop(key)

    return _with_data(text, pick, rename)


OF_TEXT: list[Mutation] = [
    drop_line, repeat_line, swap_lines, replace_scalar, replace_scalar, misspell_key, splice, indent, cut,
]  # fmt: skip
OF_DATA: list[Mutation] = [replace_value, replace_value, drop_value, repeat_value, move_value, rename_key]


def _with_data(text: str, pick: Pick, change: Callable[[Any, Any, list[tuple[Any, Any]]], object]) -> str:
    """The text with its values changed: ``change`` gets one place, a collection and a key of it, and all places."""
    data = parse(text, "x.yaml").data
    places = _places(data)
    if not places:
        return text
    around, key = places[pick(len(places))]
    change(around, key, places)
    return dump(data)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every collection with each of its keys."""
    keys = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in keys for place in [(value, key), *_places(item)]]
