"""The files for programs and for notes."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ablate.analysis.results import Results
from tests.study_maker import HOSTILE

PAPER = r"""\documentclass{{article}}
\usepackage{{booktabs,graphicx}}
\begin{{document}}
{tables}
\end{{document}}
"""


def found(report: Path) -> dict[str, Any]:
    """What report.json says."""
    told: dict[str, Any] = json.loads(report.with_name("report.json").read_text(encoding="utf-8"))
    return told


@pytest.mark.parametrize("which", ["quickstart", "full", "interim", "hostile"])
def test_the_jsons_numbers_are_those_of_the_csv(which: str, request: pytest.FixtureRequest) -> None:
    report = request.getfixturevalue(which)
    text = report.with_name("effects.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    told = found(report)["effects"]
    assert len(rows) == len(told)
    for row, effect in zip(rows, told, strict=True):
        assert list(row) == list(effect)
        for key, value in row.items():
            if not value:
                assert effect[key] is None
            elif isinstance(effect[key], str):
                assert effect[key] == value
                assert key in ("kind", "metric", "name", "arm", "verdict", "left_out") or key.startswith("factor.")
            else:
                assert effect[key] == float(value)


def test_json_tells_what_was_asked_and_answered(interim: Path) -> None:
    told, results = found(interim), Results(interim.parent)
    assert told["name"] == "quickstart"
    assert told["complete"] is False
    assert told["objective"] == {
        "metric": "val/loss", "unit": "nats", "goal": "min", "smallest_effect": 0.02,
        "secondary": ["val/bits_per_char"],
    }  # fmt: skip
    assert told["counts"] == results.counts()
    assert [each["sentence"] for each in told["verdicts"]] == [each.sentence for each in results.verdicts()]
    assert {each["arm"] for each in told["verdicts"]} <= {arm["id"] for arm in results.plan["arms"]}
    assert told["caveats"] == results.caveats()
    assert told["predictions"] == []


def test_the_level_null_is_a_text_and_an_absent_factor_is_null(hostile: Path) -> None:
    levels = [row["factor.x<b>'\""] for row in found(hostile)["effects"] if row["kind"] == "arm"]
    assert levels.count("(null)") == 1
    assert None not in levels


def test_markdown_has_every_table_and_no_markup_of_others(quickstart: Path, hostile: Path) -> None:
    text = quickstart.with_name("effects.md").read_text(encoding="utf-8")
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert heads == [
        "# quickstart", "## Arms: effects on val/loss (nats)", "## Secondary, without a verdict: val/bits_per_char",
    ]  # fmt: skip
    assert "| placement=post |" in text
    assert "\\<script\\>" in hostile.with_name("effects.md").read_text(encoding="utf-8")


def test_a_name_makes_no_link_in_markdown(bracketed: Path) -> None:
    assert r"| [x\](javascript:alert(1)) |" in bracketed.with_name("effects.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("which", ["quickstart", "full", "hostile", "bracketed"])
def test_the_tables_compile(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    assert shutil.which("pdflatex"), "this test compiles effects.tex: install texlive-latex-base and booktabs"
    report = request.getfixturevalue(which)
    tables = report.with_name("effects.tex").read_text(encoding="utf-8")
    assert HOSTILE[:8] not in tables
    boxed = tables.replace(r"\begin{tabular}", r"\resizebox{\linewidth}{!}{\begin{tabular}")
    (tmp_path / "paper.tex").write_text(
        PAPER.format(tables=boxed.replace(r"\end{tabular}", r"\end{tabular}}")), "utf-8"
    )
    ran = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path, check=False, capture_output=True, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout.decode("utf-8", "replace")[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 1000
