"""Quantities with a unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.experiment.quantities import seconds, share, size


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("90s", 90.0), ("20m", 1200.0), ("1.5h", 5400.0), ("2d", 172800.0), ("1h 30m", 5400.0), ("1h30m", 5400.0),
        ("20 m", 1200.0), (90, 90), (1.5, 1.5), (None, None),
    ],
)  # fmt: skip
def test_durations_are_in_seconds(written: Any, expected: object) -> None:
    assert (seconds(written), type(seconds(written))) == (expected, type(expected))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("500MB", 500 * 10**6), ("20GiB", 20 * 2**30), ("1.5 KiB", 1536), ("3B", 3), ("2TB", 2 * 10**12),
        ("1kB", 1000), (7, 7), (None, None),
    ],
)  # fmt: skip
def test_sizes_are_in_bytes(written: Any, expected: object) -> None:
    assert (size(written), type(size(written))) == (expected, type(expected))


@pytest.mark.parametrize(("written", "expected"), [("1%", 0.01), ("0.5 %", 0.005), ("50%", 0.5), (0.1, 0.1), (0, 0)])
def test_shares_are_parts_of_one(written: Any, expected: float) -> None:
    assert share(written) == expected


@pytest.mark.parametrize("written", ["", "20", "m", "20x", "-1m", "1e3s", "20m and", "1:30", "٣m", ".5h", "m20"])
def test_what_is_no_duration(written: str) -> None:
    with pytest.raises(ValueError, match=f"^`{written}` is no duration: write it as `90s`, `20m`, `1h 30m` or `2d`$"):
        seconds(written)


@pytest.mark.parametrize("written", ["", "20", "GiB", "20Gib", "20gb", "-1B", "1GiB 2MiB", "1 B B", "10%"])
def test_what_is_no_size(written: str) -> None:
    with pytest.raises(ValueError, match=f"^`{written}` is no size: write it as `500MB` or `20GiB`$"):
        size(written)


@pytest.mark.parametrize("written", ["", "%", "1", "-1%", "1%%", "one%", "1e1%"])
def test_what_is_no_share(written: str) -> None:
    with pytest.raises(ValueError, match=f"^`{written}` is no share: write it as `1%` or `0.01`$"):
        share(written)


@given(st.text(max_size=12) | st.from_regex(r"[0-9]{1,25}(\.[0-9]{1,25})?(s|TiB|%)", fullmatch=True))
def test_any_text_is_read_or_refused_with_a_value_error(text: str) -> None:
    for read in (seconds, size, share):
        try:
            value = read(text)
        except ValueError as error:
            assert str(error).startswith("`")
        else:
            assert 0 <= value < float("inf")


@pytest.mark.parametrize("read", [seconds, size, share])
def test_a_number_that_no_float_holds_is_refused(read: Callable[[Any], Any]) -> None:
    for unit in ("s", "TiB", "%"):
        with pytest.raises(ValueError, match=r"^`9{40}` is no "):
            read("9" * 400 + unit)
