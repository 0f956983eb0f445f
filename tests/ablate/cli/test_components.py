"""Components of a user's own, and options inside of options, as the command line meets them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from ablate.experiment.json_schema import json_schema
from ablate.experiment.reading import read
from ablate.registry import Registry
from tests.ablate.cli.conftest import Command
from tests.ablate.experiment.maker import write

LOUD = """
from typing import Literal
from torch import nn
from ablate.slots import Norm, Site

print("importing")

class Loud(Norm):
    '''Prints what it does.'''
    kind: Literal["loud"] = "loud"

    def build(self, at: Site) -> nn.Module:
        print("building")
        return nn.LayerNorm(at.width)
"""

WINDOWED = """
from typing import Literal
from torch import nn
from ablate.slots import Norm, Options, Site

class Window(Options):
    SIZE: int

class Mine(Norm):
    '''Looks through windows.'''
    kind: Literal["KIND"] = "KIND"
    windows: list[Window] = []
    '''One after the other.'''

    def build(self, at: Site) -> nn.Module:
        return nn.LayerNorm(at.width)
"""


def test_what_a_plugin_prints_goes_to_stderr(ablate: Command, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    write(tmp_path, ("seeds: 6", "plugins: [./loud.py]"), ("depth: 2", "depth: 2\n  norm: loud"))
    shown = ablate("plan", "small.yaml", "--json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["name"] == "small"
    assert "importing" in shown.stderr
    assert "building" in shown.stderr
    shown = ablate("plugins", "list", "--plugin", "loud.py", "--json")
    assert "loud" in {each["kind"] for each in json.loads(shown.stdout)["components"]}
    assert "importing" in shown.stderr
    assert json.loads(ablate("schema", "--plugin", "loud.py").stdout)["title"] == "An experiment of Ablate"


def test_an_unsound_component_is_an_error_at_the_line_that_names_it(ablate: Command, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD.replace("    def build", "    eps: float = float('inf')\n\n    def build"))
    write(tmp_path, ("seeds: 6", "plugins: [./loud.py]"))
    shown = ablate("plan", "small.yaml", "--json")
    assert shown.returncode == 2
    (error,) = json.loads(shown.stdout)["error"]
    assert (error["code"], error["line"], error["column"]) == ("S118", 14, 11)
    assert error["message"] == (
        "`Loud` of ./loud.py has an option `eps` whose default cannot be: inf is not a finite number"
    )


def test_a_hybrid_is_planned(ablate: Command, tmp_path: Path) -> None:
    hybrid = "path: model.layers, levels: [[], [{range: [0, 1], placement: post}]]"
    write(tmp_path, ("path: model.placement, levels: [pre, post]", hybrid))
    shown = ablate("plan", "small.yaml")
    assert shown.returncode == 0, shown.stderr
    assert "placement=[{range=[0, 1], placement=post}]" in shown.stdout
    assert "3 arms x 6 seeds" in shown.stdout


@pytest.mark.parametrize(
    ("layers", "right"),
    [
        ("[{range: [0, 1], norm: rms, mixer: {kind: attention, heads: 1}}]", True),
        ("[]", True),
        ("[{range: [0, 1], norm: rsm}]", False),
        ("[{range: [0], norm: rms}]", False),
        ("[{norm: rms}]", False),
        ("[{range: [0, 1], nrom: rms}]", False),
    ],
)
def test_the_schema_knows_layers(
    schema: jsonschema.Draft202012Validator, tmp_path: Path, layers: str, right: bool
) -> None:
    document = read(write(tmp_path, ("depth: 2", f"depth: 2\n  layers: {layers}")))
    assert schema.is_valid(document.data) == right


@pytest.mark.parametrize(
    ("norm", "right"),
    [
        ("{kind: one, windows: [{width: 1}]}", True),
        ("{kind: two, windows: [{height: 1}]}", True),
        ("{kind: one, windows: [{height: 1}]}", False),
        ("{kind: two, windows: [{width: 1}]}", False),
    ],
)
def test_plugins_may_call_their_options_the_same(
    schema: jsonschema.Draft202012Validator, tmp_path: Path, norm: str, right: bool
) -> None:
    document = read(write(tmp_path, ("depth: 2", f"depth: 2\n  norm: {norm}")))
    assert schema.is_valid(document.data) == right


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> jsonschema.Draft202012Validator:
    """The editor's schema with two plugins that each have options called Window."""
    folder = tmp_path_factory.mktemp("schema")
    registry = Registry.installed()
    for kind, size in (("one", "width"), ("two", "height")):
        (folder / f"{kind}.py").write_text(WINDOWED.replace("KIND", kind).replace("SIZE", size))
        registry.add_file(folder / f"{kind}.py")
    made = json_schema(registry)
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)
