"""``ablate plugins new``: a component that works, with its test and an experiment, as a file or a distribution."""

from __future__ import annotations

import ast
import importlib.util
import keyword
import re
import shlex
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from ablate.cli.output import console, print_json
from ablate.cli.plugins.experiments import experiment_of
from ablate.cli.plugins.naming import slot_called
from ablate.cli.plugins.options import written
from ablate.errors import InputError
from ablate.registry import Registry
from ablate.slots import SLOTS

NAME = r"[a-z][a-z0-9]*(_[a-z0-9]+)*"
LONGEST = 60


def start_plugin(slot: str, name: str, into: Path, *, package: bool, as_json: bool) -> None:
    """Write the files; nothing that is there is overwritten."""
    slot_called(slot)
    _check_form(name)
    made = _package(slot, name, into / f"ablate-{_dashed(name)}") if package else _single(slot, name, into)
    there = [path for path in made if path.exists()]
    if there:
        words = f"`{there[0]}` is there already, and nothing is overwritten"
        raise InputError.one("S113", words, help="give another name, or another folder by `--into DIR`")
    _check_free(slot, name, f"ablate_{name}" if package else name)
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    steps = _steps(name, list(made), into, package=package)
    if as_json:
        print_json({"slot": slot, "kind": name, "files": [str(path) for path in made], "next": steps})
        return
    out = console()
    for path, what in zip(made, _roles(slot, package=package), strict=True):
        out.print(f"{path}: {what}")
    for step in steps:
        out.print(f"next: {step}")


def _check_form(name: str) -> None:
    if not re.fullmatch(NAME, name) or len(name) > LONGEST:
        raise InputError.one(
            "S120",
            f"`{name}` is no name for a component",
            help=f"small letters, digits and single `_` between them, {LONGEST} at most, as my_norm",
        )
    if keyword.iskeyword(name) or written(name) != name:
        language = "Python" if keyword.iskeyword(name) else "YAML"
        raise InputError.one(
            "S120", f"`{name}` means something else in {language}", help=f"give another name, as my_{name}"
        )


def _check_free(slot: str, name: str, module: str) -> None:
    registry = Registry.installed()
    if name in registry.kinds(slot):
        origin = registry.entry(slot, name).origin
        raise InputError.one(
            "S120", f"the {slot} `{name}` is there already: {origin}", help=f"give another name, as my_{name}"
        )
    if (slot, name) in registry.clashes:
        raise registry.clashes[slot, name]
    if importlib.util.find_spec(module):
        raise InputError.one(
            "S120", f"Python has a module `{module}`, which this would hide", help=f"give another name, as my_{name}"
        )


def _single(slot: str, name: str, into: Path) -> dict[Path, str]:
    """The files of a component in a file of its own, each with its text."""
    words = _words(slot, name)
    return {
        into / f"{name}.py": _filled(f"slots/{slot}.py", words),
        into / f"test_{name}.py": _filled("slots/contract.py", words),
        into / f"{name}.yaml": experiment_of(slot, name, f"./{name}.py"),
    }


def _package(slot: str, name: str, folder: Path) -> dict[Path, str]:
    """The files of a distribution with one component, each with its text."""
    words = _words(slot, name)
    code = folder / "src" / f"ablate_{name}"
    return {
        folder / "pyproject.toml": _filled("package/pyproject.toml.txt", words),
        folder / "README.md": _filled("package/README.md", words),
        code / "__init__.py": _filled("package/init.py", words),
        code / "py.typed": "",
        code / f"{name}.py": _filled(f"slots/{slot}.py", words),
        folder / "tests" / f"test_{name}.py": _filled("package/contract.py", words),
        folder / "experiments" / f"{name}.yaml": experiment_of(slot, name, None),
    }


def _roles(slot: str, *, package: bool) -> tuple[str, ...]:
    """What each file is, in their order."""
    component = f"the {slot}, to be changed as you like"
    test, experiment = "holds it against the contract of its slot", "an experiment that uses it"
    if not package:
        return component, test, experiment
    return (
        "the distribution, with its entry point",
        "what it is",
        "its package",
        "has types",
        component,
        test,
        experiment,
    )


def _steps(name: str, made: list[Path], into: Path, *, package: bool) -> list[str]:
    """The commands that come next."""
    commands = [["ablate", "plugins", "check", str(made[0])], ["ablate", "plan", str(made[-1])]]
    if package:
        folder = into / f"ablate-{_dashed(name)}"
        commands[:1] = [["pip", "install", "-e", str(folder)], ["ablate", "plugins", "check", folder.name]]
    return [shlex.join(command) for command in commands]


def _words(slot: str, name: str) -> Mapping[str, str]:
    """What stands in a template, and what it becomes."""
    title = "".join(part.capitalize() for part in name.split("_"))
    base = SLOTS[slot].__name__
    component = title if title.endswith(base) and title != base else title + base
    source = ast.parse(_template(f"slots/{slot}.py"))
    (written_class,) = (each for each in source.body if isinstance(each, ast.ClassDef) and each.name == "MyComponent")
    return {
        "MyComponent": component,
        "my_component": name,
        "my-component": _dashed(name),
        "My component": name.replace("_", " ").capitalize(),
        "THE_SLOT": slot,
        "THE_DESCRIPTION": (ast.get_docstring(written_class) or "").split("\n")[0],
        "THE_VERSION": version("ablate-arch"),
    }


def _filled(template: str, words: Mapping[str, str]) -> str:
    """A template with each word in it replaced, all at once."""
    return re.sub("|".join(map(re.escape, words)), lambda found: words[found[0]], _template(template))


def _template(name: str) -> str:
    return files("ablate").joinpath("starter", *name.split("/")).read_text(encoding="utf-8")


def _dashed(name: str) -> str:
    return name.replace("_", "-")
