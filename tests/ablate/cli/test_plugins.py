"""``ablate plugins list`` and ``ablate plugins show``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ablate.cli.plugins.showing import describe
from ablate.experiment.reading import parse
from ablate.experiment.schema import Settings
from ablate.registry import Registry
from ablate.slots import SLOTS
from tests.ablate.cli.conftest import Command
from tests.ablate.experiment.maker import EXPERIMENT

GAINED = """
from typing import Literal
from pydantic import Field
from torch import nn
from ablate.slots import Norm, Options, Site, Traits

class Window(Options):
    size: int = Field(ge=1)
    '''How wide.'''

class Gained(Norm):
    '''Looks through windows.

    It is slow, and sees
    more than it should. Source: Somebody 2031, Windows.
    '''
    kind: Literal["gained"] = "gained"
    version = 3
    gain: float = Field(gt=0, le=8, examples=[2.5])
    '''What it multiplies by.'''
    shape: Literal["round", "square"] = "round"
    '''How it looks.'''
    windows: list[Window] = []
    '''One after the other.'''
    depth: int | None = Field(None, ge=1)
    '''How deep.'''

    def traits(self) -> Traits:
        return Traits(causal=False, batch_dependent=True, vmap=False)

    def build(self, at: Site) -> nn.Module:
        return nn.LayerNorm(at.width)
"""


def test_the_list_says_which_is_the_default_of_a_slot_and_which_is_neutral(ablate: Command) -> None:
    listed = json.loads(ablate("plugins", "list", "--json").stdout)["components"]
    status = {(each["slot"], each["kind"]): each["status"] for each in listed}
    assert status["norm", "none"] == "neutral"
    assert status["norm", "rms"] == "ok"
    assert status["executor", "local"] == "default"
    for slot, its in SLOTS.items():
        assert its.default is None or status[slot, its.default] == "default"
    assert [slot for slot in SLOTS for each in listed if each["slot"] == slot] == [each["slot"] for each in listed]


def test_the_list_of_one_slot_with_a_file(ablate: Command, tmp_path: Path) -> None:
    (tmp_path / "gained.py").write_text(GAINED)
    shown = ablate("plugins", "list", "--slot", "norm", "--plugin", "gained.py")
    assert (shown.returncode, shown.stderr) == (0, "")
    first, *rows = shown.stdout.splitlines()
    assert first.split() == ["slot", "kind", "origin", "version", "status", "description"]
    assert {row.split()[0] for row in rows} == {"norm"}
    (mine,) = (row for row in rows if row.split()[1] == "gained")
    assert mine.split() == ["norm", "gained", "gained.py", "3", "ok", "Looks", "through", "windows."]


def test_an_unknown_slot_is_told_what_was_meant(ablate: Command) -> None:
    shown = ablate("plugins", "list", "--slot", "nrom")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith("error[S122]: no slot is called `nrom`\n  = help: did you mean `norm`?\n")


@pytest.mark.parametrize("name", ["gained", "norm.gained", "norm:gained"])
def test_a_component_in_full(ablate: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "gained.py").write_text(GAINED)
    shown = ablate("plugins", "show", name, "--plugin", "gained.py", "--json")
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    options = [list(each.values()) for each in told.pop("options")]
    traits = told.pop("traits")
    assert len(told.pop("source")) == 12
    assert told == {
        "slot": "norm",
        "kind": "gained",
        "description": "Looks through windows.",
        "details": "It is slow, and sees more than it should.",
        "paper": "Somebody 2031, Windows",
        "origin": "gained.py",
        "version": 3,
        "status": "ok",
        "file": "gained.py",
        "line": 11,
        "properties": [
            "not causal: a token sees later ones of its sequence",
            "batch-dependent: in training a sequence sees the others of its batch",
            "does not run under torch.func.vmap",
            "compiles as one graph",
        ],
        "yaml": "model:\n  kind: decoder\n  norm: {kind: gained, gain: 2.5, shape: round, windows: []}\n",
        "without_yaml": None,
    }
    assert (traits["causal"], traits["batch_dependent"], traits["cached"]) == (False, True, False)
    assert options == [
        ["gain", "number", "required", "> 0, <= 8", "What it multiplies by."],
        ["shape", "round or square", "round", "", "How it looks."],
        ["windows", "list, each mapping", "[]", "", "One after the other."],
        ["windows.size", "whole number", "required", ">= 1", "How wide."],
        ["depth", "whole number or null", "null", ">= 1", "How deep."],
    ]


def test_a_component_for_people(ablate: Command) -> None:
    shown = ablate("plugins", "show", "norm.rms")
    assert (shown.returncode, shown.stderr) == (0, "")
    told = json.loads(ablate("plugins", "show", "norm.rms", "--json").stdout)
    assert shown.stdout.splitlines() == [
        "norm.rms  Scale each token to unit root mean square, with a learned gain and no centring.",
        "",
        f"origin      {told['origin']}, version 1",
        "paper       Zhang and Sennrich 2019, Root Mean Square Layer Normalization",
        f"code        {told['file']}:{told['line']}, hash {told['source']}",
        "status      ok",
        "properties  causal: nothing depends on a later token",
        "            position-wise: a token depends on itself alone",
        "            runs under torch.func.vmap",
        "            compiles as one graph",
        "",
        "option  type    default  bounds  description",
        "eps     number  1.0e-06  > 0     Added to the mean square.",
        "",
        "in an experiment:",
        "  model: {kind: decoder, norm: {kind: rms, eps: 1.0e-06}}",
    ]


@pytest.mark.parametrize(
    ("name", "code", "message", "help"),
    [
        ("rsm", "S102", "no component is called `rsm`", "did you mean `norm.rms`?"),
        ("norm.rsm", "S102", "no norm is called `rsm`", "did you mean `norm.rms`?"),
        ("nrom:rms", "S122", "no slot is called `nrom`", "did you mean `norm`?"),
        ("norm", "S102", "no component is called `norm`",
         "`norm` is a slot, whose components `ablate plugins list --slot norm` shows"),
        ("qqqqqq", "S102", "no component is called `qqqqqq`",
         "`ablate plugins list` shows every component, and which plugins could not be used"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_told_what_was_meant(ablate: Command, name: str, code: str, message: str, help: str) -> None:
    shown = ablate("plugins", "show", name)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith(f"error[{code}]: {message}\n  = help: {help}\n")


def test_a_name_in_several_slots_asks_for_the_slot(ablate: Command) -> None:
    shown = ablate("plugins", "show", "none", "--json")
    assert shown.returncode == 2
    (error,) = json.loads(shown.stdout)["error"]
    assert error["code"] == "S121"
    having = [slot for slot, its in SLOTS.items() if its.neutral]
    assert error["message"] == f"`none` is the name of {len(having)} components"
    assert error["help"] == f"say which: {', '.join(f'`{slot}.none`' for slot in having)}"
    assert ablate("plugins", "show", "mixer.none").returncode == 0


def test_what_is_to_be_pasted_is_valid_for_every_component() -> None:
    registry = Registry.installed()
    base = parse(EXPERIMENT, "small.yaml").data
    pasted = set()
    for entry in registry.entries():
        told = describe(entry, registry)
        if told["yaml"] is None:
            assert told["without_yaml"]
            continue
        values = _over(base, parse(told["yaml"], "pasted.yaml").data)
        Settings.model_validate(values, context={"registry": registry})
        assert entry.kind in told["yaml"]
        pasted.add(entry.component.slot)
    assert set(SLOTS) - pasted <= {"section", "decoding"}


def _over(base: Any, pasted: Any) -> Any:
    """The base with what is pasted in place of its own; a component of another kind takes the whole place."""
    if not isinstance(base, Mapping) or not isinstance(pasted, Mapping):
        return pasted
    if base.get("kind", pasted.get("kind")) != pasted.get("kind", base.get("kind")):
        return pasted
    return {**base, **{key: _over(base.get(key), value) for key, value in pasted.items()}}


def test_what_no_experiment_names_says_so(ablate: Command) -> None:
    shown = ablate("plugins", "show", "section.verdict")
    assert "no options\n" in shown.stdout
    assert shown.stdout.splitlines()[-1] == (
        "in an experiment: no experiment names it: what is installed, or in `plugins`, is used"
    )
    assert "properties" not in shown.stdout


def test_help_names_the_four_commands(ablate: Command) -> None:
    lines = ablate("plugins", "--help").stdout.splitlines()
    for command, words in (
        ("list", "Every component, and plugins that could not be used."),
        ("show", "One component: what it is, its options, how to name it."),
        ("check", "Hold components against the contract of their slot."),
        ("new", "Write a component that works, to be changed as you like."),
    ):
        assert any(line.split()[:1] == [command] and line.endswith(words) for line in lines), command
