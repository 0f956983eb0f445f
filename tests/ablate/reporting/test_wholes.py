"""What the report says of a design as a whole: ablation paths, Shapley shares, analysis of variance."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from ablate.analysis import ablation, anova
from ablate.analysis.results import Results
from ablate.reporting import wholes, write
from ablate.reporting.answers import forest_rows
from ablate.reporting.effects import rows_of
from ablate.reporting.figures.waterfall import waterfall
from ablate.reporting.study import Study
from ablate.slots import Section
from tests.study_maker import HOSTILE, make_study, noise

TWO: dict[str, list[Any]] = {"a": ["x", "y"], "b": ["p", None]}


def study(folder: Path, **options: Any) -> Study:
    return Study(Results(make_study(folder / "study", **({"seeds": 3, "steps": 20} | options))))


def section(page: str, kind: str) -> str:
    """One section of a page, as plain text."""
    found = re.search(rf'<section[^>]*id="{kind}".*?</section>', page, flags=re.S)
    return html.unescape(re.sub(r"<[^>]+>", " ", found.group())) if found else ""


def test_a_path_is_a_sentence_and_a_waterfall(tmp_path: Path, sections: list[Section]) -> None:
    made = study(tmp_path, design="leave_one_out")
    text = " ".join(section(write(made.results, sections).read_text("utf-8"), "ablation-path").split())
    path = made.results.ablation()
    assert ablation.sentence(made.plan, path) in text
    assert "Each part begins where the last one ends. Intervals are of 95%" in text
    assert "simultaneous over the 5 arms planned; of the sum and of the difference each its own." in text
    bars = wholes.path_fall(made, path).bars
    assert [bar.name for bar in bars[-3:]] == ["sum of the parts", "whole − sum", "all removed"]
    assert bars[3].end == pytest.approx(bars[4].end)
    assert bars[5].end == pytest.approx(bars[6].end)
    assert [bar.effect for bar in bars[:4]] == pytest.approx(path["effect"].tolist()[:4])


@pytest.mark.parametrize(("design", "called"), [("leave_one_out", "all removed"), ("add_one", "all added")])
def test_the_arm_of_all_changes_is_called_so(tmp_path: Path, design: str, called: str) -> None:
    made = study(tmp_path, design=design, factors=TWO)
    assert [arm.label for arm in made.arms] == ["baseline", "a=y", "b=null", called]
    assert called in [row.name for row in forest_rows(made)]
    one = study(tmp_path / "one", design=design, factors={"a": ["x", "y"]})
    assert [arm.label for arm in one.arms] == ["baseline", "a=y"]


def test_a_path_without_a_sum_stacks_nothing_and_says_why(tmp_path: Path, sections: list[Section]) -> None:
    made = study(tmp_path, design="add_one", factors=TWO, diverged={("a=y", seed) for seed in range(3)})
    text = " ".join(section(write(made.results, sections).read_text("utf-8"), "ablation-path").split())
    assert "Whether the 2 parts add up cannot be said: a=y diverged in 3 seeds." in text
    assert "Each part begins" not in text
    assert "Shaded" not in text
    fall = wholes.path_fall(made, made.results.ablation())
    assert [bar.start for bar in fall.bars] == [0.0] * 5
    assert [bar.text for bar in fall.bars[:1]] == ["✕ 3 of 3 seeds diverged"]
    assert fall.middle is None


def test_a_path_of_parts_of_other_seeds_stacks_nothing(tmp_path: Path) -> None:
    made = study(tmp_path, design="add_one", factors=TWO, failed={("a=y", 0)})
    path = made.results.ablation()
    assert [bar.start for bar in wholes.path_fall(made, path).bars[:2]] == [0.0, 0.0]
    assert "Each part begins" not in wholes.path_caption(made, path)


@pytest.mark.parametrize("options", [{}, {"design": "full"}, {"design": "add_one", "factors": {"a": [0, 1]}}])
def test_there_is_no_section_without_a_path(tmp_path: Path, sections: list[Section], options: dict[str, Any]) -> None:
    page = write(study(tmp_path, **options).results, sections).read_text("utf-8")
    assert 'id="ablation-path"' not in page


def test_shares_in_the_page_are_those_of_the_frame(tmp_path: Path, sections: list[Section]) -> None:
    made = study(tmp_path, design="full")
    frame = made.results.shapley()
    table = wholes.shares_table(made, frame)
    for record, row in zip(table.records, rows_of(frame), strict=True):
        assert record["effect"] == f"{row['effect']:+.3f}"
        assert record["share"] == f"{row['share']:.1f}"
    assert "corner" not in [column.key for column in table.shown()]
    text = " ".join(section(write(made.results, sections).read_text("utf-8"), "factors").split())
    assert "The intervals hold together at 95% for the 4 shares (Bonferroni)." in text
    assert anova.how(made.plan, made.trials) in text


def corners(name: str, levels: Mapping[str, Any], seed: int) -> float:
    return float(0.1 * levels["a"] + 0.2 * levels["b"]) + noise(name, seed)


def test_of_many_corners_it_is_said_what_is_cut_and_what_is_missing(tmp_path: Path) -> None:
    factors = {"a": list(range(6)), "b": list(range(4))}
    made = study(tmp_path, design="full", factors=factors, outcomes=corners, seeds=2, holes={"a=1, b=1": "no"})
    note = wholes.shares_note(made, made.results.shapley())
    assert "given are the first 12 corners of 15, in the plan's order. The figure has the first 6." in note
    assert note.endswith("Not computed of a=1, b=1: not in the plan: a=1, b=1.")
    falls = wholes.share_falls(made, made.results.shapley())
    assert [fall.title for fall in falls] == ["a=1, b=2", "a=1, b=3", "a=2, b=1", "a=2, b=2", "a=2, b=3", "a=3, b=1"]
    left_out = [record["left_out"] for record in wholes.shares_table(made, made.results.shapley()).records]
    assert [text for text in left_out if text] == ["not in the plan: a=1, b=1"]


def test_the_table_of_the_analysis_of_variance_is_the_frame(tmp_path: Path) -> None:
    made = study(tmp_path, design="full", factors=TWO, holes={"a=y, b=null": "they cannot work together"})
    table, frame = wholes.anova_table(made), made.results.anova()
    assert [record["term"] for record in table.records] == list(frame["term"])
    lost = table.records[3]
    assert (lost["term"], lost["F"], lost["p"]) == ("a:b", "", "")
    assert lost["left_out"].startswith("it cannot be told apart")
    for record, row in zip(table.records[:3], rows_of(frame), strict=False):
        assert record["df"] == str(row["df"])
        assert float(record["F"]) == pytest.approx(row["F"], rel=0.01)


def test_hostile_names_are_text(tmp_path: Path, sections: list[Section]) -> None:
    factors: dict[str, list[Any]] = {HOSTILE: ["a", "b"], "C(x)": ["a", None]}
    for design, kind in (("leave_one_out", "ablation-path"), ("full", "factors")):
        made = study(tmp_path / design, design=design, factors=factors, seeds=2)
        page = write(made.results, sections).read_text("utf-8")
        assert "<script>alert" not in page
        assert "C(x)" in section(page, kind)


def test_the_same_study_draws_the_same_waterfall(tmp_path: Path) -> None:
    made = study(tmp_path, design="leave_one_out")
    fall = wholes.path_fall(made, made.results.ablation())
    figure = waterfall(made, [fall], wholes.path_label(made))
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    widths = [patch.get_width() for patch in axes.patches]  # type: ignore[attr-defined]
    assert widths == pytest.approx([bar.effect for bar in fall.bars])
