"""Packages that only some tasks need."""

from __future__ import annotations

import importlib
from types import ModuleType

from ablate.errors import InputError


def needed(module: str, *, package: str, extra: str, task: str) -> ModuleType:
    """Import a module of an optional package.

    Args:
        module: what is imported.
        package: the name that the package is installed by.
        extra: the extra of this distribution that brings it.
        task: the kind of the task that needs it.

    Raises:
        InputError: it is not installed; says how it is.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InputError.one(
            "S335",
            f"the task `{task}` needs the package `{package}`, which is not installed",
            help=f"pip install 'ablate-arch[{extra}]'",
        ) from error
