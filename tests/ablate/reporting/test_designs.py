"""The report of every design: arms with several changes, factors that are no part of an arm, and excluded cells."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ablate.analysis.results import Results
from ablate.reporting import cells, write
from ablate.reporting.answers import forest_rows
from ablate.reporting.effects import effects_csv, effects_latex, secondary_table
from ablate.reporting.factors import level_means
from ablate.reporting.figures import curves, seeds
from ablate.reporting.provenance import arms, facts
from ablate.reporting.study import Study
from ablate.reporting.trials import trials_csv, trials_table
from ablate.slots import Section
from tests.study_maker import make_study

CORE: dict[str, list[Any]] = {"core": ["attention", "lstm"], "heads": [4, None], "norm": ["layer", "rms"]}
CONDITIONS = {"heads": ("core", "attention")}
LISTED = {"both": {"placement": "post", "scale": "off"}, "bare": {"residual": "none"}, "short": {"ratio": 2}}


def values(name: str, levels: Mapping[str, Any], seed: int) -> float:
    """1, plus 0.3 for an LSTM, plus 0.1 for null heads, plus 0.2 for rms; and 0.01 a seed."""
    lstm, null = levels.get("core") == "lstm", "heads" in levels and levels["heads"] is None
    return 1 + 0.3 * lstm + 0.1 * null + 0.2 * (levels.get("norm") == "rms") + 0.01 * seed


def study(folder: Path, **options: Any) -> Study:
    return Study(Results(make_study(folder / "study", **({"seeds": 3, "steps": 40} | options))))


def conditional(folder: Path, design: str = "full", **options: Any) -> Study:
    return study(folder, design=design, factors=CORE, conditions=CONDITIONS, outcomes=values, **options)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"design": "leave_one_out"}, ["residual=none", "residual=none, scale=off, placement=post, ratio=1"]),
        ({"design": "add_one"}, ["scale=off", "residual=none, scale=off, placement=post, ratio=1"]),
        ({"design": "pairs"}, ["placement=post", "placement=post, scale=off"]),
        ({"design": "list", "listed": LISTED}, ["both", "bare"]),
        ({"design": "fractional"}, ["residual=none", "ratio=1"]),
        (
            {"design": "full", "factors": CORE, "conditions": CONDITIONS, "outcomes": values},
            ["core=lstm", "heads=null"],
        ),
        ({"design": "one_at_a_time", "factors": CORE, "conditions": CONDITIONS}, ["core=lstm", "heads=null"]),
    ],
)
def test_every_design_has_a_report(
    tmp_path: Path, sections: list[Section], options: dict[str, Any], names: list[str]
) -> None:
    results = Results(make_study(tmp_path / "study", seeds=3, steps=40, **options))
    page = write(results, sections).read_text(encoding="utf-8")
    sentences = {verdict.name: verdict.sentence for verdict in results.verdicts()}
    assert set(names) <= set(sentences)
    assert all(f"<strong>{name}</strong>" in page for name in names)
    assert len(forest_rows(Study(results))) == len(sentences)


def test_a_factor_that_is_no_part_of_an_arm_is_a_dash_and_null_is_null(tmp_path: Path) -> None:
    made = conditional(tmp_path, "one_at_a_time", seeds=1)
    table = trials_table(made)
    heads = next(column for column in table.columns if column.title == "heads")
    shown = {record["name"]: str(table.cell(heads, record)) for record in table.records}
    assert shown["core=lstm"] == '<span role="img" aria-label="not part of the arm">–</span>'
    assert shown["heads=null"] == '<span class="text">(null)</span>'
    for text in (trials_csv(made), effects_csv(made)):
        rows = {row["name"]: row for row in csv.DictReader(io.StringIO(text)) if row.get("kind", "arm") == "arm"}
        assert (rows["core=lstm"]["factor.heads"], rows["heads=null"]["factor.heads"]) == ("", "(null)")


def test_labels_tell_null_from_absence(tmp_path: Path) -> None:
    factors: dict[str, list[Any]] = {"core": ["lstm", "attention"], "heads": [None, 4]}
    made = study(tmp_path, design="full", factors=factors, conditions=CONDITIONS, seeds=1)
    assert [arm.label for arm in made.arms] == ["baseline", "core=attention, heads=null", "core=attention, heads=4"]


def test_the_grid_has_a_row_for_arms_without_a_factor(tmp_path: Path) -> None:
    holes = {"core=attention, heads=null, norm=rms": "cannot work"}
    grid = cells.grid(conditional(tmp_path, holes=holes))
    assert grid is not None
    assert grid.row_factors == ["core", "heads"]
    assert [[head.text for head in row.heads] for row in grid.rows] == [["attention", "4"], ["", "null"], ["lstm", "–"]]
    assert [[cell.text for cell in row.cells] for row in grid.rows] == [
        ["1.010", "1.210"], ["1.110", "excluded"], ["1.310", "1.510"]
    ]  # fmt: skip
    assert grid.dashes


def test_the_grid_says_why_there_is_no_arm(tmp_path: Path) -> None:
    factors = {key: CORE[key] for key in ("core", "norm", "heads")}
    made = study(tmp_path, design="full", factors=factors, conditions=CONDITIONS, outcomes=values, seeds=1)
    grid = cells.grid(made)
    assert grid is not None
    assert [[head.text for head in row.cells] for row in grid.heads] == [["4", "null", "–"]]
    rows = {
        row.heads[0].text or row.heads[1].text: [(cell.text, cell.title) for cell in row.cells] for row in grid.rows
    }
    assert rows["attention"][2] == ("–", "heads: part of every arm here")
    assert rows["lstm"][0] == ("–", "heads: no part of the arm here")


def test_level_means_are_over_the_arms_that_have_the_factor(tmp_path: Path) -> None:
    made = conditional(tmp_path, seeds=1)
    # Heads: attention with either norm. Core: the LSTM stands for 4 and null heads, with either norm.
    heads, core = level_means(made, ["heads"]), level_means(made, ["core"])
    assert heads.iloc[0].tolist() == [pytest.approx(1.1), pytest.approx(1.2)]
    assert core.iloc[0].tolist() == [pytest.approx(1.15), pytest.approx(1.4)]
    both = level_means(made, ["core", "heads"])
    assert both.columns.equals(pd.MultiIndex.from_tuples([("attention", "4"), ("attention", "null")]))


def test_the_dots_of_an_effect_are_of_its_own_cells(tmp_path: Path) -> None:
    rows = {row.name: row for row in forest_rows(conditional(tmp_path))}
    assert list(rows["core=lstm"].seeds) == [pytest.approx(0.25)] * 3
    assert list(rows["heads=null"].seeds) == [pytest.approx(0.1)] * 3
    holes = {"core=attention, heads=null, norm=rms": "cannot work"}
    lacking = {row.name: row for row in forest_rows(conditional(tmp_path / "holes", holes=holes))}
    assert list(lacking["heads=null"].seeds) == []


def test_a_fraction_has_main_effects_alone(tmp_path: Path, sections: list[Section]) -> None:
    made = study(tmp_path, design="fractional")
    assert cells.grid(made) is None
    kinds = {row["kind"] for row in csv.DictReader(io.StringIO(effects_csv(made)))}
    assert kinds == {"arm", "main effect", "secondary"}
    assert [line for line in effects_latex(made).splitlines() if line.startswith("%")] == [
        "% Main effects: effects on val/loss (nats)",
        "% Arms, each against the baseline: effects on val/loss (nats)",
        "% Secondary, without a verdict: val/bits_per_char",
    ]
    assert effects_latex(made).count(r"\begin{tabular}") == 3
    means = level_means(made, ["scale"])
    off = [arm.id for arm in made.arms if arm.levels["scale"] == "off"]
    assert means["off"].tolist() == made.values[off].mean(axis=1).tolist()
    page = write(made.results, sections).read_text(encoding="utf-8")
    assert "None is reported: in a fraction of a design, interactions are mixed up" in page
    assert "All cells" not in page
    assert ("design", "fractional of resolution 4: 8 of 16 combinations (ratio=residual:scale:placement)") in facts(
        made
    )


def test_an_arm_of_another_task_has_no_difference_to_show(tmp_path: Path) -> None:
    made = study(tmp_path, design="list", listed=LISTED, own={"both": {"task": {"kind": "copy"}}})
    rows = {row.name: row for row in forest_rows(made)}
    assert (rows["both"].effect, list(rows["both"].seeds), rows["both"].pale) == (None, [], True)
    assert len(rows["bare"].seeds) == 3
    shown, empty = seeds.with_pairs(made, [arm for arm in made.arms if not arm.baseline])
    assert ([arm.name for arm in shown], [arm.name for arm in empty]) == (["bare", "short"], ["both"])
    assert "Of another task or unit, and not to be read against the baseline: both." in curves.caption(made, made.arms)


def test_an_arm_with_fewer_steps_has_not_dropped_out(tmp_path: Path) -> None:
    own = {"short": {"steps": 20, "matched": {"model.feed_forward.ratio": 2.5}, "activations": 3_200_000}}
    made = study(tmp_path, design="list", listed=LISTED, own=own)
    figure = curves.objective(made, made.arms)
    crosses = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "x"]
    assert crosses == []
    assert made.steps == 40
    assert ("budget", "20 to 40 steps of 1,024 tokens each") in facts(made)
    sizes = arms(made)
    short = next(record for record in sizes.records if record["name"] == "short")
    assert (short["steps"], short["matched"], short["activations"]) == ("20", "model.feed_forward.ratio=2.5", "3.2")
    assert {"steps", "matched", "activations"} <= {column.key for column in sizes.shown()}
    assert not {"steps", "matched", "activations"} & {column.key for column in arms(study(tmp_path / "two")).shown()}


def test_a_secondary_metric_that_a_trial_lacks_is_missing_and_shown(tmp_path: Path, sections: list[Section]) -> None:
    missing = {("bare", seed): ["val/bits_per_char"] for seed in range(3)}
    made = study(tmp_path, design="list", listed=LISTED, missing=missing)
    frame = made.results.effects("val/bits_per_char").set_index("name")
    assert (frame.loc["bare", "pairs"], frame.loc["both", "pairs"]) == (0, 3)
    assert made.effects.set_index("name").loc["bare", "pairs"] == 3
    page = write(made.results, sections).read_text(encoding="utf-8")
    first = secondary_table(made, "val/bits_per_char").records[0]
    mean = made.values_of("val/bits_per_char")[made.baseline.id].mean()
    assert (first["name"], first["mean"], first["effect"]) == ("baseline", f"{mean:.3f}", "")
    table = page[page.index('<table id="effects-secondary-0"') :].split("</table>")[0]
    bare = next(row for row in table.split("<tr>") if "bare" in row)
    assert bare.count('<span role="img" aria-label="none">–</span>') == 5
