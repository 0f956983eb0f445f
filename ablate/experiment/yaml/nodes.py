"""The values of a file while it is read: where each stands, and what it becomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ablate.errors import Span
from ablate.experiment.yaml.scalars import Scalar, resolve
from ablate.experiment.yaml.source import Source, shown

Place: TypeAlias = tuple[str | int, ...]
Value: TypeAlias = "Scalar | list[Value] | dict[str, Value]"

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Node:
    """A value of the file; ``size`` and ``height`` are what they will be once aliases are expanded."""

    span: Span
    content: Scalar | list[Node] | dict[str, tuple[Span, Node]]
    written: str = ""
    plain: bool = False
    size: int = 1
    height: int = 0
    open: bool = False


def kind_of(content: object) -> str:
    """What a value is, in the words of a message."""
    if content is None:
        return "null"
    names = {bool: "true or false", str: "text", list: "a list", dict: "a mapping"}
    return names.get(type(content), "a number")


def plain_value(text: str, span: Span, source: Source) -> Scalar:
    """What a text without quotes is, or the text and a complaint."""
    try:
        value = resolve(text)
    except OverflowError:
        source.report(
            "Y018", f"the number {shown(text)} is out of range", span,
            "numbers go from 5e-324 to about 1.8e308; infinity is `.inf`",
        )  # fmt: skip
        return text
    if re.fullmatch(r"[-+]?0[0-9]+", text):
        octal = "" if re.search("[89]", text) else f", or `0o{text.lstrip('+-0') or 0}` for the octal number"
        source.report("W010", f"{shown(text)} is read as {value}", span, f"write `{value}`{octal}")
    return value


def quoted_value(text: str, span: Span, source: Source) -> str:
    """What a text in quotes or in a block is, or the text as it is and a complaint."""
    if not _SURROGATE.search(text):
        return text
    try:
        # JSON writes a character beyond U+FFFF as two escapes; PyYAML leaves them apart.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        source.report(
            "Y019", "an escape in this text is half of a character", span,
            r'write the whole character, or its code: "\U0001f642"',
        )  # fmt: skip
        return text


def name_of(key: Node, others: Mapping[str, tuple[Span, Node]], source: Source) -> str | None:
    """The name that a key gives beside the others of its mapping, or None and a complaint."""
    name = key.content
    if key.plain and name == "<<":
        help = "repeat the keys, or put what is shared in the file that `extends:` names"
        source.report("Y014", "YAML 1.2 has no merge key `<<`", key.span, help)
    elif not isinstance(name, str):
        message = f"the key {shown(key.written)} is {kind_of(name)}, not text"
        help = f'write `"{key.written}"`' if len(key.written) <= 40 else "put it in quotes"
        if isinstance(name, list | dict):
            message, help = f"{kind_of(name)} cannot be a key", "a key is text"
        elif not key.written:
            message, help = "a key is missing before this `:`", "write `key: value`"
        source.report("Y013", message, key.span, help)
    elif name in others:
        first, again = others[name][0], key.span
        where = f"on lines {first.line} and {again.line}"
        if first.line == again.line:
            where = f"on line {first.line}, at columns {first.column} and {again.column}"
        source.report("Y012", f"the key {shown(name)} is given twice, {where}", again, "keep one of the two")
    else:
        return name
    return None


def expand(node: Node, place: Place, keys: dict[Place, Span], values: dict[Place, Span]) -> Value:
    """The value of a node, with the places of all that is in it; what an alias repeats becomes a copy."""
    values[place] = node.span
    if isinstance(node.content, list):
        return [expand(child, (*place, index), keys, values) for index, child in enumerate(node.content)]
    if isinstance(node.content, dict):
        keys.update({(*place, name): span for name, (span, _) in node.content.items()})
        return {name: expand(child, (*place, name), keys, values) for name, (_, child) in node.content.items()}
    return node.content
