"""What YAML can say of a tuple, a set or an enumeration: a list, and the value of a member."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pydantic_core import CoreSchema, PydanticKnownError, core_schema

_NO_SCHEMA = frozenset({"cls", "config", "default", "default_factory", "expected", "members", "metadata"})
"""Keys of a schema that hold values, and no further schema."""


def take_what_is_written(schema: CoreSchema, resolve: Callable[[CoreSchema], CoreSchema]) -> None:
    """Change the schema of a class in place: lists for tuples and sets, values for members; all else stays strict.

    Only the container's own type is relaxed, never what is in it, and a member is found by its value and that value's
    type, so 1, 1.0 and true remain three values. Sets are dumped in order, since their own differs by process.

    Args:
        schema: the class's own schema.
        resolve: gives what a reference in it stands for.
    """
    _relax(schema, resolve)


def _relax(node: Any, resolve: Callable[[CoreSchema], CoreSchema]) -> None:
    if isinstance(node, list | tuple):
        for item in node:
            _relax(item, resolve)
    if not isinstance(node, dict):
        return
    kind = node.get("type")
    if kind == "definition-ref":
        meant: Any = resolve(node)  # type: ignore[arg-type,unused-ignore]
        if meant.get("type") == "enum":  # a class that is referred to has seen to its own
            _relax(meant, resolve)
    elif kind == "enum":
        inner = dict(node)
        reference, member = inner.pop("ref", None), _Member(inner["cls"])
        node.clear()
        node |= core_schema.no_info_before_validator_function(member, inner, ref=reference)  # type: ignore[arg-type,unused-ignore]
    elif kind != "function-before" or not isinstance(node["function"]["function"], _Member):
        if kind in ("tuple", "set", "frozenset"):
            node["strict"] = False
        if kind in ("set", "frozenset"):
            dumped = core_schema.wrap_serializer_function_ser_schema(_in_order, when_used="json")
            node.setdefault("serialization", dumped)
        for key, item in node.items():
            if key not in _NO_SCHEMA:
                _relax(item, resolve)


@dataclass(frozen=True)
class _Member:
    """Finds the member that a value names; what is a member already stays."""

    enumeration: type[Enum]

    def __call__(self, value: Any) -> Any:
        if isinstance(value, self.enumeration):
            return value
        for member in self.enumeration:
            if (type(member.value), member.value) == (type(value), value):
                return member
        raise PydanticKnownError(
            "literal_error", {"expected": ", ".join(repr(each.value) for each in self.enumeration)}
        )


def _in_order(value: Any, dump: Callable[[Any], Any]) -> list[Any]:
    return sorted(dump(value), key=lambda item: json.dumps(item, sort_keys=True))
