"""Small experiments with one mistake each: the code that `# expect:` names is told, with its line.

The editor's schema refuses each as well, but for those with `# schema: accepts`, whose mistake no JSON Schema can see.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ablate.errors import Diagnostic, InputError
from ablate.experiment import load
from ablate.experiment.explanations import EXPLANATIONS
from ablate.experiment.json_schema import json_schema
from ablate.experiment.reading import read
from ablate.registry import Registry

ROOT = Path(__file__).parents[3]
BAD = sorted((ROOT / "tests/fixtures/bad").glob("*.yaml"))
SHIPPED = sorted((ROOT / "experiments").glob("*.yaml"))


def expected(path: Path) -> str:
    match = re.match(r"# expect: ([YSG]\d{3})\n", path.read_text())
    assert match, f"{path.name} begins with `# expect: CODE`"
    return match[1]


def problems(path: Path) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        load(path)
    return caught.value.diagnostics


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    written = json_schema(Registry.installed())
    Draft202012Validator.check_schema(written)
    return Draft202012Validator(written)


def test_there_is_one_for_most_codes() -> None:
    assert len(BAD) >= 25
    assert len(SHIPPED) >= 2
    codes = {expected(path) for path in BAD}
    assert codes <= set(EXPLANATIONS)
    assert len(codes) >= 22


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_mistake_is_told_with_its_code_and_line(path: Path) -> None:
    found = problems(path)
    assert {each.code for each in found} == {expected(path)}
    for each in found:
        assert each.span and each.source == path.read_text().splitlines()[each.span.line - 1]


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_the_schema_refuses_what_it_can_see(path: Path, schema: Draft202012Validator) -> None:
    try:
        value = read(path).data
    except InputError:
        assert expected(path).startswith("Y")
        return
    accepts = "# schema: accepts\n" in path.read_text()
    assert schema.is_valid(value) is accepts


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_schema_accepts_a_shipped_experiment(path: Path, schema: Draft202012Validator) -> None:
    assert [error.message for error in schema.iter_errors(read(path).data)] == []
