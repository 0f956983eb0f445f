"""Writing values as YAML that reads back as the same values, here and in other tools."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

from ablate.experiment.yaml.composing import MAX_DEPTH
from ablate.experiment.yaml.scalars import resolve

_WIDTH = 100
# Where a plain text would be taken for something else: by its start, by what is in it or by its end.
_TAKEN = re.compile(r"[-?:,\[\]{}#&*!|>'\"%@` ]|\.\.\.|.*(?:: | #)|.*[ :]$")
_IN_BRACKETS = re.compile(r"[,?\[\]{}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# YAML 1.1 has y and n for true and false; and readers differ about what a base's letter may have around it.
_OTHERWISE_READ = re.compile(r"[yYnN]|[-+]?0[bo][0-9]*")


def dump(value: Any) -> str:
    r"""A value as YAML text, which `ablate.experiment.reading.parse` reads back to the same value if it is a mapping.

    Mappings with text as keys, lists, text, numbers, true, false and None can be written; keys keep their order. Text
    stands without quotes where readers of YAML 1.2 and of 1.1 both take it for that text: ``on``, a date and ``1_000``
    are put in quotes. A collection that holds at most collections of scalars goes between brackets if it fits in 100
    columns.

    Raises:
        ValueError: a number that is not finite or that no float can hold, half of a character (a lone surrogate), or
            more than 100 levels.
        TypeError: a value of another type, or a key that is not text.
    """
    _height(value)
    sections = _items(value, 0) if isinstance(value, Mapping | list) and value else [[_line(value)]]
    lines = sections[0]
    for before, section in itertools.pairwise(sections):
        # A section of several lines stands apart.
        lines += ["", *section] if len(before) > 1 or len(section) > 1 else section
    return "\n".join(lines) + "\n"


def _height(value: Any, depth: int = 0) -> int:
    """How many collections are one inside of the other; a value inside of itself has too many."""
    if depth > MAX_DEPTH:
        raise ValueError(f"values are nested deeper than {MAX_DEPTH} levels")
    if not isinstance(value, Mapping | list):
        return 0
    children = value.values() if isinstance(value, Mapping) else value
    return 1 + max((_height(child, depth + 1) for child in children), default=0)


def _items(value: Mapping[str, Any] | list[Any], indent: int) -> list[list[str]]:
    """The lines of each item of a collection, one below the other."""
    pairs = value.items() if isinstance(value, Mapping) else ((None, item) for item in value)
    return [_item(name, item, indent, in_list=isinstance(value, list)) for name, item in pairs]


def _item(name: str | None, value: Any, indent: int, *, in_list: bool) -> list[str]:
    margin = " " * indent
    key = "" if in_list else _text(name)
    # A key of more than 1024 characters is none, unless a question mark announces it.
    long = len(key) > 1000
    lines = [f"{margin}? {key}"] if long else []
    head = "-" if in_list else ":" if long else f"{key}:"
    collection = isinstance(value, Mapping | list) and value
    if not collection or _height(value) <= 2:
        line = f"{margin}{head} {_line(value)}"
        if not collection or len(line) <= _WIDTH:
            return [*lines, line]
    below = [line for item in _items(value, indent + 2) for line in item]
    if in_list or long:
        return [*lines, f"{margin}{head} {below[0][indent + 2 :]}", *below[1:]]
    return [f"{margin}{head}", *below]


def _line(value: Any, *, bracketed: bool = False) -> str:
    """A value in one line."""
    if isinstance(value, Mapping):
        pairs = (f"{_text(key, bracketed=True)}: {_line(item, bracketed=True)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(_line(item, bracketed=True) for item in value)}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return _number(value)
    return _text(value, bracketed=bracketed)


def _number(value: float) -> str:
    if not abs(value) <= sys.float_info.max:
        raise ValueError(f"{value} is not finite" if isinstance(value, float) else "a whole number is out of range")
    if isinstance(value, int):
        return int.__repr__(value)
    written = float.__repr__(value)
    # By YAML 1.1 a number with an exponent has a point.
    return written if "." in written else written.replace("e", ".0e")


def _text(text: Any, *, bracketed: bool = False) -> str:
    """A text without quotes, or in quotes where it would be taken for something else."""
    if not isinstance(text, str):
        raise TypeError(f"{type(text).__name__} cannot be written as YAML")
    if _SURROGATE.search(text):
        raise ValueError("a text holds half of a character")
    if _is_plain(text) and not (bracketed and _IN_BRACKETS.search(text)):
        return text
    # JSON's escapes are YAML's too, and what cannot be seen is written by its code.
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else _escape(ord(each)) for each in quoted)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _is_plain(text: str) -> bool:
    if not text.isprintable() or _TAKEN.match(text):
        return False
    bare = text.replace("_", "")
    if _OTHERWISE_READ.fullmatch(bare):
        return False
    try:
        if not isinstance(resolve(bare), str):
            return False
    except OverflowError:
        return False
    tag: str = Resolver().resolve(ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return tag == "tag:yaml.org,2002:str"
