"""Docstrings that tell a reader at the method what the function behind it says of its frame."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

Frame = Callable[..., Any]


def with_columns(pairs: Iterable[tuple[Frame, Frame]]) -> None:
    """Let each method's docstring end with the columns of the function beside it, so that ``help()`` shows them."""
    for method, function in pairs:
        method.__doc__ = f"{inspect.getdoc(method)}\n\n{columns_of(function)}"


def columns_of(function: Frame) -> str:
    """What a function's docstring says of its columns: from ``Columns:`` to the next line that is not indented."""
    first, *rest = ("Columns:" + (inspect.getdoc(function) or "").partition("\nColumns:")[2]).splitlines()
    end = next((place for place, line in enumerate(rest) if line and not line.startswith(" ")), len(rest))
    return "\n".join([first, *rest[:end]]).rstrip()
