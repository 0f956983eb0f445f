"""The long forms of diagnostics: there is one for each code, and their examples do what they say."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from ablate.errors import InputError
from ablate.experiment import reading
from ablate.experiment.explanations import EXPLANATIONS

READER = [Path(reading.__file__), *Path(reading.__file__).with_name("yaml").glob("*.py")]
CODES = sorted({code for file in READER for code in re.findall(r'"([A-Z]\d{3})"', file.read_text(encoding="utf-8"))})
# These are about a file as a whole, or hold a character that the explanation itself may not print.
NOT_YAML = {"Y001", "Y002", "Y003", "Y004"}


def example(code: str, heading: str) -> str:
    """The indented block under ``Wrong:`` or ``Right:``."""
    found = re.search(rf"^{heading}:\n\n((?:    .*\n|\n(?=    ))+)", EXPLANATIONS[code], re.MULTILINE)
    assert found, f"{code} has no example under {heading}:"
    return textwrap.dedent(re.sub("^    ", "", found[1], flags=re.MULTILINE))


def codes(text: str) -> set[str]:
    try:
        return {warning.code for warning in reading.parse(text, "example.yaml").warnings}
    except InputError as error:
        return {diagnostic.code for diagnostic in error.diagnostics}


def test_the_codes_of_the_reader_are_known() -> None:
    found = list(CODES)
    assert found == ["W010", *(f"Y{number:03}" for number in range(1, 20))]


@pytest.mark.parametrize("code", CODES)
def test_each_code_has_a_long_form(code: str) -> None:
    assert code in EXPLANATIONS


@pytest.mark.parametrize("code", sorted(EXPLANATIONS))
def test_each_long_form_has_the_same_shape(code: str) -> None:
    text = EXPLANATIONS[code]
    assert re.fullmatch(r"[A-Z][^\n]*\.\n\n[A-Z].*\n\nWrong:\n\n {4}.*\n\nRight:\n\n {4}.*\n", text, re.DOTALL)
    assert max(map(len, text.splitlines())) <= 120
    assert all(character.isprintable() or character in "\n\t" for character in text)


@pytest.mark.parametrize("code", [code for code in CODES if code not in NOT_YAML])
def test_the_examples_of_the_reader_are_what_they_claim_to_be(code: str) -> None:
    assert codes(example(code, "Wrong")) == {code}
    assert codes(example(code, "Right")) == set()
