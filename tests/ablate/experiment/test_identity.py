"""What makes two configurations the same."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.experiment.identity import canonical, digest, text
from ablate.experiment.levels import label
from ablate.experiment.loading import validate
from ablate.experiment.reading import parse
from ablate.experiment.yaml.writing import dump
from ablate_plugins.norm import LayerNorm, RMSNorm
from tests.ablate.experiment.maker import MANY

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)


def test_types_stay_apart() -> None:
    assert len({digest(value) for value in (1, 1.0, True, "1", None, [1], {"1": 1})}) == 7


def test_spelling_does_not_matter() -> None:
    assert digest(1e-3) == digest(0.001)
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


def test_an_option_at_its_default_is_left_out() -> None:
    assert canonical(LayerNorm()) == canonical(LayerNorm(eps=1e-5)) == {"kind": "layer"}
    assert canonical(LayerNorm(eps=1e-6)) == {"kind": "layer", "eps": 1e-6}


def test_a_raised_version_is_part_of_it() -> None:
    class Newer(RMSNorm):
        version = 2

    assert canonical(Newer()) == {"kind": "rms", "version": 2}


@pytest.mark.parametrize(
    ("value", "golden"),
    [
        (LayerNorm(), "29ba9e6c21e4e267"),
        (RMSNorm(eps=1e-3), "b648b00872f3515b"),
        (
            {"model": {"kind": "decoder", "norm": RMSNorm(), "depth": 6}, "seed": 0, "lr": 1e-3, "flag": True},
            "476d905e6debd4b5",
        ),
    ],
)
def test_identities_never_change(value: Any, golden: str) -> None:
    assert digest(value) == golden


@given(VALUES)
def test_any_value_has_one_identity(value: Any) -> None:
    assert digest(value) == digest(value)
    assert text(canonical(value)) == text(value)


@given(VALUES, VALUES)
def test_different_values_have_different_identities(one: Any, other: Any) -> None:
    assert (repr_typed(one) == repr_typed(other)) == (digest(one) == digest(other))


def repr_typed(value: Any) -> Any:
    """A value that is equal exactly when type and content are."""
    if isinstance(value, dict):
        return ("dict", tuple(sorted((key, repr_typed(item)) for key, item in value.items())))
    if isinstance(value, list):
        return ("list", tuple(repr_typed(item) for item in value))
    return (type(value).__name__, repr(value))


# --- of whole experiments -------------------------------------------------------------------------------------------

WHOLE: dict[str, Any] = {
    "schema": 1,
    "name": "whole",
    "task": {"kind": "text", "source": "python-docs", "context": 16},
    "model": {
        "kind": "decoder",
        "width": 16,
        "depth": 2,
        "norm": {"kind": "layer", "eps": 0.001},
        "mixer": {"kind": "attention", "heads": 2, "scale": {"kind": "inverse_sqrt"}},
        "feed_forward": {"kind": "mlp", "ratio": 2.0, "activation": "relu"},
        "layers": [{"range": [0, 1], "norm": {"kind": "layer", "eps": 0.001}, "dropout": 0.25}],
    },
    "training": {
        "optimizer": {"kind": "adamw", "lr": 0.01},
        "schedule": {"kind": "cosine", "warmup": 0.1},
        "batch": 4,
        "clip": None,
        "stream": "a",
    },
    "factors": {
        "placement": {"path": "model.placement", "levels": ["pre", "post"]},
        "norm": {"path": "model.norm", "levels": [{"kind": "layer", "eps": 0.001}, {"kind": "rms", "eps": 0.001}]},
        "residual": {"switch": "model.residual"},
        "stream": {"path": "training.stream", "levels": ["a", None, "null", "on", "1"]},
        "layers": {"levels": {"one": {}, "none": {"model.layers": []}}},
    },
    "seeds": 1,
    "objective": {"metric": "val/loss", "smallest_effect": 0.02},
    "budget": {"steps": 20},
}
NUMBERS = {
    "0.001": ["1e-3", "1.0e-3", "0.001", "0.0010", ".001", "1E-3", "10e-4"],
    "0.01": ["1e-2", "0.01", ".01", "+0.01"],
    "0.1": ["0.1", "1e-1", ".1"],
    "0.25": ["0.25", "25e-2"],
    "2.0": ["2.0", "2.", "2e0", "2"],  # `ratio` takes fractions, so 2 is 2.0 there
    "16": ["16", "0x10", "0o20", "+16"],
    "2": ["2", "0x2"],
    "1": ["1", "0x1"],
}
TEXTS = {"null": ['"null"', "'null'"], "on": ["on", '"on"'], "1": ["'1'", '"1"'], None: ["null", "~", "Null"]}


def identities(yaml: str) -> dict[str, str]:
    """The identity of every arm of a text, by its levels in the order of the factors' names."""
    arms = validate(parse(yaml, "x.yaml"), Path()).grid.arms
    return {text(sorted(arm.levels.items())): digest(arm.setup) for arm in arms}


@st.composite
def restyled(draw: st.DrawFn) -> str:
    """The whole experiment in another order, with other spellings, comments, anchors, and flow or block style."""
    anchored = draw(st.booleans())
    seen: list[bool] = []

    def scalar(value: Any) -> str:
        if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
            return draw(st.sampled_from(NUMBERS.get(repr(value), [repr(value)])))
        if value in TEXTS:
            return draw(st.sampled_from(TEXTS[value]))
        return draw(st.sampled_from([str(value), f'"{value}"', f"'{value}'"]))

    def entries(value: Any) -> list[tuple[str, Any]]:
        return draw(st.permutations(list(value.items()))) if isinstance(value, dict) else [("", item) for item in value]

    def flow(value: Any) -> str:
        if not isinstance(value, dict | list):
            return scalar(value)
        if anchored and value == WHOLE["model"]["norm"]:
            seen.append(True)
            if len(seen) > 1:
                return "*norm"
            return "&norm " + "{" + ", ".join(f"{key}: {flow(item)}" for key, item in entries(value)) + "}"
        inner = [f"{key}: {flow(item)}" if key else flow(item) for key, item in entries(value)]
        return ("{%s}" if isinstance(value, dict) else "[%s]") % ", ".join(inner)

    def block(value: Any, indent: str) -> str:
        if not isinstance(value, dict) or not value or (indent and draw(st.booleans())):
            return f" {flow(value)}"
        lines = []
        for key, item in entries(value):
            comment = draw(st.sampled_from(["", "  # said: {of, it]", "\n# a line\n"]))
            inner = block(item, indent + "  ")
            lines.append(f"\n{indent}{key}:{inner}" + (comment if inner[0] == " " else ""))
        return "".join(lines)

    return block(WHOLE, "").lstrip("\n") + "\n"


@settings(deadline=None, max_examples=60)
@given(restyled())
def test_the_way_that_an_experiment_is_written_changes_no_identity(yaml: str) -> None:
    assert identities(yaml) == GOLDEN


GOLDEN = identities(dump(WHOLE))


def test_arms_have_identities_of_their_own() -> None:
    assert len(GOLDEN) == len(set(GOLDEN.values())) == 1 + 1 + 1 + 1 + 4 + 1


ONE = {key: value for key, value in WHOLE.items() if key != "factors"}
CHANGES: list[tuple[str, list[Any]]] = [
    ("task.context", [8, 32]),
    ("task.windows", [255]),
    ("model.width", [8, 32]),
    ("model.depth", [3]),
    ("model.norm", [{"kind": "rms", "eps": 1e-3}, "layer", "rms", "none"]),
    ("model.norm.eps", [1e-4, 0.0010000000000000002]),
    ("model.placement", ["post", "none", "sandwich"]),
    ("model.residual", ["none"]),
    ("model.mixer.heads", [1, 4]),
    ("model.mixer.bias", [False]),
    ("model.mixer.causal", [False]),
    ("model.mixer.dropout", [0.1]),
    ("model.mixer.scale", ["none"]),
    ("model.feed_forward", ["mlp", {"kind": "mlp", "width": 32, "activation": "relu"}]),
    ("model.feed_forward.activation", ["gelu", "silu"]),
    ("model.position", ["none", "rotary", {"kind": "rotary", "base": 2e4}, "sinusoidal"]),
    ("model.output", ["tied"]),
    ("model.dropout", [0.1]),
    ("model.layers", [[], [{"range": [0, 1], "dropout": 0.5}], [{"range": [1, 2], "dropout": 0.25}]]),
    ("training.optimizer.lr", [0.011, 1.0]),
    ("training.schedule", ["constant", {"kind": "cosine", "warmup": 1}, {"kind": "cosine", "warmup": 1.0}]),
    ("training.batch", [5]),
    ("training.clip", [1.0, 2.0]),
    ("training.precision", ["32-true", "bf16-mixed"]),
    ("training.threads", [2]),
    ("training.stream", [None, "", "null", "b", "1"]),
    ("training.initializer", ["normal"]),
]


def changed_to(path: str, value: Any) -> str:
    """The identity of the one arm with another value at a path."""
    values = copy.deepcopy(ONE)
    *around, last = path.split(".")
    place = values
    for step in around:
        place = place[step]
    place[last] = value
    [identity] = identities(dump(values)).values()
    return identity


def test_every_change_of_meaning_is_another_identity() -> None:
    found = {text([path, value]): changed_to(path, value) for path, values in CHANGES for value in values}
    found["unchanged"] = next(iter(identities(dump(ONE)).values()))
    same = [(one, other) for one, other in itertools.combinations(found, 2) if found[one] == found[other]]
    assert same == []


def test_what_is_no_part_of_an_arm_changes_no_identity() -> None:
    more = {"question": "Why?", "seeds": [7], "probes": {"every": 3}, "allow_noop": True, "executor": "local"}
    renamed = ONE | more | {"name": "other", "objective": {"smallest_effect": 1, "goal": "max"}}
    assert list(identities(dump(renamed)).values()) == list(identities(dump(ONE)).values())


def test_an_option_of_any_type_keeps_the_type_of_its_levels(tmp_path: Path) -> None:
    type_ = "bool | int | float | str | list[int] | dict[str, int] | None"
    (tmp_path / "many.py").write_text(MANY.format(options=f"    it: {type_} = 0\n"))
    levels = [0, 1, 1.0, True, False, "1", "true", None, "null", "", [], [1], {}, {"x": 1}]
    more = {"plugins": ["many.py"], "factors": {"it": {"path": "model.norm.it", "levels": levels}}}
    values = ONE | more | {"model": ONE["model"] | {"norm": "many", "layers": []}}
    arms = validate(parse(dump(values), "x.yaml"), tmp_path).grid.arms
    assert [text(arm.setup.model.norm.it) for arm in arms] == [text(level) for level in levels]  # type: ignore[attr-defined]
    assert len({digest(arm.setup) for arm in arms}) == len({arm.name for arm in arms}) == len(levels)
    assert (arms[7].levels, arms[7].name) == ({"it": None}, "it=null")


@given(VALUES)
def test_any_value_can_be_a_level_and_stays_itself(value: Any) -> None:
    axis = {"levels": [value, [value], {"it": value}]}
    read = parse(dump(axis), "x.yaml").data
    assert text(read) == text(axis)
    names = {text(label(level)) if not isinstance(level, dict | list) else label(level) for level in read["levels"]}
    assert len(names) == 3
