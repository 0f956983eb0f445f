"""YAML 1.2's marks, blanks and line ends, where PyYAML goes by YAML 1.1."""

from __future__ import annotations

import pytest

from ablate.errors import Span
from ablate.experiment.reading import parse
from tests.ablate.experiment.yaml.outcomes import data


def test_marks_that_touch_text_are_text_inside_of_brackets_too() -> None:
    assert data("{question: Where?, a?: b? c, ?d: :e, f: ::g, h: [?i, :j, k?l], 'm':n, \"o\" :p, q: r ? s ?}") == {
        "question": "Where?", "a?": "b? c", "?d": ":e", "f": "::g", "h": ["?i", ":j", "k?l"],
        "m": "n", "o": "p", "q": "r ? s ?",
    }  # fmt: skip
    assert data("a: [? b : 1, ? c]\nd: '?:'\n? e?\n: f:g?\n") == {
        "a": [{"b": 1}, {"c": None}],
        "d": "?:",
        "e?": "f:g?",
    }


def test_tabs_may_separate() -> None:
    assert data("lr:\t1e-3\t# usual\nname: a\tb \t c\t\n\t\n\t# note\nlevels: [\n\tpre,\n\tpost]\n") == {
        "lr": 0.001,
        "name": "a\tb \t c",
        "levels": ["pre", "post"],
    }


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029", "\ufeff"])
def test_only_line_feeds_and_carriage_returns_end_a_line(character: str) -> None:
    document = parse(f'a: "x {character} y"\nb: x{character}y # {character}\nc: 010\n', "x.yaml")
    assert document.data == {"a": f"x {character} y", "b": f"x{character}y", "c": 10}
    assert document.warnings[0].span == Span(3, 4, 7)


def test_private_characters_may_be_written_as_escapes() -> None:
    assert data('a?: "\\U0010FFFD\\U0010fffc"\n"b\\udbff\\udffd": {?c: :d}\n') == {
        "a?": "\U0010fffd\U0010fffc",
        "b\U0010fffd": {"?c": ":d"},
    }


def test_private_characters_may_all_be_used() -> None:
    private = "".join(map(chr, range(0x100000, 0x10FFFE)))
    assert data(f'a: {{?b: "{private}"}}') == {"a": {"?b": private}}
