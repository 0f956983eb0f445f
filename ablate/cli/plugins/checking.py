"""``ablate plugins check``: the contract suite over components, slots, distributions and files."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ablate.cli.output import console, print_json
from ablate.cli.plugins import registry_with
from ablate.cli.plugins.naming import component_called
from ablate.registry import Broken, Entry, Registry
from ablate.slots import SLOTS

if TYPE_CHECKING:
    from ablate.testing import Finding


def check_plugins(names: list[str], plugins: list[Path], *, as_json: bool) -> None:
    """Print what the suite finds; exit 1 if a check fails, or if what a named distribution brings cannot be used."""
    registry = registry_with(plugins)
    entries: dict[tuple[str, str], Entry] = {}
    broken: list[Broken] = []
    for name in names:
        found, unusable = _meant(name, registry)
        entries |= {(entry.component.slot, entry.kind): entry for entry in found}
        broken += [each for each in unusable if each not in broken]
    told = []
    for entry in entries.values():
        findings = _findings(entry, registry)
        told.append(_told(entry, findings))
        if not as_json:
            _print(entry, findings)
    if as_json:
        print_json({"components": told, "broken": [asdict(each) for each in broken]})
    else:
        for each in broken:
            console().print(f"broken: {each.origin}: {each.error}")
    if broken or any(each["failed"] for each in told):
        raise typer.Exit(1)


def _findings(entry: Entry, registry: Registry) -> list[Finding]:
    from ablate.testing import check

    with redirect_stdout(sys.stderr):  # what a component prints: stdout is for results
        return check(entry.component, registry)


def _meant(name: str, registry: Registry) -> tuple[list[Entry], list[Broken]]:
    """The components that a word of the command means, and what of a distribution cannot be used."""
    if name.endswith(".py") or os.sep in name:
        return list(_of_file(Path(name), registry)), []
    if name in SLOTS:
        return [registry.entry(name, kind) for kind in registry.kinds(name)], []
    entries = list(registry.entries())
    of_it = [entry for entry in entries if _distribution(entry.origin) == _plain(name)]
    broken = [each for each in registry.broken if _distribution(each.origin) == _plain(name)]
    return (of_it, broken) if of_it or broken else ([component_called(name, registry)], [])


def _of_file(file: Path, registry: Registry) -> Iterator[Entry]:
    """The components that a file defines, also where a distribution that is installed has brought them."""
    if not any(_defines(file, entry) for entry in registry.entries()):
        registry.add_file(file, str(file))
    yield from (entry for entry in registry.entries() if _defines(file, entry))


def _defines(file: Path, entry: Entry) -> bool:
    try:
        return Path(inspect.getfile(entry.component)).resolve() == file.resolve()
    except (OSError, TypeError, ValueError):
        return False


def _distribution(origin: str) -> str:
    return _plain(origin.rpartition(" ")[0])


def _plain(name: str) -> str:
    """A distribution's name in the one spelling that stands for all."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _told(entry: Entry, findings: list[Finding]) -> dict[str, Any]:
    return {
        "slot": entry.component.slot,
        "kind": entry.kind,
        "origin": entry.origin,
        "version": entry.component.version,
        "checks": len(findings),
        "failed": sum(not each.ok for each in findings),
        "findings": [asdict(each) for each in findings],
    }


def _print(entry: Entry, findings: list[Finding]) -> None:
    """One line for a component that passes; else what each failing check expected and got, and where."""
    out = console()
    name = f"{entry.component.slot}.{entry.kind} ({entry.origin})"
    failing = [each for each in findings if not each.ok]
    if not failing:
        out.print(f"{name}: {_checks(len(findings))} passed")
        return
    out.print(f"{name}: {len(failing)} of {_checks(len(findings))} failed")
    for each in failing:
        out.print(f"  {each.check}")
        out.print(f"    expected  {each.expected}")
        out.print(f"    got       {each.got}")
        out.print(f"    at        {each.file}:{each.line}")


def _checks(count: int) -> str:
    return f"{count} check" if count == 1 else f"{count} checks"
