"""One door for components, built-in and third-party alike: entry points of the group ``ablate.plugins``, and files.

What a plugin prints while it is imported goes to stderr: stdout is for results, which tools may read.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from importlib.machinery import SourceFileLoader
from importlib.metadata import Distribution, entry_points
from pathlib import Path
from types import CodeType, ModuleType

from pydantic_core import PydanticCustomError

from ablate.errors import Diagnostic, InputError
from ablate.slots import SLOTS, Component
from ablate.slots.component import a
from ablate.slots.soundness import faults, lacks

GROUP = "ablate.plugins"
FILE = "ablate_file_"
"""What the module of a plugin file is called, before a hash of its path."""


@dataclass(frozen=True)
class Source:
    """A module that brings components and is imported when one of its slots is looked into."""

    slot: str
    module: str
    origin: str
    """Distribution and version, as ``ablate-arch 0.1.0``."""


@dataclass(frozen=True)
class Entry:
    """A component and where it came from."""

    component: type[Component]
    origin: str
    """Distribution and version, or the file's name as the user gave it."""

    @property
    def kind(self) -> str:
        """What the component is called in YAML."""
        return kind_of(self.component)

    @cached_property
    def digest(self) -> str:
        """Hash of the source of the component's whole module, which tells when code has changed since a record."""
        return hashlib.sha256(Path(inspect.getfile(self.component)).read_bytes()).hexdigest()[:12]


@dataclass(frozen=True)
class Broken:
    """A plugin that could not be used, and why; it never harms the rest."""

    origin: str
    error: str


def kind_of(component: type[Component]) -> str:
    """The default of the component's ``kind`` field."""
    return str(component.model_fields["kind"].default)


def components_in(module: ModuleType) -> list[type[Component]]:
    """The components that a module defines itself, and does not merely import.

    Raises:
        InputError: one is of no slot, or lacks something of its slot's contract.
    """
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Component) and value.__module__ == module.__name__
    ]
    for component in found:
        missing = lacks(component)
        if component.is_slot() or "slot" in missing:
            raise InputError.one(
                "S118",
                f"`{component.__name__}` is of no slot",
                help=f"derive it from its slot, and from nothing else: class {component.__name__}(ablate.slots.Norm)",
            )
        if missing and "kind" in component.model_fields:  # without a kind it is what components of its own share
            raise InputError.one(
                "S112",
                f"`{component.__name__}` lacks {', '.join(f'`{name}`' for name in missing)}",
                help=f"the contract of the slot `{component.slot}` is in ablate.slots",
            )
    return [component for component in found if not lacks(component)]


class Registry:
    """Every component that can be named, by slot and kind; a value, so two registries never disturb each other."""

    def __init__(self, sources: Iterable[Source] = ()) -> None:
        self._pending = list(sources)
        self._entries: dict[tuple[str, str], Entry] = {}
        self.broken: list[Broken] = []
        self.clashes: dict[tuple[str, str], InputError] = {}
        """Names that two installed distributions bring, by slot and kind; neither can be used, all others can."""
        self.files: list[Path] = []

    @classmethod
    def installed(cls) -> Registry:
        """The registry of what is installed; only metadata are read, nothing is imported yet."""
        registry = cls()
        titled = cache(_title)  # a distribution parses its metadata whenever it is asked
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
            slot = entry.name.split(".")[0]
            distribution = entry.dist
            origin = titled(distribution) if distribution else entry.value
            if slot in SLOTS:
                registry._pending.append(Source(slot, entry.value, origin))
            else:
                meant = _did_you_mean(slot, SLOTS)
                registry.broken.append(Broken(origin, f"its entry point `{entry.name}` names no slot{meant}"))
        return registry

    def add_file(self, path: str | Path, shown: str | None = None) -> None:
        """Bring in the components of a single file.

        Raises:
            InputError: there is no such file, it fails to import, or it brings no component or a name that is taken.
        """
        path = Path(path)
        shown = shown or path.name
        try:
            resolved = path.resolve()
            there = resolved.is_file()
        except (OSError, ValueError):  # a name that is too long, or has a NUL in it
            there = False
        if not there:
            raise InputError.one("S106", f"there is no plugin file `{shown}`", help="give a path to a Python file")
        if resolved in self.files:
            return
        name = f"{FILE}{hashlib.sha256(str(resolved).encode()).hexdigest()[:8]}_{resolved.stem}"
        if resolved.suffix != ".py":
            raise InputError.one("S106", f"`{shown}` is no Python file", help="a plugin's name ends in .py")
        try:
            with redirect_stdout(sys.stderr):
                module = module_of(resolved, name)
        except (Exception, SystemExit) as error:
            absent = (error.name or "") if isinstance(error, ModuleNotFoundError) else None
            help = "mend the file; nothing was run" if absent is None else "install what it imports, or mend the file"
            if absent and absent.split(".")[0] == "lightning":
                help = "import `pytorch_lightning`, which Ablate runs on: neither package knows the other's classes"
            message = f"the plugin `{shown}` fails to import: {_told(error)}"
            raise InputError.one("S107", message, help=help) from error
        self.add(module, shown)
        if not components_in(module):
            raise InputError.one(
                "S108",
                f"the plugin `{shown}` defines no component",
                help="a component is a class such as `class MyNorm(ablate.slots.Norm)` with a field `kind`",
            )
        self.files.append(resolved)

    def add(self, module: ModuleType, origin: str, slot: str | None = None) -> None:
        """Bring in the components that a module defines (those of ``slot`` alone, if it is given).

        A clash of two installed distributions is remembered, and raised where the name is asked for: which of them is
        meant cannot be guessed, and the rest is not harmed.

        Raises:
            InputError: one is not sound as a class, or a file brings a slot and kind that another origin brings too.
        """
        for component in components_in(module):
            if slot not in (None, component.slot):
                continue
            if "kind" not in component.model_fields or not isinstance(component.model_fields["kind"].default, str):
                raise InputError.one(
                    "S109",
                    f"`{component.__name__}` of {origin} has no `kind`",
                    help=f'add a field: kind: Literal["{component.__name__.lower()}"] = "{component.__name__.lower()}"',
                )
            if wrong := faults(component):
                named = f"`{component.__name__}` of {origin}"
                raise InputError([Diagnostic("S118", f"{named} {what}", help=remedy) for what, remedy in wrong])
            entry = Entry(component, origin)
            other = self._entries.setdefault((component.slot, entry.kind), entry)
            if other.component is not component:
                clash = InputError.one(
                    "S110",
                    f"two plugins bring {a(component.slot)} called `{entry.kind}`: {other.origin} and {origin}",
                    help="rename one of them, or uninstall it",
                )
                if slot is None or other.component.__module__.startswith(FILE):
                    raise clash
                self.clashes.setdefault((component.slot, entry.kind), clash)
                self.broken.append(Broken(origin, clash.diagnostics[0].message))

    def get(self, slot: str, kind: str) -> type[Component]:
        """The component called ``kind`` in ``slot``.

        Raises:
            PydanticCustomError: there is none; the message names the closest, what exists, and plugins that failed.
            InputError: two installed distributions bring it.
        """
        return self.entry(slot, kind).component

    def entry(self, slot: str, kind: str) -> Entry:
        """The component called ``kind`` in ``slot``, with its origin; raises as :meth:`get` does."""
        self._load(slot)
        if clash := self.clashes.get((slot, kind)):
            raise clash
        if found := self._entries.get((slot, kind)):
            return found
        kinds = self.kinds(slot)
        failed = [broken.origin for broken in self.broken]
        raise PydanticCustomError(
            "unknown_component",
            "no {slot} is called `{kind}`",
            {"slot": slot, "kind": kind, "kinds": kinds, "close": closest(kind, kinds), "failed": failed},
        )

    def kinds(self, slot: str) -> list[str]:
        """The names in ``slot``, sorted."""
        self._load(slot)
        return sorted(kind for place, kind in self._entries if place == slot and (place, kind) not in self.clashes)

    def all(self, slot: str) -> list[type[Component]]:
        """Every component in ``slot``, by name."""
        return [self._entries[slot, kind].component for kind in self.kinds(slot)]

    def entries(self) -> Iterator[Entry]:
        """Every component of every slot, in the order of slots and names; imports all that is installed."""
        for slot in SLOTS:
            for kind in self.kinds(slot):
                yield self._entries[slot, kind]

    def _load(self, slot: str) -> None:
        """Import the modules that serve ``slot``; one that fails is remembered and does not stop the rest."""
        waiting = [source for source in self._pending if source.slot == slot]
        self._pending = [source for source in self._pending if source.slot != slot]
        for source in waiting:
            try:
                with redirect_stdout(sys.stderr):
                    module = importlib.import_module(source.module)
            except (Exception, SystemExit) as error:  # whatever a stranger's module raises
                self.broken.append(Broken(source.origin, f"`{source.module}` fails to import: {_told(error)}"))
                continue
            try:
                self.add(module, source.origin, slot)
            except InputError as error:
                if any(each.code == "S110" for each in error.diagnostics):
                    raise  # a file that the user named is one of the two
                self.broken.append(Broken(source.origin, error.diagnostics[0].message))


class _Source(SourceFileLoader):
    """Compiles a file each time: what Python keeps compiled is taken for a changed file's of the same second and size.

    Nor does it leave anything beside a user's file.
    """

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def module_of(file: Path, name: str) -> ModuleType:
    """A file's module under this name, made anew from the file as it is now; whatever its code raises is raised."""
    spec = importlib.util.spec_from_file_location(name, file, loader=_Source(name, str(file)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _title(distribution: Distribution) -> str:
    return f"{distribution.name} {distribution.version}"


def closest(word: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant, whatever its case, or None.

    Close are a misspelling, a word that holds the other (``gelu`` and ``gelu_tanh``), and ``none`` for a negation.
    """
    folded: dict[str, str] = {}
    for each in words:
        folded.setdefault(each.lower(), each)
    word = word.lower()
    near = get_close_matches(word, folded, n=1, cutoff=0.6)
    if not near and word in {"no", "off", "false", "nothing", "null"} and "none" in folded:
        near = ["none"]
    if not near:
        holding = [each for each in folded if _holds(word, each) or _holds(each, word)]
        near = get_close_matches(word, holding, n=1, cutoff=0.0)
    return folded[near[0]] if near else None


def _holds(word: str, part: str) -> bool:
    """Whether a word has the other in it: three letters at an end, or more of them anywhere."""
    return len(part) >= 3 and (word.startswith(part) or word.endswith(part) or (len(part) > 3 and part in word))


def _did_you_mean(word: str, words: Iterable[str]) -> str:
    near = closest(word, words)
    return f"; did you mean `{near}`?" if near else ""


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".split("\n")[0]
