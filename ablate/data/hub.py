"""Datasets of the Hugging Face hub, and those that the same package reads from local files."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from ablate.data.tables import Table, of_arrow
from ablate.errors import InputError

_HUB = re.compile(r"(?P<name>[\w.-]+(/[\w.-]+)?)(/(?P<config>[\w.-]+))?(:(?P<split>.+))?")
_LOCAL = re.compile(r"(?P<path>(\.{1,2}/|/)[^:]+)(:(?P<split>.+))?")
_PATIENCE = 5.0
"""Seconds that the hub has for answering."""
_LONGEST = 160
"""Characters of what a reader says, which may list all that it knows."""
_BESIDE = "a path is relative to the experiment's file"


def read_dataset(name: str, folder: str, columns: Sequence[str], shown: str) -> Table:
    """Read columns of text from a dataset, as :func:`~ablate.data.sources.read_source` says.

    It runs no code that comes with the dataset.

    Raises:
        InputError: the hub cannot be reached (S356), the dataset cannot be loaded (S357) or is no such table.
    """
    local, remote = _LOCAL.fullmatch(name), _HUB.fullmatch(name)
    if not local and not remote:
        _refuse(
            "S350",
            f"`{shown}` names no dataset",
            "write `hub:OWNER/NAME`, `hub:OWNER/NAME:SPLIT` or `hub:OWNER/NAME/CONFIG:SPLIT`, or `hub:./FOLDER`",
        )
    try:
        datasets: Any = importlib.import_module("datasets")  # an extra, which takes a second to import
    except ModuleNotFoundError as error:
        raise InputError.one(
            "S335",
            f"`{shown}` needs the package `datasets`, which is not installed",
            help="pip install 'ablate-arch[datasets]'",
        ) from error
    if local:
        path = Path(folder, local["path"])
        if not os.path.exists(path):  # which says no of a name that no file can have
            _refuse("S357", f"cannot load `{shown}`: there is no such file or folder", _BESIDE)
        table = _loaded(datasets, path.resolve(), local["split"], shown)
    else:
        assert remote is not None
        table = _fetched(datasets, remote["name"], remote["config"], remote["split"], shown)
    return of_arrow(table, columns, shown)


def _loaded(datasets: Any, path: Path, split: str | None, shown: str) -> pa.Table:
    saved = {"state.json", "dataset_dict.json"}
    try:
        if path.is_file():
            found = datasets.load_dataset(str(path.parent), data_files=path.name, split=split or "train")
        elif any((path / name).is_file() for name in saved):
            found = datasets.load_from_disk(str(path))
            if isinstance(found, dict):
                found = found[_split_of(found, split or "train", shown)]
            elif split is not None:
                _split_of([str(found.split)], split, shown)
        else:
            found = datasets.load_dataset(str(path), split=split or "train")
        return found.with_format("arrow")[:]
    except InputError:
        raise
    except Exception as error:  # it raises what its readers raise, and those of a dozen formats
        _refuse("S357", f"cannot load `{shown}`: {_said(error)}", _BESIDE)


def _split_of(splits: Any, split: str, shown: str) -> str:
    if split not in splits:
        has = ", ".join(f"`{each}`" for each in splits)
        _refuse("S357", f"cannot load `{shown}`: it has no split `{split}`", f"it has {has}")
    return split


def _fetched(datasets: Any, name: str, config: str | None, split: str | None, shown: str) -> pa.Table:
    reached = _answers(name)
    try:
        with _offline(datasets) if not reached else _as_it_is():
            found = datasets.load_dataset(name, config, split=split or "train")
        return found.with_format("arrow")[:]
    except Exception as error:
        if reached:
            _refuse("S357", f"cannot load `{shown}`: {_said(error)}", f"https://huggingface.co/datasets/{name}")
        _refuse(
            "S356",
            f"cannot load `{shown}`: the hub cannot be reached, and there is no copy of it on this machine",
            "load it once with a network, or give files of it as `hub:./FOLDER`",
        )


def _answers(name: str) -> bool:
    """Whether the hub says anything of a dataset; `load_dataset` would try for half a minute to find out."""
    from huggingface_hub import HfApi  # noqa: PLC0415  # `datasets` brings it
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

    try:
        HfApi().dataset_info(name, timeout=_PATIENCE)
    except HfHubHTTPError:
        return True  # a refusal is an answer, and `load_dataset` has the words for it
    except Exception:  # of the network, by either of two libraries, or that it is turned off
        return False
    return True


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


@contextmanager
def _offline(datasets: Any) -> Iterator[None]:
    """Take what is in the cache of `datasets`, and ask no one."""
    before, datasets.config.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE, True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before


def _said(error: Exception) -> str:
    # A reader's words are "An error occurred while generating the dataset", and what occurred is its cause.
    first = error.__cause__ if isinstance(error.__cause__, Exception) else error
    said = str(first).split("\n")[0] or type(first).__name__
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"


def _refuse(code: str, message: str, remedy: str) -> NoReturn:
    raise InputError.one(code, message, help=remedy) from None
