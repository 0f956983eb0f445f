"""The long forms of diagnostics: there is one for each code, and their examples do what they say."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

import ablate
import ablate_plugins
from ablate.errors import InputError
from ablate.experiment import load, reading
from ablate.experiment.explanations import EXPLANATIONS, FAMILIES, first_sentence
from tests.ablate.experiment.maker import EXPERIMENT

FOLDERS = [Path(package.__file__).parent for package in (ablate, ablate_plugins) if package.__file__]
SOURCE = [file for folder in FOLDERS for file in folder.rglob("*.py") if file.parent.name != "explanations"]
REPORTED = {
    code for file in SOURCE for code in re.findall(r'"([YSGW]\d{3})"', file.read_text(encoding="utf-8"))
}  # fmt: skip
# These are about a file as a whole, or hold a character that the explanation itself may not print.
YAML = sorted({code for code in EXPLANATIONS if code[0] == "Y"} - {"Y001", "Y002", "Y003", "Y004"} | {"W010"})
# Their examples are words of the command line, or need records, a table, or the lack of a package.
COMMANDS = {"S113", "S115", "S116", "S117", "S119", "S120", "S121", "S122", "G218", "W005", "W008", "W009", "W016"}
PLUGINS = {"S107", "S108", "S109", "S110", "S112", "S118", "G210", "G220"}
EXPERIMENTS = sorted(
    {code for code in EXPLANATIONS if code[:2] in ("S1", "G2", "W0")} - COMMANDS - PLUGINS - {"W002", "W010"}
)
IMPORTS = "from typing import Literal\nfrom torch import nn\nfrom ablate.slots import Norm, Site\n\n"


def example(code: str, heading: str) -> str:
    """The indented block under ``Wrong:`` or ``Right:``."""
    found = re.search(rf"^{heading}:\n\n((?:    .*\n|\n(?=    ))+)", EXPLANATIONS[code], re.MULTILINE)
    assert found, f"{code} has no example under {heading}:"
    return textwrap.dedent(re.sub("^    ", "", found[1], flags=re.MULTILINE))


def blocks(text: str) -> dict[str, str]:
    """The top-level keys of an experiment, each with its lines."""
    return {found[1]: found[0] for found in re.finditer(r"^(\w+):.*\n(?:[ ].*\n)*", text, re.MULTILINE)}


def experiment(snippet: str, folder: Path) -> Path:
    """A whole experiment with these keys in place of its own, in a folder with the files that examples name."""
    mine = blocks(snippet)
    assert "".join(mine.values()) == snippet
    (folder / "my_norm.py").write_text(IMPORTS + example("S109", "Right"))
    (folder / "my_text.txt").write_text("some words " * 182)
    (folder / "shared.yaml").write_text("question: Does it matter?\n")
    path = folder / "example.yaml"
    path.write_text("".join((blocks(EXPERIMENT) | mine).values()))
    return path


def codes_of_yaml(text: str) -> set[str]:
    try:
        return {warning.code for warning in reading.parse(text, "example.yaml").warnings}
    except InputError as error:
        return {diagnostic.code for diagnostic in error.diagnostics}


def codes_of_plan(path: Path) -> set[str]:
    try:
        return {warning.code for warning in ablate.plan(load(path)).warnings}
    except InputError as error:
        return {diagnostic.code for diagnostic in error.diagnostics}


def test_every_code_that_is_reported_has_a_long_form_and_no_long_form_is_left_over() -> None:
    assert sorted(EXPLANATIONS) == sorted(REPORTED)


def test_each_code_is_in_the_family_of_its_first_letter() -> None:
    starts = [{code[0] if code[0] != "S" else code[:2] for code in texts} for texts in FAMILIES.values()]
    assert starts == [{"Y"}, {"S1"}, {"S3"}, {"S4"}, {"G"}, {"W"}]
    assert all(list(texts) == sorted(texts) for texts in FAMILIES.values())
    assert sum(map(len, FAMILIES.values())) == len(EXPLANATIONS)


@pytest.mark.parametrize("code", sorted(EXPLANATIONS))
def test_each_long_form_has_the_same_shape(code: str) -> None:
    text = EXPLANATIONS[code]
    assert re.fullmatch(r"[A-Z][^\n]*\.\n\n[A-Z`].*\.\n\nWrong:\n\n {4}.*\n\nRight:\n\n {4}.*\n", text, re.DOTALL)
    assert max(map(len, text.splitlines())) <= 120
    assert all(character.isprintable() or character in "\n\t" for character in text)
    assert re.search(r"\. [A-Z`]", first_sentence(code)) is None
    assert example(code, "Wrong") != example(code, "Right")


@pytest.mark.parametrize("code", YAML)
def test_the_examples_of_the_reader_are_what_they_claim_to_be(code: str) -> None:
    assert codes_of_yaml(example(code, "Wrong")) == {code}
    assert codes_of_yaml(example(code, "Right")) == set()


@pytest.mark.parametrize("code", [*EXPERIMENTS, "S302", "S303", "S310", "S311", "S313", "S314", "S336"])
def test_the_examples_of_experiments_are_what_they_claim_to_be(code: str, tmp_path: Path) -> None:
    assert codes_of_plan(experiment(example(code, "Wrong"), tmp_path)) == {code}
    assert code not in codes_of_plan(experiment(example(code, "Right"), tmp_path))


@pytest.mark.parametrize("code", sorted(PLUGINS))
def test_the_examples_of_plugins_are_what_they_claim_to_be(code: str, tmp_path: Path) -> None:
    for heading, expected in (("Wrong", {code}), ("Right", set[str]())):
        text = example(code, heading)
        kind = re.search(r'kind: Literal\["(\w+)"\]', text)
        snippet = (
            f"plugins: [{heading}.py]\nmodel: {{kind: decoder, width: 16, norm: {kind[1] if kind else 'layer'}}}\n"
        )
        path = experiment(snippet, tmp_path)
        (tmp_path / f"{heading}.py").write_text(text if code == "S107" else IMPORTS + text)
        assert codes_of_plan(path) == expected
