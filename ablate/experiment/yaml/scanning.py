"""The events of PyYAML's parser, by YAML 1.2 where PyYAML goes by YAML 1.1."""

from __future__ import annotations

import re
from collections.abc import Iterator

from yaml import events
from yaml.error import MarkedYAMLError
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from ablate.experiment.yaml.complaints import complain
from ablate.experiment.yaml.source import Source

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Where YAML 1.2 has ordinary characters and YAML 1.1 does not: a line ends at LF and CR alone, and ? and : that touch
# text are text inside of brackets too. The first alternative is the exception, {"a":1}, and is left as it is.
_ORDINARY = re.compile(
    r"""["'\]}][ \t\r\n]*:"""
    r"|(?<![^ \t\r\n\[{,]):(?=[^ \t\r\n,\[\]{}])"
    r"|\?(?=[^ \t\r\n,\[\]{}])|(?<=[^ \t\r\n\[{,])\?|(?<=[^ \t\r\n\[{,:?-])[ \t]+\?"
    "|[\x85\u2028\u2029\ufeff]"
)


def scan(source: Source) -> Iterator[events.Event]:
    """The events of a text; their offsets are those of the text.

    Raises:
        InputError: the text is not YAML; the errors that were found before are told too.
    """
    _check_characters(source)
    # What YAML 1.2 has as an ordinary character and YAML 1.1 has not is exchanged, while PyYAML scans, for characters
    # that the text does not have, not even as escapes.
    taken = {*map(ord, set(source.text)), *(int(code, 16) for code in re.findall(r"\\U([0-9a-fA-F]{8})", source.text))}
    free = (chr(code) for code in range(0x10FFFD, 0xFFFF, -1) if code not in taken)
    stand_ins = dict(zip("?:\x85\u2028\u2029\ufeff", free, strict=False))
    exchange = str.maketrans(stand_ins)
    restore = str.maketrans({stand_in: original for original, stand_in in stand_ins.items()})
    parser = _Parser(
        _ORDINARY.sub(lambda found: found[0] if found[0][0] in "\"']}" else found[0].translate(exchange), source.text)
    )
    while True:
        try:
            if not parser.check_event():
                return
            event: events.Event = parser.get_event()  # type: ignore[no-untyped-call]
        except MarkedYAMLError as error:
            complain(source, error, stand_ins)
            raise source.refusal() from None
        except (ValueError, OverflowError):
            # The scanner lets Python's own errors through where an escape names no character: "\UFFFFFFFF".
            source.report(
                "Y010", "this escape stands for no character", source.span(parser.index, parser.index + 1),
                "write the character itself",
            )  # fmt: skip
            raise source.refusal() from None
        if isinstance(event, events.ScalarEvent):
            event.value = event.value.translate(restore)
        yield event


def _check_characters(source: Source) -> None:
    found = list(_UNPRINTABLE.finditer(source.text))
    for match in found[:10]:
        code = ord(match[0])
        escape = f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
        source.report(
            "Y003", f"the character U+{code:04X} cannot stand in a YAML file", source.span(*match.span()),
            f'remove it, or write it as "{escape}" inside double quotes',
        )  # fmt: skip
    if found:
        raise source.refusal()


class _Parser(Reader, Scanner, Parser):
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
