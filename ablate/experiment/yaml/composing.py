"""Making one document out of the parser's events, without recursion and within the limits."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field, replace

from yaml import events

from ablate.errors import Span
from ablate.experiment.yaml.complaints import NO_TAGS
from ablate.experiment.yaml.nodes import Node, kind_of, name_of, plain_value, quoted_value
from ablate.experiment.yaml.scanning import scan
from ablate.experiment.yaml.source import Source, shown

MAX_NODES = 10_000
MAX_DEPTH = 100
_NEEDS = "an experiment needs at least a name, a task, a model, training, an objective and a budget"

_PROPERTIES = re.compile(r"(?:[&!][^ \t\r\n]*+|[ \t\r\n]+|#[^\r\n]*+)*+")


def compose(source: Source) -> Node:
    """The mapping that a text is.

    Raises:
        InputError: everything that is wrong with the text, at once.
    """
    composer = _Composer(source)
    for event in scan(source):
        composer.take(event)
    root = composer.root
    if root is None or (root.plain and not root.written):
        what = "holds nothing but comments" if source.text.strip() else "is empty"
        source.report(
            "Y007",
            f"the file {what}",
            None,
            _NEEDS,
        )
    elif not isinstance(root.content, dict):
        message = f"a file is a mapping of keys to values, and this is {kind_of(root.content)}"
        tight = re.match(r"[\w.-]+:\S", root.written)
        help = "put a space after the `:`" if tight else "begin with `name: ...`"
        source.report("Y009", message, root.span, help)
    if root is None or source.errors:
        raise source.refusal()
    return root


@dataclass(slots=True)
class _Frame:
    """A collection that is being read; ``key`` is the key that waits for its value, None if it was refused."""

    node: Node
    key: tuple[str, Span] | None = None
    wants_key: bool = True


@dataclass
class _Composer:
    """The tree so far: the collections that are open, the anchors, and what is finished."""

    source: Source
    frames: list[_Frame] = field(default_factory=list)
    anchors: dict[str, Node] = field(default_factory=dict)
    root: Node | None = None
    nodes: int = 0

    def take(self, event: events.Event) -> None:
        """Add one event to the tree."""
        if isinstance(event, events.DocumentStartEvent) and self.root:
            span = self.source.span(*_offsets(event))
            self.source.report(
                "Y008", "a second document begins here", span, "one file is one experiment: split the file"
            )
            raise self.source.refusal()
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
            self.source.report(
                "Y005", f"the file has more than {MAX_NODES:,} keys and values, once every alias is expanded", span,
                "use fewer aliases, or fewer values",
            )  # fmt: skip
            raise self.source.refusal()

    def check_tag(self, event: events.ScalarEvent | events.CollectionStartEvent) -> None:
        if event.tag is not None:
            start = self.source.text.index("!", _offsets(event)[0])
            tag = re.compile(r"\S+").match(self.source.text, start)
            assert tag is not None
            self.source.report("Y015", f"{shown(tag[0])} is a tag", self.source.span(*tag.span()), NO_TAGS)

    def alias(self, event: events.AliasEvent) -> Node:
        """What an alias stands for, at the alias's own place."""
        span = self.source.span(*_offsets(event))
        target = self.anchors.get(event.anchor or "")
        # What stands in for it is text, so that an alias that is a key gives one error and not two.
        unknown = Node(span, f"*{event.anchor}")
        if target is None:
            # Thousands of anchors and of wrong aliases would take minutes to compare.
            names = self.anchors if len(self.anchors) <= 50 else ()
            close = difflib.get_close_matches(event.anchor or "", names, n=1)
            help = f"did you mean `*{close[0]}`?" if close else "put a text that begins with `*` in quotes"
            self.source.report("Y016", f"no anchor {shown(f'&{event.anchor}')} stands before this alias", span, help)
            return unknown
        if target.open:
            message = f"the alias {shown(f'*{event.anchor}')} stands inside what it repeats, which would never end"
            self.source.report("Y017", message, span, "write out the values that are meant")
            return unknown
        self.count(target.size, span)
        self.check_depth(len(self.frames) + target.height, span)
        return replace(target, span=span)

    def check_depth(self, depth: int, span: Span) -> None:
        if depth > MAX_DEPTH:
            self.source.report(
                "Y006", f"values are nested deeper than {MAX_DEPTH} levels", span, "is a bracket left open?"
            )
            raise self.source.refusal()

    def scalar(self, event: events.ScalarEvent) -> Node:
        """One scalar, resolved if nothing quotes it."""
        start, end = _offsets(event)
        if event.anchor or event.tag:
            properties = _PROPERTIES.match(self.source.text, start, end)
            start = properties.end() if properties and properties.end() < end else start
        span = self.source.span(start, end)
        if event.style in ("|", ">"):
            span = self.source.span(start, start + len(re.split(r"\s", self.source.text[start:end], maxsplit=1)[0]))
        self.count(1, span)
        self.check_tag(event)
        plain = event.style is None
        node = Node(span, (plain_value if plain else quoted_value)(event.value, span, self.source), event.value, plain)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def begin(self, event: events.CollectionStartEvent) -> None:
        """Open a list or a mapping."""
        start, end = _offsets(event)
        if event.anchor or event.tag:
            # PyYAML ends the event of a block before its first key or dash, and any other after its bracket or dash.
            start = end if event.flow_style is False else end - 1
        span = self.source.span(start, start + 1)
        self.count(1, span)
        self.check_tag(event)
        self.check_depth(len(self.frames) + 1, span)
        node = Node(span, [] if isinstance(event, events.SequenceStartEvent) else {}, open=True)
        if event.anchor:
            self.anchors[event.anchor] = node
        self.frames.append(_Frame(node))

    def finish(self, event: events.CollectionEndEvent) -> None:
        """Close the innermost list or mapping."""
        node = self.frames.pop().node
        node.open = False
        closing = self.source.span(*_offsets(event))
        if closing.end > closing.column and closing.line == node.span.line:  # a bracket; a block just ends
            node.span = replace(node.span, end=closing.end)
        self.attach(node)

    def attach(self, node: Node) -> None:
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
                name = name_of(node, content, self.source)
                frame.key = None if name is None else (name, node.span)
            elif frame.key is not None:
                name, span = frame.key
                content[name] = (span, node)
            frame.wants_key = not frame.wants_key


def _offsets(event: events.Event) -> tuple[int, int]:
    assert event.start_mark is not None
    assert event.end_mark is not None
    return event.start_mark.index, event.end_mark.index
