"""Laying one document over another: a file over the one that it extends, the command line over both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ablate.errors import InputError, Span
from ablate.experiment.reading import Document, Place, parse, read, yaml_files

WHOLE = ("factors",)
"""Mappings whose values are replaced whole: a factor has one of three forms, which cannot be mixed."""


def read_layered(path: Path, sets: Iterable[str] = ()) -> Document:
    """Read an experiment's file over the one that it extends, with ``path=value`` settings over both.

    Raises:
        InputError: one of the files, or a setting, cannot be read.
    """
    document = read(path)
    base = document.data.get("extends")
    if isinstance(base, str):
        try:
            below = read(path.parent / base)
        except InputError as error:
            found = [each for each in error.diagnostics if each.code != "Y001"]
            if not found:
                words = f"`{base}` cannot be read: {error.diagnostics[0].message}"
                found = [document.diagnose("S114", words, ("extends",), help=_there_is(path, base))]
            raise InputError(found) from error
        if "extends" in below.data:
            words = f"`{base}` has an `extends` of its own, and one level is all there is"
            raise InputError(
                [document.diagnose("S114", words, ("extends",), help="put what both need into one base file")]
            )
        document = lay(document, below)
    sets = list(sets)
    given = [text.partition("=")[0].strip() for text in sets]
    for path_set in given:
        if given.count(path_set) > 1:
            raise InputError.one("S115", f"`--set {path_set}=…` is given twice", help="keep one of the two")
    for text in sets:
        upper, place = _setting(text, document)
        document = lay(upper, document, place=place)
    return document


def _there_is(path: Path, base: str) -> str | None:
    """Which file was meant by one that is not there, or which ones are; relative to the file that names it."""
    try:
        if (path.parent / base).is_file():
            return None
        folder = Path(base) if (path.parent / base).is_dir() else Path(base).parent
        if not (path.parent / folder).is_dir():
            return f"there is no folder `{folder.as_posix()}` beside this file"
        near, names = yaml_files(path.parent / folder, Path(base).name)
    except (OSError, ValueError):  # a name that is too long, or has a NUL in it, or a folder that may not be read
        return None
    if near and near != path.name:
        return f"did you mean `{(folder / near).as_posix()}`?"
    others = [(folder / name).as_posix() for name in names if folder != Path() or name != path.name]
    listed = ", ".join(f"`{name}`" for name in others[:5])
    return f"there is: {listed}{' and more' if len(others) > 5 else ''}" if others else None


def _setting(text: str, document: Document) -> tuple[Document, Place]:
    """``path=value`` as a document of its own, and the path; the value is read as YAML."""
    dotted, equals, value = text.partition("=")
    steps = dotted.strip().split(".")
    if steps[0] == "extends":
        help = "write it into the file"
        raise InputError.one("S115", f"`--set {text}` cannot be: the file that is extended is read first", help=help)
    if not equals or not all(steps):
        help = "write `--set path=value`, as `--set training.optimizer.lr=3e-3`"
        raise InputError.one("S115", f"`--set {text}` sets nothing", help=help)
    read = parse(f"{dotted.strip()}: {value}", "--set")
    if list(read.data) != [dotted.strip()]:
        raise InputError.one("S115", f"`--set {text}` is not one path and one value", help="put the value in quotes")
    inside = document.data
    for length, step in enumerate(steps[:-1], 1):
        inside = inside.get(step, {}) if isinstance(inside, Mapping) else inside
        if not isinstance(inside, Mapping | str):
            words = f"`--set {text}` cannot be: `{'.'.join(steps[:length])}` has no parts with a name"
            raise InputError.one("S115", words, help="set the whole of it")
    place = tuple(steps)
    data: Any = read.data[dotted.strip()]
    keys = {(*place, *old[1:]): span for old, span in read.keys.items() if old}
    values = {(*place, *old[1:]): span for old, span in read.values.items() if old}
    for length in range(len(place) - 1, -1, -1):
        data = {place[length]: data}
        values[place[:length]] = values[place]
        keys[place[:length]] = keys[place]
    return replace(read, data=data, keys=keys, values=values), place


def lay(upper: Document, lower: Document, *, place: Place | None = None) -> Document:
    """The upper document, and what it does not say from the lower one, merged by key.

    A component of another kind replaces the lower one whole, since its options would mean nothing; so does a factor.
    Values that are no mappings are replaced. With a ``place`` the upper one is a setting of what stands there: that is
    replaced whole, all around it stays, and the result has the lower document's name and text.
    """
    name = upper if place is None else lower
    merged = _Merged(upper, lower, name, place)
    data = merged.merge(upper.data, lower.data, ())
    warnings = (*lower.warnings, *upper.warnings)
    extended = lower.text if place is None else lower.extended
    return Document(name.file, name.text, data, merged.keys, merged.values, warnings, merged.elsewhere, extended)


@dataclass
class _Merged:
    upper: Document
    lower: Document
    name: Document
    place: Place | None
    keys: dict[Place, Span] = field(default_factory=dict)
    values: dict[Place, Span] = field(default_factory=dict)
    elsewhere: dict[Place, Document] = field(default_factory=dict)

    def merge(self, ours: Any, theirs: Any, place: Place) -> Any:
        if isinstance(ours, Mapping) and isinstance(theirs, str) and "kind" not in ours and place not in ((), WHOLE):
            theirs = {"kind": theirs}
            self._note(self.lower, (*place, "kind"), found=place)
        joined = (
            isinstance(ours, Mapping)
            and isinstance(theirs, Mapping)
            and (place[:-1] != WHOLE if self.place is None else place != self.place)
            and ("kind" not in ours or "kind" not in theirs or ours["kind"] == theirs["kind"])
        )
        if not joined:
            return self._copy(self.upper, ours, place)
        self._note(self.name, place)
        both: dict[str, Any] = {}
        for key in [*theirs, *(key for key in ours if key not in theirs)]:
            inner = (*place, key)
            if key not in ours:
                both[key] = self._copy(self.lower, theirs[key], inner)
            elif key not in theirs:
                both[key] = self._copy(self.upper, ours[key], inner)
            else:
                both[key] = self.merge(ours[key], theirs[key], inner)
        return both

    def _copy(self, document: Document, value: Any, place: Place) -> Any:
        self._note(document, place)
        if isinstance(value, Mapping):
            return {key: self._copy(document, item, (*place, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._copy(document, item, (*place, index)) for index, item in enumerate(value)]
        return value

    def _note(self, document: Document, place: Place, found: Place | None = None) -> None:
        found = place if found is None else found
        near = document.nearest(found)
        self.values[place] = document.values[near]
        if near in document.keys:
            self.keys[place] = document.keys[near]
        home = document.home(near)
        if home is not self.name:
            self.elsewhere[place] = home
