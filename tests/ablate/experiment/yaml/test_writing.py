"""What is written reads back as it was, here and in other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ablate.experiment.reading import parse, read
from ablate.experiment.yaml.writing import dump
from tests.ablate.experiment.yaml.outcomes import data
from tests.ablate.experiment.yaml.words import SCALARS

ROOT = Path(__file__).parents[4]
TEXTS = (
    st.sampled_from(SCALARS)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    | st.text("-?:,[]{}#&*!|>'\"%@` .~_=<\\\n\t\r\x00\x1b\x7f\x85\u2028\ufeff0123456789abeonxy", max_size=8)
    | st.builds(str.__mul__, st.sampled_from("ab\n é"), st.sampled_from([98, 990, 1001, 1030]))
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**308), 10**308)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5), max_leaves=20
)
DOCUMENTS = st.dictionaries(TEXTS, VALUES, min_size=1, max_size=5)


def as_json(value: object) -> str:
    """A value as text that tells 1 from 1.0 and true, and keys by their order."""
    return json.dumps(value)


@settings(deadline=None, max_examples=200)
@given(DOCUMENTS)
@example({"n": [1, 1.0, True, "1", "1.0", "true", None, "null", "~", "", 0, -0.0, "-0.0", 1e-3, "1e-3", 1e300, 5e-324]})
@example({"k" * 1100: {"k" * 1100: {"a": {"b": {"c": []}}}}})
def test_what_is_written_reads_back_with_its_types(value: dict[str, Any]) -> None:
    document = parse(dump(value), "x.yaml")
    assert as_json(document.data) == as_json(value)
    assert document.warnings == ()


@settings(deadline=None, max_examples=80)
@given(DOCUMENTS)
def test_other_readers_of_yaml_1_2_and_1_1_read_the_same(value: dict[str, Any]) -> None:
    text = dump(value)
    assert as_json(YAML(typ="safe", pure=True).load(text)) == as_json(value)
    assert as_json(yaml.safe_load(text)) == as_json(value)


@pytest.mark.parametrize("scalar", SCALARS)
def test_every_doubtful_text_stays_text_for_every_reader(scalar: str) -> None:
    value = {"plain": scalar, "item": [scalar, {scalar: [[scalar]]}], scalar: {"x": {"y": {"z": [scalar]}}}}
    text = dump(value)
    assert as_json(data(text)) == as_json(value)
    assert as_json(YAML(typ="safe", pure=True).load(text)) == as_json(value)
    assert as_json(yaml.safe_load(text)) == as_json(value)


@settings(deadline=None)
@given(VALUES)
def test_a_value_of_any_kind_can_be_written(value: Any) -> None:
    assert as_json(yaml.safe_load(dump(value))) == as_json(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "null"), (True, "true"), (False, "false"), (3, "3"), (-0.0, "-0.0"), (0.001, "0.001"), (1.0, "1.0"),
        (1e-5, "1.0e-05"), (1.5e-7, "1.5e-07"), (1e16, "1.0e+16"), (10**20, "1" + "0" * 20), ([], "[]"), ({}, "{}"),
        ("pre", "pre"), ("model.norm", "model.norm"), ("val/loss", "val/loss"), ("1%", "1%"), ("20GiB", "20GiB"),
        ("./my_norm.py", "./my_norm.py"), ("a, b?", "a, b?"), ("Is it 2:1?", "Is it 2:1?"), ("naïve 🙂", "naïve 🙂"),
        ("http://x.org/y#z", "http://x.org/y#z"), ("tRUE", "tRUE"), ("None", "None"),
        *[(text, f'"{text}"') for text in (
            "", "on", "Off", "yes", "NO", "y", "N", "null", "~", "true", "False", "1", "1.0", "1e-3", "0o7", "010",
            ".5", "0x1F", "1_000", "0b1", "12:30", "2024-01-01", ".inf", ".nan", "<<", "=", "a: b", "a #b", "# a",
            "- a", "-a", " a", "a ", "a:", "*a", "&a", "!a", "@a", "`a`", "%a", "[a]", "{a}", "'a'", "|", ">", "?",
            "---", "...", "1e999",
        )],
        ('"', '"\\""'), ("\\a", "\\a"), (" \\", '" \\\\"'), ("a\nb\n", '"a\\nb\\n"'), ("\t", '"\\t"'),
        ("\x1b[31m", '"\\u001b[31m"'), ("\x85", '"\\u0085"'),
        ("\u202ea", '"\\u202ea"'), ("\U000e0041", '"\\U000e0041"'),
    ],
)  # fmt: skip
def test_a_scalar_is_written_as_people_write_it(value: Any, written: str) -> None:
    assert dump({"a": value}) == f"a: {written}\n"
    assert dump(value) == f"{written}\n"


def test_text_between_brackets_has_more_to_fear() -> None:
    assert dump({"a": ["b, c", "b?", "x:y", "b]", "on"]}) == 'a: ["b, c", "b?", x:y, "b]", "on"]\n'


def test_collections_of_scalars_stand_in_one_line_while_it_has_room() -> None:
    room = 100 - len("name: []") - len(", b")
    assert dump({"name": ["a" * room, "b"]}) == f"name: [{'a' * room}, b]\n"
    assert dump({"name": ["a" * room, "bb"]}) == f"name:\n  - {'a' * room}\n  - bb\n"
    assert dump({"a": {"b": {"c": 1}}}) == "a: {b: {c: 1}}\n"
    assert dump({"a": {"b": {"c": {"d": 1}}}}) == "a:\n  b: {c: {d: 1}}\n"
    assert dump([[[[1], {"a": 2, "b": {"c": {"d": 1}}}]], 3]) == "- - - [1]\n    - a: 2\n      b: {c: {d: 1}}\n\n- 3\n"


def test_an_experiment_is_written_as_people_write_them() -> None:
    value = {
        "schema": 1,
        "name": "norm-placement",
        "question": "Where should the norm sit, once every arm has its own learning rate?",
        "plugins": ["./my_norms.py"],
        "task": {"kind": "text", "source": "python-docs", "context": 128},
        "model": {
            "kind": "decoder",
            "width": 128,
            "depth": 6,
            "mixer": {"kind": "attention", "heads": 4, "scale": "inverse_sqrt"},
            "feed_forward": {"kind": "mlp", "ratio": 4, "activation": "gelu"},
        },
        "training": {"optimizer": {"kind": "adamw", "lr": 1e-3}, "batch": 32, "clip": None},
        "factors": {
            "placement": {"levels": {"pre": {"model.placement": "pre"}, "none": {"model.placement": "none"}}},
            "scale": {"switch": "model.mixer.scale"},
        },
        "baseline": {"placement": "pre", "scale": "on"},
        "seeds": [0, 1, 2],
        "budget": {"steps": 2000},
    }
    expected = """\
schema: 1
name: norm-placement
question: Where should the norm sit, once every arm has its own learning rate?
plugins: [./my_norms.py]
task: {kind: text, source: python-docs, context: 128}

model:
  kind: decoder
  width: 128
  depth: 6
  mixer: {kind: attention, heads: 4, scale: inverse_sqrt}
  feed_forward: {kind: mlp, ratio: 4, activation: gelu}

training: {optimizer: {kind: adamw, lr: 0.001}, batch: 32, clip: null}

factors:
  placement:
    levels: {pre: {model.placement: pre}, none: {model.placement: none}}
  scale: {switch: model.mixer.scale}

baseline: {placement: pre, scale: "on"}
seeds: [0, 1, 2]
budget: {steps: 2000}
"""
    assert dump(value) == expected


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.yaml")), ids=lambda path: path.name)
def test_a_shipped_experiment_survives(path: Path) -> None:
    value = read(path).data
    assert as_json(data(dump(value))) == as_json(value)


def test_what_cannot_be_read_back_is_refused() -> None:
    deep: Any = 1
    for _ in range(101):
        deep = [deep]
    endless: dict[str, Any] = {}
    endless["a"] = endless
    for value, message in [
        (float("inf"), "inf is not finite"),
        (float("-inf"), "-inf is not finite"),
        (float("nan"), "nan is not finite"),
        (10**309, "a whole number is out of range"),
        (-(10**309), "a whole number is out of range"),
        ("\ud83d\ude42", "a text holds half of a character"),
        (deep, "values are nested deeper than 100 levels"),
        (endless, "values are nested deeper than 100 levels"),
    ]:
        for whole in (value, {"a": value}, [{"a": [value]}]):
            with pytest.raises(ValueError, match=message):
                dump(whole)
    assert as_json(data(dump({"a": deep[0][0]}))) == as_json({"a": deep[0][0]})


def test_what_is_no_plain_value_is_refused() -> None:
    for value, message in [
        ((1, 2), "tuple cannot be written as YAML"),
        (Path("x"), "PosixPath cannot be written as YAML"),
        ({1: 2}, "int cannot be written as YAML"),
        ({None: 2}, "NoneType cannot be written as YAML"),
    ]:
        with pytest.raises(TypeError, match=message):
            dump({"a": value})
