"""The report of an experiment on several tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ablate
from tests.ablate.analysis.task_studies import RANGED, task_study
from tests.study_maker import HOSTILE


def report(folder: Path, tasks: dict[str, dict[str, Any]], **options: Any) -> str:
    def accuracy(levels: Any, seed: int) -> float:
        place = list(tasks).index(levels["task"])
        return 0.4 + 0.03 * place + 0.01 * seed - (0.05 + 0.01 * seed if levels["scale"] == "off" else 0.0)

    results = task_study(folder, tasks, accuracy=accuracy, seeds=2, **options)
    text = ablate.report(results).read_text(encoding="utf-8")
    _, _, section = text.partition('<section id="tasks"')
    return section.partition("</section>")[0]


def test_ten_tasks_are_shown_each_and_together(tmp_path: Path) -> None:
    section = report(tmp_path / "study", {f"task{number}": RANGED for number in range(10)})
    assert "The 10 levels of task are tasks" in section
    assert section.count("Δ val/accuracy") > 10  # a panel each, and the table
    assert "Performance profiles" in section
    assert 'id="task-summary"' in section
    assert "nan" not in section


@pytest.mark.parametrize("other", [RANGED, {**RANGED, "units": {"val/accuracy": "bits"}}])
def test_few_tasks_are_shown_each_and_it_is_said_why_not_together(tmp_path: Path, other: dict[str, Any]) -> None:
    section = report(tmp_path / "study", {"copy": RANGED, HOSTILE: other}, diverged=[("scale=off, task=copy", 1)])
    assert "There is no summary over tasks: with 2 it would say more" in section
    assert 'id="task-summary"' not in section
    assert "<script>alert" not in section


def test_one_task_has_no_such_section(tmp_path: Path) -> None:
    assert not report(tmp_path / "study", {"copy": RANGED})
