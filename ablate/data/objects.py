"""Python objects that an experiment names: found beside its file or installed, and run with their errors told."""

from __future__ import annotations

import hashlib
import importlib
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

import numpy as np
import torch

from ablate.data.caching import cached_value
from ablate.errors import InputError
from ablate.registry import module_of

_LONGEST = 200
"""Characters of what an exception says, which may be all that it was given."""


class Read(Protocol):
    """What was made of an object."""

    @property
    def digest(self) -> str:
        """Hash of all of it."""
        ...


R = TypeVar("R", bound=Read)


def read_alike(read: Callable[[], R], shown: str) -> R:
    """What reading an object gives; what was never read before is read twice, and must be the same both times.

    Trials read it anew, in processes of their own, and are all to be trained on one content. The global generators of
    Python, NumPy and torch are at 0 for each reading.

    Args:
        read: runs the user's code.
        shown: what the user calls the object.

    Raises:
        InputError: the second reading gives something else (S358), or a reading raises.
    """
    with repeatable():
        found = read()

    def again() -> bool:
        with repeatable():
            if read().digest == found.digest:
                return True
        raise InputError.one(
            "S358",
            f"`{shown}` gives something else each time it is read, and all trials need the same",
            help="draw by the global generators, which are at 0 here, or by one of your own with a fixed seed",
        )

    cached_value(["read alike", found.digest], again)
    return found


def named(name: str, folder: str) -> Any:
    """The object ``MODULE:NAME``; a file ``MODULE.py`` in the folder goes before what is installed.

    This runs the module's code. A file is read anew at every call, so that a change of it is seen.

    Raises:
        InputError: the module cannot be imported (S351; S360 where it lacks or mixes in ``lightning``), or has no such
            name (S352).
    """
    module, _, attribute = name.partition(":")
    found = vars(_imported(module, name, folder))
    if attribute not in found:
        near = get_close_matches(attribute, [each for each in found if not each.startswith("_")], n=1)
        raise InputError.one(
            "S352",
            f"the module `{module}` has no `{attribute}`",
            help=f"did you mean `{near[0]}`?" if near else f"define `{attribute}` in it",
        )
    return found[attribute]


def _imported(module: str, name: str, folder: str) -> ModuleType:
    file = Path(folder, *module.split(".")).with_suffix(".py")
    try:
        with _told_on_stderr(folder):
            return _executed(file) if file.is_file() else importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a stranger's module raises
        if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "lightning":
            raise mixed(name) from error
        there = isinstance(error, ModuleNotFoundError) and error.name in (module, module.split(".", maxsplit=1)[0])
        words = "put the file beside the experiment, or install the package" if there else "mend it; nothing was run"
        raise InputError.one("S351", f"cannot import `{module}`: {_told(error)}", help=words) from error


def _executed(file: Path) -> ModuleType:
    """A module of a name of its own: files of two folders may be called alike, or as a package that is installed."""
    return module_of(file, f"ablate_data_{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:8]}_{file.stem}")


def mixed(name: str) -> InputError:
    """The error of an object that is made for ``lightning`` and not for ``pytorch_lightning`` (S360)."""
    return InputError.one(
        "S360",
        f"`{name}` is made with `lightning`, and Ablate runs on `pytorch_lightning`: these are two packages, and "
        "neither knows the other's classes",
        help="write `import pytorch_lightning as pl` in place of `import lightning.pytorch as pl`",
    )


@contextmanager
def running(what: str, folder: str) -> Iterator[None]:
    """Run code of the user: it finds modules beside the experiment, and what it prints goes to stderr.

    Args:
        what: the beginning of the sentence that says what raised, as ``setup of `my_data:MyData```.
        folder: the experiment's folder.

    Raises:
        InputError: the code raises whatever it may (S354).
    """
    try:
        with _told_on_stderr(folder):
            yield
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # an exception of the user's own may be of any kind
        raise InputError.one("S354", f"{what} raises {_told(error)}", help="mend the code; nothing was run") from error


@contextmanager
def repeatable() -> Iterator[None]:
    """Run code with the global generators of Python, NumPy and torch at 0, and leave them as they were.

    What shuffles or cuts by them gives the same data in every process.
    """
    # The legacy functions of NumPy share this generator, and users' code draws by them.
    before, legacy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        try:
            yield
        finally:
            random.setstate(before)
            np.random.set_state(legacy)


@contextmanager
def _told_on_stderr(folder: str) -> Iterator[None]:
    beside = str(Path(folder).resolve())
    sys.path.append(beside)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if beside in sys.path:
            del sys.path[len(sys.path) - 1 - sys.path[::-1].index(beside)]


def _told(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        lines = [line.strip() for line in str(error).splitlines()]
    except KeyboardInterrupt:
        raise
    except BaseException as another:  # an exception of the user's own may have a `__str__` of its own
        return f"{kind}, whose text cannot be read: its `__str__` raises {type(another).__name__}"
    said = next(filter(None, lines), "")
    return f"{kind}: {said if len(said) <= _LONGEST else said[:_LONGEST] + '…'}" if said else kind
