"""``ablate report`` of a study with predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.study_maker import make_study


def test_report_prints_what_was_predicted(ablate: Any, tmp_path: Path) -> None:
    told = [("placement=post", "worse", "Xiong et al. 2020, Fig. 2"), ("scale=off", "no_difference", ""),
            ("ratio=1", "diverged", "[bold]a\nhunch")]  # fmt: skip
    expect = [{"name": arm, "arm": arm, "effect": effect, "source": source} for arm, effect, source in told]
    study = make_study(tmp_path / "study", steps=20, expect=expect)
    lines = ablate("report", str(study)).stdout.splitlines()
    at = lines.index("predicted: placement=post worse (Xiong et al. 2020, Fig. 2): confirmed")
    assert lines[at + 1 : at + 3] == [
        "predicted: scale=off no difference: contradicted",
        "predicted: ratio=1 diverged ([bold]a hunch): contradicted",
    ]
    assert lines[at + 3].startswith("note: ")
    shown = json.loads(ablate("report", str(study), "--json").stdout)
    assert shown["predictions"][:2] == [
        {"name": "placement=post", "effect": "worse", "verdict": "worse", "judged": "confirmed",
         "source": "Xiong et al. 2020, Fig. 2"},
        {"name": "scale=off", "effect": "no_difference", "verdict": "worse", "judged": "contradicted", "source": ""},
    ]  # fmt: skip


def test_report_without_predictions_says_nothing_of_them(ablate: Any, tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", steps=20, seeds=2)
    assert "predicted" not in ablate("report", str(study)).stdout
    assert json.loads(ablate("report", str(study), "--json").stdout)["predictions"] == []


def test_a_study_that_takes_no_report_is_reported_elsewhere(ablate: Any, tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", steps=20, seeds=2)
    (study / "report.html").mkdir()
    (study / "trials.csv").mkdir()
    refused = ablate("report", str(study))
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"error[S113]: a report cannot be written to `{study}`: Is a directory\n")
    assert "  = help: write it elsewhere: `--out DIR`\n" in refused.stderr
    assert ablate("report", str(study), "--out", str(tmp_path / "out")).returncode == 0
    assert (tmp_path / "out" / "report.html").is_file()
