"""Options of every type, from what YAML says to what a worker reads."""

from __future__ import annotations

import json
import subprocess
import sys
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any, Literal, Self

import pytest
from pydantic import Field, ValidationError
from torch import nn

from ablate.errors import InputError
from ablate.experiment import load
from ablate.experiment.identity import canonical, digest, spelled, text
from ablate.registry import Registry
from ablate.slots import Executor, Norm, Options, Site
from ablate_plugins.norm import LayerNorm
from tests.ablate.experiment.maker import write

REGISTRY = Registry.installed()


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Step(Enum):
    ONE = 1
    HALF = 0.5
    ALL = "all"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Window(Options):
    size: int
    names: frozenset[str] = frozenset()


class Rich(Norm):
    """Has an option of each type."""

    kind: Literal["rich"] = "rich"
    colour: Colour = Colour.RED
    step: Step = Step.ONE
    level: Level | None = None
    weights: dict[Colour, tuple[int, ...]] = Field(default_factory=dict)
    pair: tuple[int, float] = (1, 2.0)
    numbers: set[int | float | bool] = Field(default_factory=lambda: set[int | float | bool]([1]))
    windows: frozenset[Window] = frozenset()
    listed: list[Window] = Field(default_factory=list)
    named: dict[str, Window] = Field(default_factory=dict)
    norms: tuple[Norm, ...] = ()

    def build(self, at: Site) -> nn.Module:
        return nn.Identity()


class Holder(Options):
    norm: Norm


def rich(**options: Any) -> Rich:
    return Rich.model_validate({"kind": "rich", **options}, context={"registry": REGISTRY})


FULL: dict[str, Any] = {
    "colour": "blue",
    "step": 0.5,
    "level": 2,
    "weights": {"red": [1, 2], "blue": []},
    "pair": [3, 4],
    "numbers": [3, 2.5],
    "windows": [{"size": 2, "names": ["b", "a", "c"]}, {"size": 1}],
    "listed": [{"size": 5}],
    "named": {"x": {"size": 6}},
    "norms": ["rms", {"kind": "layer", "eps": 1e-3}],
}


def test_what_yaml_can_say_becomes_the_types_that_were_declared() -> None:
    made = rich(**FULL)
    assert (made.colour, made.step, made.level) == (Colour.BLUE, Step.HALF, Level.HIGH)
    assert made.weights == {Colour.RED: (1, 2), Colour.BLUE: ()}
    assert made.pair == (3, 4.0)
    assert made.windows == {Window(size=1), Window(size=2, names=frozenset("abc"))}
    assert made.norms[1] == LayerNorm(eps=1e-3)


def test_a_worker_reads_what_a_plan_writes_and_a_level_starts_from_what_is_spelled() -> None:
    made = rich(**FULL)
    written = json.loads(json.dumps(Holder(norm=made).model_dump(mode="json")))["norm"]
    assert rich(**written) == made
    assert rich(**spelled(made)) == made
    assert digest(rich(**written)) == digest(made)
    assert hash(rich(**written)) == hash(made)


def test_the_canonical_text_is_in_order() -> None:
    assert text(canonical(rich(**FULL))) == (
        '{"colour":"blue","kind":"rich","level":2,"listed":[{"size":5}],"named":{"x":{"size":6}},'
        '"norms":[{"kind":"rms"},{"eps":0.001,"kind":"layer"}],"numbers":[2.5,3],"pair":[3,4.0],"step":0.5,'
        '"weights":{"blue":[],"red":[1,2]},"windows":[{"names":["a","b","c"],"size":2},{"size":1}]}'
    )
    assert canonical(rich()) == {"kind": "rich"}


def test_sets_are_written_alike_by_every_process() -> None:
    code = (
        "from ablate.slots import Options\n"
        "from ablate.experiment.identity import canonical, text\n"
        "class Mine(Options):\n"
        "    names: set[str]\n"
        "    groups: frozenset[frozenset[str]] = frozenset()\n"
        "words = ['alpha', 'beta', 'gamma', 'delta', 'epsilon']\n"
        "mine = Mine.model_validate({'names': words, 'groups': [words[:2], words[2:]]})\n"
        "print(mine.model_dump_json(), text(canonical(mine)))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        ).stdout
        for seed in "123"
    }
    names, groups = '["alpha","beta","delta","epsilon","gamma"]', '[["alpha","beta"],["delta","epsilon","gamma"]]'
    dumped, identity = f'{{"names":{names},"groups":{groups}}}', f'{{"groups":{groups},"names":{names}}}'
    assert said == {f"{dumped} {identity}\n"}


@pytest.mark.parametrize(
    ("options", "place", "kind"),
    [
        ({"colour": "green"}, ("colour",), "literal_error"),
        ({"step": 1.0}, ("step",), "literal_error"),
        ({"step": True}, ("step",), "literal_error"),
        ({"level": 1.0}, ("level",), "literal_error"),
        ({"level": "1"}, ("level",), "literal_error"),
        ({"weights": {"green": [1]}}, ("weights", "green", "[key]"), "literal_error"),
        ({"weights": {"red": [1.0]}}, ("weights", "red", 0), "int_type"),
        ({"pair": [1.0, 2.0]}, ("pair", 0), "int_type"),
        ({"pair": [True, 2.0]}, ("pair", 0), "int_type"),
        ({"pair": "12"}, ("pair",), "tuple_type"),
        ({"windows": [{"size": 1.0}]}, ("windows", 0, "size"), "int_type"),
        ({"named": [1]}, ("named",), "dict_type"),
    ],
)
def test_what_is_inside_stays_strict(options: dict[str, Any], place: tuple[str | int, ...], kind: str) -> None:
    with pytest.raises(ValidationError) as caught:
        rich(**options)
    (error,) = caught.value.errors()
    assert (error["loc"], error["type"]) == (place, kind)


def test_options_are_told_apart_by_type_where_python_would_not() -> None:
    class Loose(Options):
        value: bool | int | float

    values = {Loose(value=1), Loose(value=1.0), Loose(value=True), Loose(value=1)}
    assert len(values) == 3
    assert Loose(value=1) != Window(size=1)


def test_options_that_are_dead_are_no_part_of_identity_but_of_what_was_written() -> None:
    class Gated(Norm):
        kind: Literal["gated"] = "gated"
        on: bool = True
        gain: float = 1.0

        def build(self, at: Site) -> nn.Module:
            return nn.Identity()

        def effective(self) -> Self:
            return self if self.on else self.model_copy(update={"gain": 1.0})

    dead, plain = Gated(on=False, gain=2.0), Gated(on=False)
    assert canonical(dead) == canonical(plain) == {"kind": "gated", "on": False}
    assert canonical(Gated(gain=2.0)) == {"kind": "gated", "gain": 2.0}
    assert canonical([Holder(norm=dead)]) == canonical([Holder(norm=plain)])
    assert canonical(dead, as_written=True) == {"kind": "gated", "on": False, "gain": 2.0}
    assert spelled(dead) == {"kind": "gated", "on": False, "gain": 2.0}


PLUGIN = """
from enum import StrEnum
from typing import Literal
from ablate.slots import Norm, Options, Site
from torch import nn

class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"

class Window(Options):
    size: int = 1
    '''How large.'''

class Mine(Norm):
    '''A norm of mine.'''
    kind: Literal["mine"] = "mine"
    colour: Colour = Colour.RED
    '''Which one.'''
    sizes: tuple[int, int] = (1, 2)
    '''Two of them.'''
    names: frozenset[str] = frozenset()
    '''In any order.'''
    windows: list[Window] = []
    '''One after the other.'''

    def build(self, at: Site) -> nn.Module:
        return nn.LayerNorm(at.width)
"""


def with_plugin(folder: Path, norm: str) -> Path:
    (folder / "mine.py").write_text(PLUGIN)
    return write(folder, ("seeds: 6", "plugins: [./mine.py]"), ("depth: 2", f"depth: 2\n  norm: {norm}"))


def test_such_options_work_from_yaml(tmp_path: Path) -> None:
    norm = "{kind: mine, colour: blue, sizes: [3, 4], names: [b, a], windows: [{size: 2}, {}]}"
    experiment = load(with_plugin(tmp_path, norm))
    assert canonical(experiment.settings.model)["norm"] == {
        "kind": "mine", "colour": "blue", "sizes": [3, 4], "names": ["a", "b"], "windows": [{"size": 2}, {}],
    }  # fmt: skip
    assert len(experiment.grid.arms) == 3


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        ("{kind: mine, colour: blu}", [
            "S103 `colour` must be one of red, blue, not the text `blu` | did you mean `blue`?"
        ]),
        ("{kind: mine, sizes: 3}", ["S103 `sizes` must be a list, not 3 | None"]),
        ("{kind: mine, names: a}", ["S103 `names` must be a list, not the text `a` | None"]),
        ("{kind: mine, sizes: [1, 2.0]}", ["S103 `sizes[1]` must be a whole number, not 2.0 | write `2`"]),
        ("{kind: mine, windows: [{sise: 1}]}", [
            "S101 unknown key `sise` in `model.norm.windows.0` | did you mean `size`?"
        ]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_such_options_is_said_in_the_words_of_yaml(
    tmp_path: Path, norm: str, expected: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        load(with_plugin(tmp_path, norm))
    assert [f"{each.code} {each.message} | {each.help}" for each in caught.value.diagnostics] == expected


def test_a_slot_has_its_article() -> None:
    class Needs(Options):
        executor: Executor

    with pytest.raises(ValidationError, match="`layer` is a norm, not an executor"):
        Needs.model_validate({"executor": LayerNorm()})
    with pytest.raises(ValidationError, match="an executor is a name or a mapping with `kind`"):
        Needs.model_validate({"executor": 1})
