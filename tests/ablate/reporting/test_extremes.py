"""Reports of studies at the edge of what a plan and a record may hold; a warning would be an error."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ablate.analysis.results import Results
from ablate.records.layout import StudyFolder, read_json
from ablate.records.sealing import write_json
from ablate.reporting import write
from ablate.reporting.answers import sentences
from ablate.reporting.study import Study
from ablate.slots import Section
from ablate.training.first_bad import OUT_OF_TIME
from tests.study_maker import make_study


def test_a_report_needs_none_of_what_a_plan_may_lack(tmp_path: Path, sections: list[Section]) -> None:
    study = StudyFolder(make_study(tmp_path / "study", seeds=2, steps=20, factors={"ratio": [4, 1]}))
    plan = json.loads(study.plan.read_text(encoding="utf-8"))
    del plan["git"], plan["data"]["facts"], plan["vocabulary"]
    plan["components"][0]["source"] = None
    for arm in plan["arms"]:
        del arm["parameters"]["non_embedding"]
        arm["tokens"] = 0
    study.plan.write_text(json.dumps(plan), encoding="utf-8")
    text = write(Results(study.path), sections).read_text(encoding="utf-8")
    assert "no git commit" in text
    assert "<dt>vocabulary</dt>" not in text
    assert ">None<" not in text


def test_a_run_that_had_no_time_left_to_look_where_it_broke_says_so(tmp_path: Path, sections: list[Section]) -> None:
    lost = {("ratio=1", 0): "nonfinite"}
    study = StudyFolder(make_study(tmp_path / "study", seeds=2, steps=20, factors={"ratio": [4, 1]}, diverged=lost))
    results = Results(study.path)
    diverged = results.trials().query("end == 'diverged'")["trial"].item()
    record = read_json(study.trial(diverged).result)
    write_json(study.trial(diverged).result, record | {"first_bad": asdict(OUT_OF_TIME)})
    assert Results(study.path).trials().query("end == 'diverged'")["first_bad"].item() == "out_of_time"
    text = write(Results(study.path), sections).read_text(encoding="utf-8")
    why = "not known: `trial_timeout` left no time to look"
    assert f"ratio=1, seed 0: nonfinite at step 7; where it broke: {why}" in text
    assert f">{why}</span></td>" in text


def test_a_sentence_has_the_name_where_it_stands_and_not_where_it_is_found_first(bracketed: Path) -> None:
    found = {each.name: each for each in sentences(Study(Results(bracketed.parent)), "arm")}
    assert found.keys() == {"[x](javascript:alert(1))", "*y", "d", ""}
    assert found["d"].before == "1 of 4 seeds of "
    assert found["d"].after.startswith(" diverged; among those that finished it is ")
    assert found[""].before == found["*y"].before == ""
    assert found["*y"].after.startswith(" is ")


def test_values_whose_squares_no_float_holds_have_no_interval_and_no_spread(
    tmp_path: Path, sections: list[Section]
) -> None:
    def perplexity(name: str, levels: Mapping[str, Any], seed: int) -> float:
        return (1e300 if levels["x"] == "b" else 20.0) * (1 + seed)

    folder = make_study(tmp_path / "study", design="full", factors={"x": ["a", "b"], "y": [1, 2]}, seeds=3, steps=20,
                        metric="val/perplexity", smallest_effect=0.5, outcomes=perplexity)  # fmt: skip
    write(Results(folder), sections)
    for name in ("report.html", "report.json", "effects.csv", "effects.tex", "effects.md"):
        text = re.sub(r"<(style|script).*?</\1>", "", folder.joinpath(name).read_text(encoding="utf-8"), flags=re.S)
        assert "2e+300" in text
        assert not re.search(r"\binf\b|\d{30}", text)
    first = Results(folder).verdicts()[0]
    assert (first.word, first.effect, first.low) == ("undecided", 2e300, None)
    assert first.sentence.startswith("x=b is undecided against x=a: +2e+300 val/perplexity on average over 2 cells; ")


@pytest.mark.parametrize(
    ("smallest", "said"),
    [
        (1e-320, r"[+-]0\.\d{12} .*; smallest effect that matters 9\.99989e-321\.$"),
        (1e-20, r"[+-]0\.\d{12} .*; smallest effect that matters 1e-20\.$"),
        (1e300, r"[+-]0\.\d+ .* lies within ±1e\+300\.$"),
    ],
)
def test_no_effect_that_matters_is_too_small_or_too_large_to_be_said(
    tmp_path: Path, smallest: float, said: str
) -> None:
    folder = make_study(tmp_path / "study", factors={"ratio": [4, 1]}, seeds=3, steps=20, smallest_effect=smallest)
    (verdict,) = Results(folder).verdicts()
    assert re.search(said, verdict.sentence)
