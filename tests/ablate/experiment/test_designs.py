"""Designs: which arms there are, in which order, and how many before any is made."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.errors import RefusedError
from ablate.experiment import load
from ablate.experiment.designs import Design, EachAndAll, FractionalDesign, Full, Listed, OneAtATime, Pairs
from ablate.experiment.factors import Axis
from ablate.experiment.levels import Level
from tests.ablate.experiment.maker import levels, names, problems, write, write_many

SIZES = st.lists(st.integers(1, 4), max_size=5)


def axes(sizes: list[int], baselines: list[int] | None = None) -> list[Axis]:
    """Factors a, b, c, ... of so many levels, and which of them is the baseline's."""
    made = []
    for name, size, baseline in zip("abcdefghijklmnopqrstuvwxyz", sizes, baselines or [0] * len(sizes), strict=False):
        all_levels = tuple(Level(index, {("model", name): index}, ("factors", name, index)) for index in range(size))
        made.append(Axis(name, all_levels, all_levels[baseline]))
    return made


def cells(design: Design) -> list[tuple[int, ...]]:
    """Every combination as the labels of its levels."""
    return [tuple(level.label for level in chosen.values()) for chosen in design.combinations()]


def test_one_at_a_time_changes_one_factor_in_the_order_of_the_file() -> None:
    assert cells(OneAtATime(axes([2, 3], [0, 1]))) == [(0, 1), (1, 1), (0, 0), (0, 2)]


def test_full_has_the_baseline_first_and_the_last_factor_varies_fastest() -> None:
    assert cells(Full(axes([2, 3], [0, 1]))) == [(0, 1), (0, 0), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_pairs_are_single_changes_and_then_two_together() -> None:
    assert cells(Pairs(axes([2, 3, 1]))) == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 2, 0), (1, 1, 0), (1, 2, 0)]


def test_leave_one_out_ends_with_all_changes_at_once() -> None:
    assert cells(EachAndAll(axes([2, 2, 2]))) == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)]
    assert cells(EachAndAll(axes([2]))) == [(0,), (1,)]
    assert cells(EachAndAll([])) == [()]


def test_a_list_is_as_it_is_spelled() -> None:
    both = axes([2, 3])
    spelled = [{"b": both[1].levels[2]}, {"a": both[0].levels[1], "b": both[1].levels[1]}]
    assert cells(Listed(both, spelled)) == [(0, 0), (0, 2), (1, 1)]


@settings(deadline=None)  # the first fraction imports scipy
@given(SIZES, st.data())
def test_a_size_is_the_number_of_combinations_and_none_comes_twice(sizes: list[int], data: st.DataObject) -> None:
    baselines = [data.draw(st.integers(0, size - 1)) for size in sizes]
    made = axes(sizes, baselines)
    two = axes([2] * len(sizes), [min(baseline, 1) for baseline in baselines])
    designs: list[Design] = [OneAtATime(made), Full(made), Pairs(made), EachAndAll(two), FractionalDesign(two)]
    for design in designs:
        found = cells(design)
        assert len(found) == design.size, design
        assert len(set(found)) == len(found), design
        assert found[0] == tuple(axis.baseline.label for axis in design.axes), design
    assert Full(made).size == math.prod(sizes)


@settings(deadline=None, max_examples=15)
@given(SIZES.filter(lambda sizes: math.prod(sizes) <= 30))
def test_a_size_is_the_number_of_arms_of_an_experiment(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    factors = {f"f{index}": size for index, size in enumerate(sizes)}
    for design in ("one_at_a_time", "full", "pairs"):
        path = write_many(tmp_path_factory.getbasetemp(), factors, f"design: {design}")
        grid = load(path).grid
        assert len(grid.arms) == grid.design.size
        assert len({arm.name for arm in grid.arms}) == len(grid.arms)
        assert grid.arms[0].name == "baseline"


@pytest.mark.parametrize(
    ("design", "expected"),
    [
        ("one_at_a_time", ["baseline", "a=1", "b=1", "c=1"]),
        ("full", [
            "baseline", "a=0, b=0, c=1", "a=0, b=1, c=0", "a=0, b=1, c=1", "a=1, b=0, c=0", "a=1, b=0, c=1",
            "a=1, b=1, c=0", "a=1, b=1, c=1",
        ]),
        ("pairs", ["baseline", "a=1", "b=1", "c=1", "a=1, b=1", "a=1, c=1", "b=1, c=1"]),
        ("leave_one_out", ["baseline", "a=1", "b=1", "c=1", "a=1, b=1, c=1"]),
        ("add_one", ["baseline", "a=0", "b=0", "c=0", "a=0, b=0, c=0"]),
        ("{kind: fractional, resolution: 3}", ["baseline", "a=0, b=1, c=1", "a=1, b=0, c=1", "a=1, b=1, c=0"]),
        ("list\narms: [{c: 1, a: 1}, {b: 1}]", ["baseline", "a=1, c=1", "b=1"]),
    ],
)  # fmt: skip
def test_arms_are_named_by_what_they_change(tmp_path: Path, design: str, expected: list[str]) -> None:
    assert names(write_many(tmp_path, {"a": 2, "b": 2, "c": 2}, f"design: {design}")) == expected


def test_the_baseline_of_add_one_is_all_off_and_may_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, ("path: model.placement, levels: [pre, post]", "switch: model.mixer.bias"),
                 ("seeds: 6", "design: add_one\nseeds: 6"))  # fmt: skip
    assert levels(path) == {
        "baseline": {"placement": "off", "residual": "off"},
        "placement=on": {"placement": "on", "residual": "off"},
        "residual=on": {"placement": "off", "residual": "on"},
        "placement=on, residual=on": {"placement": "on", "residual": "on"},
    }
    path.write_text(path.read_text().replace("seeds: 6", "baseline: {placement: on}\nseeds: 6"))
    assert next(iter(levels(path).values())) == {"placement": "on", "residual": "off"}


def test_equal_arms_are_one_and_its_other_names_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path, ("[pre, post]", "[pre, post, sandwich]"),
                 ("switch: model.residual", "path: model.norm, levels: [layer, none]"),
                 ("seeds: 6", "design: full\nseeds: 6"))  # fmt: skip
    found = {arm.name: arm.aliases for arm in load(path).grid.arms}
    assert found == {
        "baseline": (),
        "placement=pre, residual=none": ("placement=post, residual=none", "placement=sandwich, residual=none"),
        "placement=post, residual=layer": (),
        "placement=sandwich, residual=layer": (),
    }


def test_an_experiment_without_factors_is_its_baseline(tmp_path: Path) -> None:
    for design in ("one_at_a_time", "full", "pairs", "leave_one_out", "add_one", "fractional"):
        assert levels(write_many(tmp_path, {}, f"design: {design}")) == {"baseline": {}}


def test_a_factor_of_one_level_is_not_varied(tmp_path: Path) -> None:
    assert levels(write_many(tmp_path, {"a": 1, "b": 2})) == {"baseline": {"a": 0, "b": 0}, "b=1": {"a": 0, "b": 1}}


@pytest.mark.parametrize("design", ["leave_one_out", "add_one", "fractional", "{kind: fractional, resolution: 5}"])
def test_designs_of_two_levels_refuse_more_and_fewer(tmp_path: Path, design: str) -> None:
    name = "fractional" if "fractional" in design else design
    help = "leave it two of them, or take `design: one_at_a_time`"
    assert problems(write_many(tmp_path, {"a": 3, "b": 2, "c": 1}, f"design: {design}")) == [
        f"G211 13:3 `{name}` takes factors of two levels, and `a` has 3 | {help}",
        f"G211 15:3 `{name}` takes factors of two levels, and `c` has 1 | {help}",
    ]


@pytest.mark.parametrize("resolution", [3, 4, 5])
@pytest.mark.parametrize("count", range(2, 10))
def test_a_fraction_is_balanced_and_has_the_resolution_that_is_stated(count: int, resolution: int) -> None:
    made = axes([2] * count, [index % 2 for index in range(count)])
    design = FractionalDesign(made, resolution)
    columns = list(zip(*design.signs, strict=True))
    assert design.signs[0] == (1,) * count
    assert cells(design)[0] == tuple(axis.baseline.label for axis in made)
    assert all(sum(column) == 0 for column in columns)
    assert all(sum(a * b for a, b in zip(*pair, strict=True)) == 0 for pair in itertools.combinations(columns, 2))
    assert math.log2(design.size).is_integer()
    stated = design.stated()["resolution"]
    # Up to that resolution no product of columns is constant, and at it one is.
    words = {
        length
        for length in range(1, count + 1)
        for chosen in itertools.combinations(columns, length)
        if len({math.prod(signs) for signs in zip(*chosen, strict=True)}) == 1
    }
    assert stated == min(words, default=None)
    assert stated is None or stated >= resolution
    assert (stated is None) == (design.size == 2**count)


@pytest.mark.parametrize(
    ("count", "wanted", "runs", "resolution", "aliases"),
    [
        (3, 3, 4, 3, [["a", "b:c"], ["b", "a:c"], ["c", "a:b"]]),
        (4, 3, 8, 4, [["a:b", "c:d"], ["a:c", "b:d"], ["a:d", "b:c"]]),  # IV takes no more runs than III
        (4, 4, 8, 4, [["a:b", "c:d"], ["a:c", "b:d"], ["a:d", "b:c"]]),
        (5, 5, 16, 5, []),
        (6, 5, 32, 6, []),
        (3, 4, 8, None, []),
    ],
)
def test_known_fractions(count: int, wanted: int, runs: int, resolution: int | None, aliases: list[list[str]]) -> None:
    stated = FractionalDesign(axes([2] * count), wanted).stated()
    assert stated == {"resolution": resolution, "runs": runs, "full": 2**count, "aliases": aliases}


def test_seven_factors_in_sixteen_runs_are_of_resolution_four() -> None:
    stated = FractionalDesign(axes([2] * 7), 4).stated()
    assert (stated["runs"], stated["resolution"]) == (16, 4)
    # Of the 21 two-way interactions each is mixed up with two others, and no main effect with any.
    assert [len(group) for group in stated["aliases"]] == [3] * 7
    assert all(":" in effect for group in stated["aliases"] for effect in group)


def test_a_fraction_that_there_is_not_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(count: int, resolution: int) -> None:
        raise ValueError(f"no design with {count} factors at resolution {resolution}; use fewer")

    monkeypatch.setattr("pydoe.fracfact_by_res", none)
    assert problems(write_many(tmp_path, {"a": 2, "b": 2}, "design: fractional")) == [
        "G211 16:9 there is no such fraction: no design with 2 factors at resolution 4 | "
        "take a lower resolution, or fewer factors"
    ]


def test_thirty_factors_of_two_levels_are_refused_before_an_arm_is_made(tmp_path: Path) -> None:
    path = write_many(tmp_path, {f"f{index}": 2 for index in range(30)}, "design: full")
    path.write_text(path.read_text().replace("seeds: 6", "seeds: 1"))
    tracemalloc.start()
    with pytest.raises(RefusedError) as caught:
        load(path)
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()
    assert str(caught.value) == (
        "refused: the design `full` makes 1,073,741,824 arms, with 1 seed each 1,073,741,824 trials, and "
        "`budget.max_trials` is 10,000\n"
        "  = help: smaller designs: `one_at_a_time` 31, `pairs` 466, `fractional` 64 trials"
    )


def test_trials_are_what_is_counted(tmp_path: Path) -> None:
    path = write_many(tmp_path, {"a": 3, "b": 4}, "design: full")
    text = path.read_text().replace("steps: 20", "steps: 20, max_trials: 71")
    path.write_text(text)
    with pytest.raises(RefusedError) as caught:
        load(path)
    assert str(caught.value) == (
        "refused: the design `full` makes 12 arms, with 6 seeds each 72 trials, and `budget.max_trials` is 71\n"
        "  = help: smaller designs: `one_at_a_time` 36 trials"
    )
    path.write_text(text.replace("max_trials: 71", "max_trials: 72"))
    assert len(load(path).grid.arms) == 12


def test_a_list_needs_arms_and_only_a_list_has_them(tmp_path: Path) -> None:
    needs = ["G211 15:9 `design: list` needs `arms` | write `arms: [{FACTOR: LEVEL, …}, …]`"]
    assert problems(write_many(tmp_path, {"a": 2}, "design: list")) == needs
    assert problems(write_many(tmp_path, {"a": 2}, "design: list", "arms: []")) == needs
    assert problems(write_many(tmp_path, {"a": 2}, "arms: [{a: 1}]")) == [
        "G211 15:1 `arms` belongs to `design: list`, and the design is `one_at_a_time` | None"
    ]


def test_what_is_wrong_in_a_list_of_arms_is_said_at_once(tmp_path: Path) -> None:
    arms = "arms: [{a: 1, b: 0}, {a: 1}, {b: 5}, {c: 0}, {b: 0}, {}]"
    assert problems(write_many(tmp_path, {"a": 2, "b": 2}, "design: list", arms)) == [
        "G213 17:22 `arms[1]` is the same arm as `arms[0]` | None",
        "G203 17:34 `b` has no level `5` | its levels are 0, 1",
        "G205 17:39 no factor is called `c` | there is: a, b",
        "G213 17:54 `arms[5]` is the same arm as `arms[4]` | None",
    ]


def test_the_baseline_may_be_in_a_list(tmp_path: Path) -> None:
    assert names(write_many(tmp_path, {"a": 2}, "design: list", "arms: [{a: 1}, {a: 0}]")) == ["baseline", "a=1"]
