"""Which sections a report has: those that are installed, and those of the study's own plugin files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from ablate.errors import InputError
from ablate.registry import Registry
from ablate.slots import Section


def sections_of(plan: Mapping[str, Any], plugins: Iterable[str | Path] = ()) -> tuple[list[Section], list[str]]:
    """The sections of a study's report, and a note for each plugin file whose sections it has to do without.

    A report is made from the records alone, so a file of the study that is gone, or no longer works, takes nothing but
    its own sections away; ``plugins`` are named for this report, and must work. Loading a file runs its code.

    Raises:
        InputError: one of ``plugins`` is not there, does not import, or brings no component or a name that is taken.
    """
    registry, notes = Registry.installed(), []
    registry.kinds("section")  # what is installed comes first: a file that clashes with it is the one to leave out
    for path in map(Path, plan.get("plugins", ())):
        if not path.is_file():
            notes.append(f"The plugin {path.name} is not there any more; sections that it brings are left out.")
            continue
        try:
            with redirect_stdout(sys.stderr):  # stdout is for results
                registry.add_file(path)
        except InputError as error:
            notes.append(f"Sections are left out: {error.diagnostics[0].message}.")
    for named in plugins:
        registry.add_file(named, str(named))
    return [made for section in registry.all("section") if isinstance(made := section(), Section)], notes
