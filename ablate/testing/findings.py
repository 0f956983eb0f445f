"""What a check finds: what was expected, what was got, and where."""

from __future__ import annotations

import inspect
import os
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from ablate.registry import kind_of
from ablate.slots import Component


@dataclass(frozen=True)
class Finding:
    """The outcome of one check on one component."""

    check: str
    """The check's short name, as ``causal``."""
    component: str
    """Slot and kind, as ``norm: rms``."""
    ok: bool
    expected: str
    got: str
    file: str
    """The component's file, relative to the current folder where it lies in it."""
    line: int
    """Where the component's class begins, or the line of its file where an exception was raised."""

    def __str__(self) -> str:
        """The finding as one line; a failing one begins with its place, so that editors can go there."""
        if self.ok:
            return f"{self.component}: {self.check}: ok: {self.expected}"
        return f"{self.file}:{self.line}: {self.component}: {self.check}: expected {self.expected}; got {self.got}"


class ContractError(AssertionError):
    """A component breaks its contract; the message is the finding's."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


def title(component: type[Component]) -> str:
    """Slot and kind, as ``norm: rms``."""
    kind = kind_of(component) if "kind" in component.model_fields else component.__name__
    return f"{getattr(component, 'slot', 'no slot')}: {kind}"


def place(component: type[Component], error: BaseException | None = None) -> tuple[str, int]:
    """File and line of a component's class, or of the last line of that file that an exception went through."""
    path, line = _beginning(component)
    if path is None:
        return "<unknown>", 0
    for frame in traceback.extract_tb(error.__traceback__) if error else []:
        if frame.filename == path and frame.lineno is not None:
            line = frame.lineno
    return _shown(path), line


@cache  # a file is parsed for it, and each of a component's checks asks
def _beginning(component: type[Component]) -> tuple[str | None, int]:
    try:
        path = inspect.getsourcefile(component) or inspect.getfile(component)
        return path, inspect.getsourcelines(component)[1]
    except (OSError, TypeError):  # a class that was made where there is no file
        return None, 0


def _shown(path: str) -> str:
    here = Path(os.getcwd())
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def told(error: BaseException) -> str:
    """An exception in one line; what was wrong with options by their names."""
    if isinstance(error, ValidationError):
        return "; ".join(
            f"`{'.'.join(map(str, each['loc']))}`: {each['msg']}" if each["loc"] else each["msg"]
            for each in error.errors()
        )
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
