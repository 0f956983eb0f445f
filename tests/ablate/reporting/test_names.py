"""Names that stay apart however little room there is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ablate.reporting.names import headings, in_heading, short_names, text_width

EIGHT = [
    "baseline", "placement=sandwich_rezero", "placement=prefixed_rezero", "residual=rezero", "ffn=swiglu",
    "a_long_name_of_a_factor=x",
]  # fmt: skip


def test_names_that_fit_stay_whole() -> None:
    assert short_names(EIGHT, 300) == EIGHT


def test_a_name_without_room_is_its_level_where_its_factor_is_common() -> None:
    short = short_names(EIGHT, 105)
    assert short[1:3] == ["sandwich_rezero", "prefixed_rezero"]
    assert short[-1].startswith("a_lo")
    assert "…" in short[-1]


def test_a_level_of_two_factors_is_not_alone() -> None:
    names = ["placement_of_norms=on", "placement_of_gates=on", "placement_of_norms=off", "placement_of_gates=off"]
    short = short_names(names, 80)
    assert len(set(short)) == 4
    assert not {"on", "off"} & set(short)


def test_what_differs_in_the_middle_stays() -> None:
    names = [f"mixer={'a' * 30}_{number}_{'b' * 30}" for number in range(3)]
    for number, name in enumerate(short_names(names, 90)):
        assert str(number) in name
        assert text_width(name) <= 90


@given(st.lists(st.text("ab=, _", min_size=1, max_size=60), max_size=12))
def test_no_two_different_names_look_alike(names: list[str]) -> None:
    short = short_names(names, 60)
    assert all(text_width(name) <= 60 for name in short)
    assert len(set(short)) == len(set(names))


def test_a_name_that_breaks_a_line_is_drawn_on_one_and_stays_apart() -> None:
    assert short_names(["a\nb", "a\tb", "a b"], 100) == ["a⏎b", "a⇥b", "a b"]
    assert text_width("a\nb") == text_width("a⏎b")


def test_titles_stay_apart_and_say_whether_they_break() -> None:
    same = "residual=none, scale=off, placement=sandwich"
    titles, long = headings([f"{same}, ratio={number}, position=rotary, norm=layer" for number in range(3)], 160, 2)
    assert len({in_heading(title, 160, 2) for title in titles}) == 3
    assert long
    assert headings([same], 160, 2) == ([same], True)
    assert headings(["a", "b"], 160, 2) == (["a", "b"], False)
