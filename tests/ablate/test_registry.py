"""The one door for components."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from ablate.errors import InputError
from ablate.registry import Registry, Source, closest, kind_of
from ablate.slots import SLOTS, Norm, Options

NORM = """
from typing import Literal
from ablate.slots import Norm, Site
from torch import nn

class Mine(Norm):
    '''A norm of mine.'''
    kind: Literal["{kind}"] = "{kind}"

    def build(self, at: Site) -> nn.Module:
        return nn.Identity()
"""


class Holder(Options):
    norm: Norm


def hold(registry: Registry, value: object) -> Norm:
    return Holder.model_validate({"norm": value}, context={"registry": registry}).norm


def test_installed_components_are_found_lazily() -> None:
    code = "from ablate.registry import Registry; import sys; Registry.installed(); print('torch' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "False"


def test_a_name_and_a_mapping_are_the_same_value() -> None:
    registry = Registry.installed()
    assert hold(registry, "layer") == hold(registry, {"kind": "layer", "eps": 1e-5})
    assert hash(hold(registry, "layer")) == hash(hold(registry, {"kind": "layer"}))
    assert hold(registry, "layer") != hold(registry, {"kind": "layer", "eps": 1e-6})


def test_every_component_has_a_description_and_describes_its_fields() -> None:
    entries = list(Registry.installed().entries())
    assert {entry.component.slot for entry in entries} == set(SLOTS)
    for entry in entries:
        assert entry.component.describe().endswith("."), entry
        for name, field in entry.component.model_fields.items():
            assert name == "kind" or field.description, (entry, name)


def test_unknown_component_says_what_was_meant_and_what_exists() -> None:
    with pytest.raises(ValidationError) as caught:
        hold(Registry.installed(), "rsm")
    (error,) = caught.value.errors()
    assert error["msg"] == "no norm is called `rsm`"
    assert error["ctx"]["close"] == "rms"
    assert {"layer", "none", "rms"} <= set(error["ctx"]["kinds"])


@pytest.mark.parametrize("word", ["no", "off"])
def test_a_negation_means_none(word: str) -> None:
    with pytest.raises(ValidationError) as caught:
        hold(Registry.installed(), word)
    assert caught.value.errors()[0]["ctx"]["close"] == "none"


@pytest.mark.parametrize(
    ("word", "words", "near"),
    [
        ("RMSNorm", ["layer", "none", "rms"], "rms"),
        ("LayerNorm", ["layer", "none", "rms"], "layer"),
        ("nn.LayerNorm", ["layer", "none", "rms"], "layer"),
        ("AdamW", ["adamw", "sgd"], "adamw"),
        ("torch.optim.AdamW", ["adamw", "sgd"], "adamw"),
        ("s101", ["S101", "S102"], "S101"),
        ("decay", ["lr", "weight_decay"], "weight_decay"),
        ("minimize", ["min", "max"], "min"),
        ("weight", ["weights_only", "weight_decay_of_all_parameters"], "weights_only"),
        ("rsm", ["layer", "none", "rms"], "rms"),
        ("delai", ["delay", "weight_delaid_by_some"], "delay"),  # a misspelling is nearer than a part
        ("OFF", ["none", "add"], "none"),
        ("permission", ["mis", "none"], None),
        ("lr_scheduler", ["lr", "kind"], None),
        ("", ["lr", "kind"], None),
        ("batch", [], None),
    ],
)
def test_the_word_that_was_meant(word: str, words: list[str], near: str | None) -> None:
    assert closest(word, words) == near


def test_a_file_brings_a_component(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NORM.format(kind="mine"))
    registry = Registry.installed()
    registry.add_file(tmp_path / "mine.py", "./mine.py")
    registry.add_file(tmp_path / "mine.py", "./mine.py")  # naming it twice is no clash
    assert registry.entry("norm", "mine").origin == "./mine.py"
    assert kind_of(type(hold(registry, "mine"))) == "mine"


def test_registries_do_not_disturb_each_other(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NORM.format(kind="mine"))
    Registry.installed().add_file(tmp_path / "mine.py")
    assert "mine" not in Registry.installed().kinds("norm")


@pytest.mark.parametrize("first", ["file", "lookup"])
def test_a_clash_names_both_origins_whichever_comes_first(tmp_path: Path, first: str) -> None:
    (tmp_path / "mine.py").write_text(NORM.format(kind="rms"))
    registry = Registry.installed()
    if first == "lookup":
        registry.kinds("norm")

    def bring_and_look() -> None:
        registry.add_file(tmp_path / "mine.py", "./mine.py")
        registry.kinds("norm")

    with pytest.raises(InputError, match="two plugins bring a norm called `rms`") as caught:
        bring_and_look()
    assert "ablate-arch" in str(caught.value)
    assert "./mine.py" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_of_the_kind", "fails to import: ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        ("import lightning.pytorch as pl", "'lightning'\n  = help: import `pytorch_lightning`, which Ablate runs on"),
        ("def f(:", "fails to import: SyntaxError"),
        ("x = 1", "defines no component"),
        ("raise SystemExit(0)", "fails to import: SystemExit"),
        ("from ablate_plugins.norm import RMSNorm", "defines no component"),
    ],
)
def test_a_useless_file_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InputError, match=message):
        Registry.installed().add_file(tmp_path / "mine.py")


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no plugin file `nowhere.py`"):
        Registry.installed().add_file(tmp_path / "nowhere.py")


def test_a_component_without_kind_is_told_what_to_add(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NORM.format(kind="x").replace("kind:", "other:"))
    with pytest.raises(InputError, match=r"`Mine` of mine.py has no `kind`"):
        Registry.installed().add_file(tmp_path / "mine.py")


def test_a_broken_module_harms_no_other_and_is_remembered() -> None:
    registry = Registry(
        [Source("norm", "ablate_plugins.norm", "good 1.0"), Source("norm", "no_such_module_at_all", "bad 0.1")]
    )
    assert "rms" in registry.kinds("norm")
    (broken,) = registry.broken
    assert broken.origin == "bad 0.1"
    with pytest.raises(ValidationError) as caught:
        hold(registry, "nope")
    assert caught.value.errors()[0]["ctx"]["failed"] == ["bad 0.1"]


def test_a_component_that_lacks_its_slots_method_is_told_which(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NORM.format(kind="x").replace("def build", "def biuld"))
    with pytest.raises(InputError, match=r"S112.*`Mine` lacks `build`"):
        Registry.installed().add_file(tmp_path / "mine.py")


def test_the_hash_covers_the_modules_that_a_component_builds(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NORM.format(kind="x"))
    one = Registry.installed()
    one.add_file(tmp_path / "mine.py")
    before = one.entry("norm", "x").digest
    assert before == one.entry("norm", "x").digest
    (tmp_path / "mine.py").write_text(NORM.format(kind="x") + "\nclass Other(nn.Module): ...\n")
    two = Registry.installed()
    two.add_file(tmp_path / "mine.py")
    assert two.entry("norm", "x").digest != before


def test_options_that_components_share_may_stand_in_a_class_of_their_own(tmp_path: Path) -> None:
    shared = "class Shared(Norm):\n    eps: float = 1e-5\n    '''Added.'''\n\nclass Mine(Shared):"
    (tmp_path / "mine.py").write_text(NORM.format(kind="x").replace("class Mine(Norm):", shared))
    registry = Registry.installed()
    registry.add_file(tmp_path / "mine.py")
    assert registry.kinds("norm") == sorted([*Registry.installed().kinds("norm"), "x"])
