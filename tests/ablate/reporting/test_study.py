"""A study as the figures and tables take it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate.analysis.results import Results
from ablate.reporting import cells, flow
from ablate.reporting.answers import forest_caption, forest_rows, sentences, shown
from ablate.reporting.factors import level_means, levels_of, looks_of_levels
from ablate.reporting.figures import curves, factorial, forest
from ablate.reporting.figures.forest import Row, far_away
from ablate.reporting.palette import BASELINE, look
from ablate.reporting.study import MOST_ARMS, Study
from tests.study_maker import make_study

TWO = {"scale": ["on", "off"], "placement": ["pre", "post"]}


def values(name: str, levels: dict[str, str], seed: int) -> float:
    """One value a cell: 1, plus 0.1 for scale off, plus 0.3 for post, plus 1 for both; and 0.01 a seed."""
    off, post = levels["scale"] == "off", levels["placement"] == "post"
    return 1 + 0.1 * off + 0.3 * post + (off and post) + 0.01 * seed


def study(folder: Path, **options: object) -> Study:
    return Study(Results(make_study(folder / "study", **options)))  # type: ignore[arg-type]


def test_arms_are_named_in_short_by_what_they_change(tmp_path: Path) -> None:
    full = study(tmp_path, design="full", seeds=1, factors=TWO)
    assert [arm.label for arm in full.arms] == ["baseline", "placement=post", "scale=off", "scale=off, placement=post"]
    assert [arm.name for arm in full.arms][1] == "scale=on, placement=post"
    assert full.baseline.look.colour == BASELINE


def test_a_figure_of_many_arms_shows_the_largest_effects_and_says_so(tmp_path: Path) -> None:
    many = study(
        tmp_path, seeds=2, steps=20, factors={"a": list(range(40))},
        outcomes=lambda name, levels, seed: 1.0 + levels["a"] + 0.01 * seed,
    )  # fmt: skip
    arms, cut = many.chosen()
    assert [arm.levels["a"] for arm in arms] == [0, *range(40 - MOST_ARMS + 1, 40)]
    assert "23 arms of the largest effects, of 40 arms" in cut
    few = study(tmp_path / "few", seeds=2, steps=20)
    assert few.chosen() == (list(few.arms), "")


def test_level_means_average_over_the_other_factors(tmp_path: Path) -> None:
    full = study(tmp_path, design="full", seeds=2, factors=TWO, outcomes=values)
    assert levels_of(full, "scale") == ["on", "off"]
    one = level_means(full, ["scale"])
    # On: (1 + 1.3) / 2; off: (1.1 + 2.4) / 2; the second seed 0.01 more.
    assert one["on"].tolist() == [pytest.approx(1.15), pytest.approx(1.16)]
    assert one["off"].tolist() == [pytest.approx(1.75), pytest.approx(1.76)]
    both = level_means(full, ["placement", "scale"])
    assert both[("post", "off")].tolist() == [pytest.approx(2.4), pytest.approx(2.41)]


def test_levels_that_are_numbers_ascend_and_the_baselines_is_grey(tmp_path: Path) -> None:
    factors = {"depth": [4, 1, 2, 8], "scale": [False, True], "width": [2, 1, None]}
    full = study(tmp_path, design="full", seeds=1, steps=20, factors=factors)
    assert levels_of(full, "depth") == ["1", "2", "4", "8"]
    assert levels_of(full, "scale") == ["false", "true"]
    assert levels_of(full, "width") == ["2", "1", "null"]
    looks = looks_of_levels(full, "depth", 3)
    assert [level for level, style in looks.items() if style == look(0)] == ["4"]
    grid = cells.grid(full)
    assert grid is not None
    assert [row.heads[0].text for row in grid.rows if row.heads[0].span] == ["1", "2", "4", "8"]
    panel = factorial.main_effects(full).axes[0]
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["1", "2", "4", "8"]


def test_names_of_levels_are_whole_where_there_is_room(tmp_path: Path) -> None:
    names = ["independent_activation", "inhibited_expansion"]
    pair = study(tmp_path, design="full", seeds=1, steps=20, factors={"activation": names, "scale": ["on", "off"]})
    (panel,) = factorial.interactions(pair, pair.results.interactions()).axes
    assert [tick.get_text() for tick in panel.get_xticklabels()] == names


def test_the_closer_view_names_the_arms_that_it_does_not_show(tmp_path: Path) -> None:
    found = {"baseline": 1.7, "placement=post": 1.75, "scale=off": 1.8, "residual=none": 3.2, "ratio=1": 1.72}
    made = study(tmp_path, seeds=2, steps=100, outcomes=found | {"ratio=2": 1.71})
    assert [arm.label for arm in curves.left_out(made, made.arms)] == ["residual=none"]
    assert curves.caption(made, made.arms).endswith("The closer view leaves out residual=none.")
    late = curves.objective(made, made.arms).axes[1]
    low, high = late.get_ylim()
    assert low < 1.7
    assert 1.8 < high < 3.2


def test_an_arm_far_off_at_the_end_is_not_left_out_where_the_closer_view_shows_its_mean(tmp_path: Path) -> None:
    found = {"baseline": 1.7, "ratio=1": 1.71, "ratio=2": 1.735}
    made = study(tmp_path, seeds=2, steps=100, factors={"ratio": [4, 1, 2]}, outcomes=found, smallest_effect=0.005)
    assert far_away([0.01, 0.035], 2 * made.smallest) == 0.01
    # The seeds of the arms nearby begin their second half above where this arm's mean ends.
    assert "ratio=2" in [text.get_text() for text in curves.objective(made, made.arms).axes[1].texts]
    assert curves.left_out(made, made.arms) == []


def test_level_means_leave_out_seeds_and_cells_that_are_missing(tmp_path: Path) -> None:
    lost = {("scale=off, placement=post", 1)}
    one_lost = study(tmp_path, design="full", seeds=3, factors=TWO, outcomes=values, diverged=lost)
    assert level_means(one_lost, ["scale"]).index.tolist() == [0, 2]
    gone = {("scale=off, placement=post", seed) for seed in range(3)}
    cell_lost = study(tmp_path / "gone", design="full", seeds=3, factors=TWO, outcomes=values, diverged=gone)
    assert level_means(cell_lost, ["scale"])["off"].tolist() == [pytest.approx(1.1 + 0.01 * seed) for seed in range(3)]
    assert level_means(cell_lost, ["scale", "placement"]).empty


def test_the_grid_shows_every_cell_with_its_mean(tmp_path: Path) -> None:
    excluded = [{"levels": {"scale": "off", "placement": "post"}, "why": "cannot work"}]
    lost = {("scale=off, placement=pre", seed) for seed in range(2)}
    full = study(tmp_path, design="full", seeds=2, factors=TWO, outcomes=values, diverged=lost, excluded=excluded)
    grid = cells.grid(full)
    assert grid is not None
    assert grid.row_factors == ["scale"]
    assert [[head.text for head in row.cells] for row in grid.heads] == [["pre", "post"]]
    assert [[cell.text for cell in row.cells] for row in grid.rows] == [["1.005", "1.305"], ["diverged ✕2", "2.405"]]


def test_gradients_are_flagged_by_the_rule(tmp_path: Path) -> None:
    flags = {ratio.arm.name: ratio.flag for ratio in flow.ratios(study(tmp_path, seeds=2))}
    assert flags.pop("residual=none") == "vanishing"
    assert set(flags.values()) == {""}
    assert "1e-2" in flow.RULE
    assert "1e2" in flow.RULE


def test_the_forest_has_the_sentences_order_and_numbers(tmp_path: Path) -> None:
    one = study(tmp_path, seeds=4)
    rows, said = forest_rows(one), sentences(one, "arm")
    assert [row.name for row in rows] == [sentence.name for sentence in said]
    assert rows[0].name == "residual=none"
    for row, sentence in zip(rows, said, strict=True):
        assert row.text.split(" ", 1)[0] in sentence.after
        assert row.text.split(" ", 1)[1].strip("[]") in sentence.after
        assert len(row.seeds) == 4


def test_simple_effects_stand_under_their_main_effect(tmp_path: Path) -> None:
    full = study(tmp_path, design="full", seeds=4, factors=TWO, outcomes=values)
    rows = [(row.name, row.indent) for row in forest_rows(full)]
    assert rows == [
        ("placement=post", False), ("at scale=on", True), ("at scale=off", True),
        ("scale=off", False), ("at placement=pre", True), ("at placement=post", True),
    ]  # fmt: skip
    assert forest_rows(full)[1].effect == pytest.approx(0.3)
    assert list(forest_rows(full)[1].seeds) == [pytest.approx(0.3)] * 4


def test_what_cannot_be_computed_is_not_there(tmp_path: Path) -> None:
    rows = forest_rows(study(tmp_path, seeds=1))
    assert all(row.low is None and row.high is None and "[" not in row.text for row in rows)
    nothing = forest_rows(study(tmp_path / "nan", seeds=2, outcomes=lambda *_: float("nan")))
    assert all(row.effect is None and row.text == "" and row.diverged == 2 for row in nothing)


def test_effects_that_are_not_comparable_are_pale(tmp_path: Path) -> None:
    rows = forest_rows(study(tmp_path, seeds=3, diverged={("baseline", 0)}))
    assert all(row.pale for row in rows)


def test_many_sentences_wait_behind_a_line(tmp_path: Path) -> None:
    one = study(tmp_path, seeds=2)
    said = sentences(one, "arm")
    assert shown(said) == 5
    assert shown(said * 3) == 6


@pytest.mark.parametrize(
    ("reaches", "edge"),
    [
        ([0.03, 0.08, 0.11, 0.2, 1.5], 0.2),  # one is far away
        ([0.03, 0.08, 0.11, 0.2, 0.5], 0.5),  # none is
        ([0.05, 1.5], 0.05),
        ([0.05, 1.5, 1.6], 1.6),  # most are: then they are the scale
        ([0.001, 0.05], 0.05),  # below the least, nothing is small
        ([], 0.04),
    ],
)
def test_few_far_effects_do_not_squeeze_the_others(reaches: list[float], edge: float) -> None:
    assert far_away(reaches, 0.04) == pytest.approx(max(edge, 0.04))


def row(effect: float, spread: float | None = 0.01, seeds: tuple[float, ...] = ()) -> Row:
    low, high = (None, None) if spread is None else (effect - spread, effect + spread)
    return Row("arm", look(1), effect, low, high, seeds)


def test_the_axis_of_the_forest_leaves_a_quarter_of_the_effects_beyond_at_most(tmp_path: Path) -> None:
    made = study(tmp_path, seeds=2, steps=20)
    near = [row(0.05), row(0.06), row(0.07)]
    (axes,) = forest.forest(made, [*near, row(1.5)]).axes
    assert axes.get_xlim()[1] < 0.2
    (axes,) = forest.forest(made, [*near, row(1.5), row(1.6)]).axes
    assert axes.get_xlim()[1] > 1.6


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(0.05, seeds=(0.04, 0.06))], "mean, simultaneous 95% interval, a faint dot for each seed."),
        ([row(0.05, None)], "mean."),
        (
            [row(0.05), row(0.06), row(0.07), row(1.5, seeds=(1.4, 1.6))],
            "mean, simultaneous 95% interval. An arrow stands for an effect beyond the axis and its interval; the "
            "numbers are beside it. Seeds beyond the axis have no dot.",
        ),
    ],
)
def test_the_caption_of_the_forest_promises_what_is_drawn(tmp_path: Path, rows: list[Row], said: str) -> None:
    caption = forest_caption(study(tmp_path, seeds=2, steps=20), rows)
    assert caption == f"Difference to the baseline, paired by seed: {said}"
