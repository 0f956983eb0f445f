"""Reading YAML by version 1.2's core schema, with the place of every key and value."""

from __future__ import annotations

import difflib
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from yaml import events
from yaml.error import MarkedYAMLError
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from ablate.errors import Diagnostic, InputError, Span

MAX_BYTES = 1 << 20
MAX_NODES = 10_000
MAX_DEPTH = 100

Place: TypeAlias = tuple[str | int, ...]
Scalar: TypeAlias = bool | int | float | str | None
Value: TypeAlias = "Scalar | list[Value] | dict[str, Value]"

_BREAK = re.compile(r"\r\n|\r|\n")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CONSTANTS: Mapping[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((sign + name for sign in ("", "+") for name in (".inf", ".Inf", ".INF")), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_PROPERTIES = re.compile(r"(?:[&!][^ \t\r\n]*+|[ \t\r\n]+|#[^\r\n]*+)*+")
# Where YAML 1.2 has ordinary characters and YAML 1.1 does not: a line ends at LF and CR alone, and ? and : that touch
# text are text inside of brackets too. The first alternative is the exception, {"a":1}, and is left as it is.
_ORDINARY = re.compile(
    r"""["'\]}][ \t\r\n]*:"""
    r"|(?<![^ \t\r\n\[{,]):(?=[^ \t\r\n,\[\]{}])"
    r"|\?(?=[^ \t\r\n,\[\]{}])|(?<=[^ \t\r\n\[{,])\?|(?<=[^ \t\r\n\[{,:?-])[ \t]+\?"
    "|[\x85\u2028\u2029\ufeff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_TAGS = "remove it: a plain value is a number, true, false or null by itself, and text in quotes"
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def resolve(text: str) -> Scalar:
    """What an unquoted scalar means by YAML 1.2's core schema: ``on`` is text, ``1e-3`` a number.

    Raises:
        OverflowError: the number is too large, or too close to zero, for a float.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _BASED.fullmatch(text):
        whole = int(text[2:], 8 if text[1] == "o" else 16)
        if whole > sys.float_info.max:
            raise OverflowError
        return whole
    if not _FLOAT.fullmatch(text):
        return text
    number = float(text)
    mantissa = re.split("[eE]", text)[0]
    if abs(number) == float("inf") or (number == 0 and mantissa.strip("+-0.")):
        raise OverflowError
    if _DECIMAL.fullmatch(text):
        # Python refuses to read thousands of digits, leading zeros included.
        return int(text.lstrip("+-").lstrip("0") or "0") * (-1 if text[0] == "-" else 1)
    return number


def looks_like_number(text: str) -> str | None:
    """The number that a text was probably meant to be, as YAML spells it: ``1_000`` gives ``1000``; else None.

    A text that is a number but for its quotes gives itself, so ``"3"`` gives ``3``. A date is no number.
    """
    plain = text.strip().replace("\N{MINUS SIGN}", "-")
    guesses = [plain, plain.replace("_", "")]
    if re.fullmatch(r"[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?", plain):
        guesses.append(plain.replace(",", ""))
    elif re.fullmatch(r"[-+]?[0-9]+,[0-9]+", plain):
        guesses.append(plain.replace(",", "."))
    if power := re.fullmatch(r"([-+]?)10(?:\^|\*\*)([-+]?[0-9]+)", plain):
        guesses.append(f"{power[1]}1e{power[2]}")
    if scaled := re.fullmatch(r"([-+]?[0-9]{1,15})([kKM])", plain):
        guesses.append(scaled[1] + ("000000" if scaled[2] == "M" else "000"))
    if based := re.fullmatch(r"([-+]?)(0[box][0-9a-fA-F]{1,64})", plain.replace("_", "").lower()):
        with suppress(ValueError):  # a digit that the base lacks
            guesses.append(str(int(based[1] + based[2], 0)))
    if re.fullmatch(r"[-+]?[0-9]{1,9}(:[0-5]?[0-9]){1,3}", plain):
        # YAML 1.1 counts in sixties: 12:30 is 750 to the tools that users come from.
        total = 0
        for part in plain.lstrip("+-").split(":"):
            total = total * 60 + int(part)
        guesses.append(f"-{total}" if plain[0] == "-" else str(total))
    if special := re.fullmatch(r"([-+]?)\.?(?:(inf)(?:inity)?|(nan))", plain.lower()):
        guesses.append(".nan" if special[3] else f"{special[1]}.inf")
    for guess in guesses:
        try:
            if isinstance(number := resolve(guess), int | float) and not isinstance(number, bool):
                return guess
        except OverflowError:
            return None
    return None


@dataclass(frozen=True)
class Document:
    """One YAML file as plain Python values, with the place in the file of every key and value.

    ``keys`` and ``values`` are filed under the path to a value: ``("factors", "norm", "levels", 0)``. What an alias
    brings in has the place where it is written.
    """

    file: str
    text: str
    data: dict[str, Any]
    keys: Mapping[Place, Span]
    values: Mapping[Place, Span]
    warnings: tuple[Diagnostic, ...] = ()

    def at(self, path: Place, *, key: bool = False) -> Span:
        """Where the value at ``path`` is (or its key); where nothing is there, the nearest thing around it."""
        for length in range(len(path), 0, -1):
            near = tuple(path[:length])
            if near in self.values:
                return self.keys.get(near, self.values[near]) if key else self.values[near]
        return self.values[()]

    def diagnose(
        self, code: str, message: str, path: Place, *, key: bool = False, help: str | None = None
    ) -> Diagnostic:
        """A diagnostic about the value at ``path`` (or its key), with its place and its line of source."""
        span = self.at(path, key=key)
        return Diagnostic(code, message, self.file, span, _BREAK.split(self.text)[span.line - 1], help)


def read(path: Path) -> Document:
    """Read a YAML file of one mapping.

    Raises:
        InputError: everything that is wrong with the file, at once; never anything else.
    """
    file = str(path)
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError.one("Y001", "there is no such file", file=file, help=_neighbours(path)) from None
    except IsADirectoryError:
        raise InputError.one("Y001", "this is a folder, not a file", file=file, help=_neighbours(path / "*")) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise InputError.one("Y001", f"the file cannot be read: {reason}", file=file) from None
    if len(raw) > MAX_BYTES:
        raise _too_large(file)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = _BREAK.split(raw[: error.start].decode("utf-8"))
        line = _BREAK.split(raw.decode("utf-8", errors="replace"))[len(before) - 1]
        span = Span(len(before), len(before[-1]) + 1, len(before[-1]) + 2)
        message = f"line {span.line} is not UTF-8 text: the byte 0x{raw[error.start]:02X}"
        utf16 = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        help = "the file is UTF-16: save it as UTF-8" if utf16 else "save the file as UTF-8"
        raise InputError([Diagnostic("Y002", message, file, span, line, help)]) from None
    return parse(text, file)


def parse(text: str, file: str) -> Document:
    """Read the text of a YAML file of one mapping; ``file`` is the name to show.

    Raises:
        InputError: everything that is wrong with the text, at once; never anything else.
    """
    if len(text) > MAX_BYTES:
        raise _too_large(file)
    return _Composer(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"), file).document()


def _too_large(file: str) -> InputError:
    return InputError.one(
        "Y004", f"the file is larger than {MAX_BYTES >> 20} MiB, so it is no experiment", file=file,
        help="an experiment takes a few kB: was another file meant?",
    )  # fmt: skip


def _neighbours(path: Path) -> str | None:
    """Which YAML files the user may have meant instead of ``path``."""
    try:
        names = sorted(p.name for p in path.parent.iterdir() if p.suffix in (".yaml", ".yml"))
    except (OSError, ValueError):
        return None
    close = difflib.get_close_matches(path.name, names, n=1)
    if close:
        return f"did you mean `{path.with_name(close[0])}`?"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"in that folder: {', '.join(names[:3])}{more}" if names else None


def _shown(text: str) -> str:
    """A piece of the file inside a message: in backticks, short, and with nothing in it that cannot be seen."""
    text = text if len(text) <= 40 else text[:39] + "…"
    return "`" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text) + "`"


class _Events(Reader, Scanner, Parser):
    """PyYAML's events, with tabs as YAML 1.2 has them: they may separate, and may not indent."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def scan_to_next_token(self) -> None:
        while True:
            super().scan_to_next_token()
            blanks = self._blanks()
            after = self.peek(blanks)
            if not blanks or not (self.flow_level or not self.allow_simple_key or after in "\0\r\n#"):
                return
            self.forward(blanks)

    def scan_plain_spaces(self, indent: int, start_mark: object) -> list[str] | None:
        blanks = self._blanks()
        if "\t" not in self.prefix(blanks):
            return super().scan_plain_spaces(indent, start_mark)
        between = [self.prefix(blanks)]
        self.forward(blanks)
        return super().scan_plain_spaces(indent, start_mark) if self.peek() in "\0\r\n#" else between

    def _blanks(self) -> int:
        length = 0
        while self.peek(length) in " \t":
            length += 1
        return length


@dataclass(slots=True)
class _Node:
    """A value of the file; ``size`` and ``height`` are what they will be once aliases are expanded."""

    span: Span
    content: Scalar | list[_Node] | dict[str, tuple[Span, _Node]]
    written: str = ""
    plain: bool = False
    size: int = 1
    height: int = 0
    open: bool = False


@dataclass(slots=True)
class _Frame:
    """A collection that is being read; ``key`` is the key that waits for its value, None if it was refused."""

    node: _Node
    key: str | None = None
    wants_key: bool = True


class _StopError(Exception):
    """Nothing that follows can be trusted or afforded."""


@dataclass
class _Composer:
    """Makes one document out of the parser's events, without recursion and within the limits."""

    text: str
    file: str
    errors: list[Diagnostic] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    frames: list[_Frame] = field(default_factory=list)
    anchors: dict[str, _Node] = field(default_factory=dict)
    root: _Node | None = None
    nodes: int = 0

    def __post_init__(self) -> None:
        self.lines = _BREAK.split(self.text)
        self.starts = [0, *(match.end() for match in _BREAK.finditer(self.text))]
        # PyYAML scans by YAML 1.1 in a few places. What YAML 1.2 has as any other character there is exchanged, while
        # it scans, for private characters that the text does not use.
        unused = (chr(c) for c in range(0x10FFFD, 0x100000, -1) if chr(c) not in self.text)
        self.stand_ins = dict(zip("?:\x85\u2028\u2029\ufeff", unused, strict=False))
        self.originals = str.maketrans({stand_in: original for original, stand_in in self.stand_ins.items()})

    def document(self) -> Document:
        try:
            self.check_characters()
            for event in self.stream():
                self.take(event)
            self.check_root()
        except _StopError:
            pass
        if self.errors:
            raise InputError(sorted(self.errors, key=lambda d: (d.span.line, d.span.column) if d.span else (0, 0)))
        assert self.root
        keys: dict[Place, Span] = {}
        values: dict[Place, Span] = {}
        data = _expand(self.root, (), keys, values)
        assert isinstance(data, dict)
        return Document(self.file, self.text, data, keys, values, tuple(self.warnings))

    def span(self, start: int, end: int) -> Span:
        """The stretch from one offset to another, as far as it lies in the line where it starts."""
        line = bisect_right(self.starts, start) - 1
        column = start - self.starts[line]
        return Span(line + 1, column + 1, min(end - self.starts[line], max(column, len(self.lines[line]))) + 1)

    def report(self, code: str, message: str, span: Span | None, help: str | None = None) -> None:
        source = self.lines[span.line - 1] if span else None
        diagnostic = Diagnostic(code, message, self.file, span, source, help)
        (self.warnings if diagnostic.severity == "warning" else self.errors).append(diagnostic)

    def check_characters(self) -> None:
        found = list(_UNPRINTABLE.finditer(self.text))
        for match in found[:10]:
            code = ord(match[0])
            escape = f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
            self.report(
                "Y003", f"the character U+{code:04X} cannot stand in a YAML file", self.span(*match.span()),
                f'remove it, or write it as "{escape}" inside double quotes',
            )  # fmt: skip
        if found:
            raise _StopError

    def stream(self) -> Iterator[events.Event]:
        parser = _Events(_ORDINARY.sub(self.exchange, self.text))
        while True:
            try:
                if not parser.check_event():
                    return
                event: events.Event = parser.get_event()  # type: ignore[no-untyped-call]
            except MarkedYAMLError as error:
                self.syntax(error)
                raise _StopError from None
            except (ValueError, OverflowError):
                # The scanner lets Python's own errors through where an escape names no character: "\UFFFFFFFF".
                self.report(
                    "Y010", "this escape stands for no character", self.span(parser.index, parser.index + 1),
                    "write the character itself",
                )  # fmt: skip
                raise _StopError from None
            yield event

    def exchange(self, found: re.Match[str]) -> str:
        text = found[0]
        return text if text[0] in "\"']}" else text[:-1] + self.stand_ins[text[-1]]

    def syntax(self, error: MarkedYAMLError) -> None:
        """Say in the user's words why the scanner or the parser gave up."""
        last = max(0, len(self.text.rstrip()) - 1)
        here, began = (min(m.index, last) if m else last for m in (error.problem_mark, error.context_mark))
        line, first = (bisect_right(self.starts, index) for index in (here, began))
        where = "at the end" if error.problem_mark and error.problem_mark.index > last else "later"
        saying = f"{error.context}: {error.problem}" + (f" {where}" if where == "at the end" or line != first else "")
        for original, stand_in in self.stand_ins.items():
            saying = saying.replace(ascii(stand_in)[1:-1], original)
        for complaint in _COMPLAINTS:
            if match := re.search(complaint.pattern, saying):
                break
        else:
            raise AssertionError("the last complaint matches anything")
        point = began if complaint.at_start else here
        span = self.span(point, len(self.text) if complaint.whole_line else point + 1)
        words = {"here": _shown(self.text[here]), "began": _shown(self.text[began]), "line": line}
        message = complaint.message.format(*match.groups(), **words)
        help = complaint.help.format(*match.groups(), **words) if complaint.help else self.colon_help(span)
        self.report(complaint.code, message, span, help)

    def colon_help(self, span: Span) -> str:
        """What is most likely wrong where a colon was not expected."""
        above = span.line - 1
        while above and not self.lines[above - 1].strip():
            above -= 1
        before = self.lines[span.line - 1][: span.column - 1]
        if not before.strip():
            return "write a key before it"
        if re.search(r":\s", before):
            return "put a text that has `: ` in it in quotes"
        if above and re.fullmatch(r"\s*[\w.-]+:[^\s:]+", self.lines[above - 1]):
            return f"line {above} needs a space after its `:`"
        return "indent this line as the keys beside it"

    def take(self, event: events.Event) -> None:
        """Add one event to the tree."""
        if isinstance(event, events.DocumentStartEvent) and self.root:
            span = self.span(*_offsets(event))
            self.report("Y008", "a second document begins here", span, "one file is one experiment: split the file")
            raise _StopError
        if isinstance(event, events.AliasEvent):
            self.attach(self.alias(event))
        elif isinstance(event, events.ScalarEvent):
            self.attach(self.scalar(event))
        elif isinstance(event, events.CollectionStartEvent):
            self.begin(event)
        elif isinstance(event, events.CollectionEndEvent):
            self.finish(event)

    def count(self, nodes: int, span: Span) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            self.report(
                "Y005", f"the file has more than {MAX_NODES:,} keys and values, once every alias is expanded", span,
                "use fewer aliases, or fewer values",
            )  # fmt: skip
            raise _StopError

    def check_tag(self, event: events.ScalarEvent | events.CollectionStartEvent) -> None:
        if event.tag is not None:
            start = self.text.index("!", _offsets(event)[0])
            tag = re.compile(r"\S+").match(self.text, start)
            assert tag is not None
            self.report("Y015", f"{_shown(tag[0])} is a tag", self.span(*tag.span()), _NO_TAGS)

    def alias(self, event: events.AliasEvent) -> _Node:
        """What an alias stands for, at the alias's own place."""
        span = self.span(*_offsets(event))
        target = self.anchors.get(event.anchor or "")
        # What stands in for it is text, so that an alias that is a key gives one error and not two.
        unknown = _Node(span, f"*{event.anchor}")
        if target is None:
            # Thousands of anchors and of wrong aliases would take minutes to compare.
            names = self.anchors if len(self.anchors) <= 50 else ()
            close = difflib.get_close_matches(event.anchor or "", names, n=1)
            help = f"did you mean `*{close[0]}`?" if close else "put a text that begins with `*` in quotes"
            self.report("Y016", f"no anchor {_shown(f'&{event.anchor}')} stands before this alias", span, help)
            return unknown
        if target.open:
            message = f"the alias {_shown(f'*{event.anchor}')} stands inside what it repeats, which would never end"
            self.report("Y017", message, span, "write out the values that are meant")
            return unknown
        self.count(target.size, span)
        self.check_depth(len(self.frames) + target.height, span)
        return replace(target, span=span)

    def check_depth(self, depth: int, span: Span) -> None:
        if depth > MAX_DEPTH:
            self.report("Y006", f"values are nested deeper than {MAX_DEPTH} levels", span, "is a bracket left open?")
            raise _StopError

    def scalar(self, event: events.ScalarEvent) -> _Node:
        """One scalar, resolved if nothing quotes it."""
        start, end = _offsets(event)
        if event.anchor or event.tag:
            properties = _PROPERTIES.match(self.text, start, end)
            start = properties.end() if properties and properties.end() < end else start
        span = self.span(start, end)
        if event.style in ("|", ">"):
            span = self.span(start, start + len(re.split(r"\s", self.text[start:end], maxsplit=1)[0]))
        self.count(1, span)
        self.check_tag(event)
        text = event.value.translate(self.originals)
        plain = event.style is None
        content: Scalar = text
        if plain:
            content = self.resolved(text, span)
        elif _SURROGATE.search(text):
            try:
                # JSON writes a character beyond U+FFFF as two escapes; PyYAML leaves them apart.
                content = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
            except UnicodeDecodeError:
                self.report(
                    "Y019", "an escape in this text is half of a character", span,
                    r'write the whole character, or its code: "\U0001f642"',
                )  # fmt: skip
        node = _Node(span, content, text, plain)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def resolved(self, text: str, span: Span) -> Scalar:
        try:
            content = resolve(text)
        except OverflowError:
            self.report(
                "Y018", f"the number {_shown(text)} is out of range", span,
                "numbers go from 5e-324 to about 1.8e308; infinity is `.inf`",
            )  # fmt: skip
            return text
        if re.fullmatch(r"[-+]?0[0-9]+", text):
            octal = "" if re.search("[89]", text) else f", or `0o{text.lstrip('+-0') or 0}` for the octal number"
            self.report("W010", f"{_shown(text)} is read as {content}", span, f"write `{content}`{octal}")
        return content

    def begin(self, event: events.CollectionStartEvent) -> None:
        """Open a list or a mapping."""
        start, end = _offsets(event)
        if event.anchor or event.tag:
            # PyYAML ends the event of a block before its first key or dash, and any other after its bracket or dash.
            start = end if event.flow_style is False else end - 1
        span = self.span(start, start + 1)
        self.count(1, span)
        self.check_tag(event)
        self.check_depth(len(self.frames) + 1, span)
        node = _Node(span, [] if isinstance(event, events.SequenceStartEvent) else {}, open=True)
        if event.anchor:
            self.anchors[event.anchor] = node
        self.frames.append(_Frame(node))

    def finish(self, event: events.CollectionEndEvent) -> None:
        """Close the innermost list or mapping."""
        node = self.frames.pop().node
        node.open = False
        closing = self.span(*_offsets(event))
        if closing.end > closing.column and closing.line == node.span.line:  # a bracket; a block just ends
            node.span = replace(node.span, end=closing.end)
        self.attach(node)

    def attach(self, node: _Node) -> None:
        """Put a finished value, or a key, where it belongs."""
        if not self.frames:
            self.root = node
            return
        frame = self.frames[-1]
        whole, content = frame.node, frame.node.content
        whole.size += node.size
        whole.height = max(whole.height, node.height + 1)
        if node.span.line == whole.span.line:
            whole.span = replace(whole.span, end=max(whole.span.end, node.span.end))
        if isinstance(content, list):
            content.append(node)
        elif isinstance(content, dict):
            if frame.wants_key:
                frame.key = self.key(node, content)
            if frame.key is not None:
                content[frame.key] = (node.span if frame.wants_key else content[frame.key][0], node)
            frame.wants_key = not frame.wants_key

    def key(self, node: _Node, others: dict[str, tuple[Span, _Node]]) -> str | None:
        """The name that a key gives, or None and a complaint."""
        name = node.content
        if node.plain and name == "<<":
            help = "repeat the keys, or put what is shared in the file that `extends:` names"
            self.report("Y014", "YAML 1.2 has no merge key `<<`", node.span, help)
        elif not isinstance(name, str):
            message = f"the key {_shown(node.written)} is {_kind(name)}, not text"
            help = f'write `"{node.written}"`' if len(node.written) <= 40 else "put it in quotes"
            if isinstance(name, list | dict):
                message, help = f"{_kind(name)} cannot be a key", "a key is text"
            elif not node.written:
                message, help = "a key is missing before this `:`", "write `key: value`"
            self.report("Y013", message, node.span, help)
        elif name in others:
            first, again = others[name][0], node.span
            where = f"on lines {first.line} and {again.line}"
            if first.line == again.line:
                where = f"on line {first.line}, at columns {first.column} and {again.column}"
            self.report("Y012", f"the key {_shown(name)} is given twice, {where}", again, "keep one of the two")
        else:
            return name
        return None

    def check_root(self) -> None:
        if self.root is None or (self.root.plain and not self.root.written):
            what = "holds nothing but comments" if self.text.strip() else "is empty"
            self.report("Y007", f"the file {what}", None, "`ablate init` writes a first experiment")
        elif not isinstance(self.root.content, dict):
            message = f"a file is a mapping of keys to values, and this is {_kind(self.root.content)}"
            tight = re.match(r"[\w.-]+:\S", self.root.written)
            help = "put a space after the `:`" if tight else "begin with `name: ...`"
            self.report("Y009", message, self.root.span, help)


def _offsets(event: events.Event) -> tuple[int, int]:
    assert event.start_mark is not None
    assert event.end_mark is not None
    return event.start_mark.index, event.end_mark.index


def _kind(content: object) -> str:
    """What a value is, in the words of a message."""
    if content is None:
        return "null"
    names = {bool: "true or false", str: "text", list: "a list", dict: "a mapping"}
    return names.get(type(content), "a number")


def _expand(node: _Node, place: Place, keys: dict[Place, Span], values: dict[Place, Span]) -> Value:
    """The value of a node, with the places of all that is in it; what an alias repeats becomes a copy."""
    values[place] = node.span
    if isinstance(node.content, list):
        return [_expand(child, (*place, index), keys, values) for index, child in enumerate(node.content)]
    if isinstance(node.content, dict):
        keys.update({(*place, name): span for name, (span, _) in node.content.items()})
        return {name: _expand(child, (*place, name), keys, values) for name, (_, child) in node.content.items()}
    return node.content


class _Complaint(NamedTuple):
    """A pattern of what PyYAML says, and what a user is told instead.

    The caret goes under what PyYAML stumbled over, or ``at_start`` of what it was in, or under the ``whole_line``.
    """

    pattern: str
    message: str
    help: str | None
    at_start: bool = False
    whole_line: bool = False
    code: str = "Y010"


_COMPLAINTS = (
    _Complaint(r"found character '\\t'", "a tab cannot indent", "indent with spaces", code="Y011"),
    _Complaint(r"found character '(.)' that", "a value cannot begin with {here}", "put the text in quotes"),
    _Complaint(r"mapping values are not", "a value cannot begin at this `:`", None),
    _Complaint(r"expected ':'", "this is neither `key: value` nor a part of what stands above",
               "write a space after the `:`, and indent text that goes on", at_start=True, whole_line=True),
    _Complaint(r"a (?:double-)?quoted scalar: found unexpected", "this quote is never closed",
               "add the closing {began}; between single quotes an apostrophe is written twice", at_start=True),
    _Complaint(r"expected ',' or '(.)'.* at the end", "this {began} is never closed", "add the closing `{0}`",
               at_start=True),
    _Complaint(r"expected ',' or '(.)'.* later", "this {began} is still open on line {line}, where {here} does not fit",
               "add the closing `{0}`, or a `,`", at_start=True),
    _Complaint(r"expected ',' or '(.)', but got '[\]}]'", "{here} does not close {began}", "close it with `{0}`"),
    _Complaint(r"expected ',' or '(.)'", "a `,` or `{0}` is missing before this {here}",
               "put a text that has {here} in it in quotes"),
    _Complaint(r"but found '([\]}])'", "this {here} closes nothing", "remove it, or put the text in quotes"),
    _Complaint(r"(?:node content|<block end>), but found ':'", "a key is missing before this `:`", "write `key: value`",
               code="Y013"),
    _Complaint(r"expected the node content", "a value is missing before this {here}",
               "write the value, or put the text in quotes"),
    _Complaint(r"block end>, but found '<block", "this line is indented unlike its neighbours",
               "keys of one mapping, and items of one list, start in the same column", whole_line=True),
    _Complaint(r"block collection: .* '\?'", "a key stands where a list item is expected",
               "begin the item with `- `, or indent the line", whole_line=True),
    _Complaint(r"block mapping: .* '-'", "a list item stands where a key is expected", "indent the list under its key",
               whole_line=True),
    _Complaint(r"<block end>", "the value has ended before this", "put the whole value in quotes"),
    _Complaint(r"expected '<document start>'", "the document has ended before this line",
               "top-level keys start in the first column, without brackets around some of them", whole_line=True),
    _Complaint(r"unknown escape character", "a backslash before {here} means nothing between double quotes",
               "use single quotes, or write each backslash twice"),
    _Complaint(r"a block scalar: ", "{began} begins a block of text, which starts on the next line",
               "put a text that begins with {began} in quotes", at_start=True),
    _Complaint(r"sequence entries", "a list item cannot begin here",
               "begin each `- item` on its own line, or write `[a, b]`"),
    _Complaint(r"an (alias|anchor): expected", "{began} begins an {0}, and its name is letters and digits",
               "put a text that begins with {began} in quotes", at_start=True),
    _Complaint(r"(?:parsing|scanning) a tag|tag handle", "{began} begins a tag", _NO_TAGS, at_start=True, code="Y015"),
    _Complaint(r"^(?:None: )?(.*?)(?: later| at the end)?$", "this is not valid YAML: {0}", "see yaml.org/spec/1.2.2"),
)  # fmt: skip
