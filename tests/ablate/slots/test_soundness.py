"""A component that cannot work as a class is one clear error when it is brought in."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate.errors import InputError
from ablate.registry import Registry, Source

PLUGIN = """
import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal
from ablate.slots import Component, Mixer, Norm, Options, Probe, Site
from torch import nn

class Window(Options):
    size: float = 1.0

class Mine(Norm):
    '''A norm of mine.'''
    kind: Literal["mine"] = "mine"
    LINE

    def build(self, at: Site) -> nn.Module:
        return nn.Identity()
"""
DEFAULT = "`Mine` of ./mine.py has an option `{}` whose default cannot be: {}"


def said(folder: Path, source: str) -> list[str]:
    (folder / "mine.py").write_text(source)
    with pytest.raises(InputError) as caught:
        Registry.installed().add_file(folder / "mine.py", "./mine.py")
    return [f"{each.code} {each.message}" for each in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("eps: float = math.inf", DEFAULT.format("eps", "inf is not a finite number")),
        ("eps: float = math.nan", DEFAULT.format("eps", "nan is not a finite number")),
        ("eps: Any = math.inf", DEFAULT.format("eps", "inf cannot be written as JSON")),
        ("eps: Any = print", DEFAULT.format("eps", "a builtin_function_or_method cannot be written as JSON")),
        ("count: int = 1.0", DEFAULT.format("count", "1.0 is not a valid integer")),
        ("mode: Literal['a', 'b'] = 'c'", DEFAULT.format("mode", "'c' is not 'a' or 'b'")),
        ("pair: tuple[int, int] = (1, True)", DEFAULT.format("pair", "True is not a valid integer")),
        (
            "f: Callable[[int], int]",
            "`Mine` of ./mine.py has an option `f` of a type that no file can hold",
        ),
        ("version = '2'", "`Mine` of ./mine.py has the version '2', which is no whole number from 1"),
        ("version = True", "`Mine` of ./mine.py has the version True, which is no whole number from 1"),
    ],
)
def test_an_option_or_a_setting_that_cannot_be_is_named(tmp_path: Path, line: str, message: str) -> None:
    assert said(tmp_path, PLUGIN.replace("LINE", line)) == [f"S118 {message}"]


def test_options_inside_of_options_are_looked_at_too(tmp_path: Path) -> None:
    source = PLUGIN.replace("LINE", "windows: dict[str, list[Window] | None] = {}").replace("1.0", "math.inf")
    assert said(tmp_path, source) == [
        "S118 `Mine` of ./mine.py has an option `size` of `Window` whose default cannot be: inf is not a finite number"
    ]


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    source = PLUGIN.replace("LINE", "version = 0\n    eps: float = math.inf").replace('] = "mine"', '] = "other"')
    assert said(tmp_path, source) == [
        "S118 `Mine` of ./mine.py has the version 0, which is no whole number from 1",
        "S118 " + DEFAULT.format("kind", "'other' is not 'mine'"),
        "S118 " + DEFAULT.format("eps", "inf is not a finite number"),
    ]


@pytest.mark.filterwarnings("ignore:Field name")
def test_a_setting_of_the_class_is_no_option(tmp_path: Path) -> None:
    assert said(tmp_path, PLUGIN.replace("LINE", "version: int = 2")) == [
        "S118 `Mine` of ./mine.py has an option `version`, which is a setting of the class"
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Mine(Norm)", "Mine(Component)", "S118 `Mine` is of no slot"),
        ("LINE", "slot = 'norm'", "S118 `Mine` is of no slot"),
        ("Mine(Norm)", "Mine(Probe)", "S112 `Mine` lacks `measure`, `units`"),
    ],
)
def test_what_a_slot_asks_for_must_be_there(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert said(tmp_path, PLUGIN.replace(old, new).replace("LINE", "")) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "scale: Norm | None = None",
        "inner: Mixer = 'attention'",  # by its name: it is looked up when the component is made
        "names: set[str] = {'a', 'b'}\n    windows: tuple[Window, ...] = (Window(size=2.0),)",
        "count: int",
    ],
)
def test_what_is_sound_is_brought_in(tmp_path: Path, line: str) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN.replace("LINE", line))
    registry = Registry.installed()
    registry.add_file(tmp_path / "mine.py")
    assert "mine" in registry.kinds("norm")


def test_an_unsound_component_of_an_installed_module_harms_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "unsound_norms.py").write_text(PLUGIN.replace("LINE", "eps: float = math.inf"))
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry([Source("norm", "unsound_norms", "bad 0.1"), Source("norm", "ablate_plugins.norm", "good 1.0")])
    assert registry.kinds("norm") == ["batch", "dynamic_tanh", "layer", "none", "rms", "scale"]
    (broken,) = registry.broken
    assert broken.error == ("`Mine` of bad 0.1 has an option `eps` whose default cannot be: inf is not a finite number")
