"""What makes two configurations the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.experiment.identity import canonical, digest, text
from ablate_plugins.norm import LayerNorm, RMSNorm

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
