"""Anything that JSON can say, and any text at all."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ablate.errors import InputError, Span
from ablate.experiment.reading import Place, parse, read
from ablate.experiment.yaml.scalars import resolve
from tests.ablate.experiment.yaml.outcomes import data, text_at
from tests.ablate.experiment.yaml.words import SCALARS

BREAKS = "\x85\u2028\u2029"
KEPT = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn")) | st.sampled_from("\t\n\r\ufeff" + BREAKS)
TEXTS = st.text(KEPT, max_size=20) | st.sampled_from([scalar for scalar in SCALARS if scalar.isascii()])


def is_plain(text: str) -> bool:
    """Whether a text means the same, without quotes, to the writers below, which write YAML 1.1 in part."""
    try:
        # ruamel.yaml writes the key "? x" without quotes, and so as the key "x".
        return isinstance(resolve(text), str) and set(BREAKS).isdisjoint(text) and not text.startswith("? ")
    except OverflowError:
        return False


PLAIN = st.text(KEPT, max_size=20).filter(is_plain) | st.sampled_from([
    scalar for scalar in SCALARS if scalar.isascii() and is_plain(scalar)
])  # fmt: skip


def documents(texts: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Anything that JSON can say, with these texts."""
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.integers(-(10**300), 10**300)
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts
    )
    values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5))
    return st.dictionaries(texts, values, min_size=1, max_size=5)


@settings(deadline=None)
@given(documents(TEXTS), st.booleans(), st.sampled_from([None, 0, 2]))
def test_json_is_read_as_it_was_written_and_every_place_holds_its_value(
    value: dict[str, Any], ascii: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    document = parse(text, "x.json")
    assert json.dumps(document.data) == json.dumps(value)

    def check(value: object, path: Place) -> None:
        if indent is None or not isinstance(value, dict | list):
            assert json.dumps(json.loads(text_at(document, document.values[path]))) == json.dumps(value)
        if path and isinstance(path[-1], str):
            assert json.loads(text_at(document, document.keys[path])) == path[-1]
        children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, child in children:
            check(child, (*path, name))

    check(value, ())


@settings(deadline=None, max_examples=40)
@given(documents(PLAIN), st.sampled_from([None, False, True]), st.booleans())
def test_yaml_is_read_as_it_was_written(value: dict[str, Any], flow: bool | None, unicode: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=unicode, sort_keys=False)
    assert json.dumps(data(text)) == json.dumps(value)


@settings(deadline=None, max_examples=40)
@given(documents(PLAIN))
def test_yaml_is_read_as_another_writer_wrote_it(value: dict[str, Any]) -> None:
    writer, stream = YAML(typ="safe", pure=True), io.StringIO()
    writer.width = 10**6  # it would break a key into two lines, which PyYAML does not read
    writer.dump(value, stream)
    assert json.dumps(data(stream.getvalue()), sort_keys=True) == json.dumps(value, sort_keys=True)


PIECES = st.sampled_from([
    "- ", "a: ", "b:", "\n", "\n  ", "\r\n", "\t", "---\n", "...\n", "&a ", "*a", "<<: ", "!!str ", "!", '"', "'", "\\",
    "\\u", "\\UFFFFFFFF", "%YAML 1.2\n", "%TAG ! x\n", "|", ">-\n", " #", "? ", ": ", ",", "[", "]", "{", "}", "@", "`",
    "1e999", "010", "\ufeff", "\x85", "\u2028", "\0", "\x1b", "\ud800", "x", " ",
])  # fmt: skip


@settings(deadline=5000, max_examples=500)
@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=50) | st.text("a:- \n[]{}&*!'\"#|\t", max_size=40))
def test_any_text_is_read_or_refused_with_places_that_exist(text: str) -> None:
    spans: list[Span | None] = []
    try:
        document = parse(text, "x.yaml")
        spans = [*document.keys.values(), *document.values.values()]
        for path, span in document.keys.items():
            assert text_at(document, span)
            assert path in document.values
    except InputError as error:
        spans = [diagnostic.span for diagnostic in error.diagnostics]
        assert all(re.fullmatch(r"Y\d{3}", diagnostic.code) for diagnostic in error.diagnostics)
        str(error).encode()
    lines = re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))
    for place in spans:
        if place is not None:
            assert 1 <= place.line <= len(lines)
            assert 1 <= place.column <= place.end <= len(lines[place.line - 1]) + 2


@settings(deadline=5000)
@given(content=st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    try:
        assert read(path).text.encode() == content.removeprefix(b"\xef\xbb\xbf")
    except InputError as error:
        str(error).encode()
