"""Reports of studies at the edge of what a plan and a record may hold; a warning would be an error."""

from __future__ import annotations

import json
from pathlib import Path

from ablate.analysis.results import Results
from ablate.records.layout import StudyFolder
from ablate.reporting import write
from ablate.reporting.answers import sentences
from ablate.reporting.study import Study
from ablate.slots import Section
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


def test_a_sentence_has_the_name_where_it_stands_and_not_where_it_is_found_first(bracketed: Path) -> None:
    found = {each.name: each for each in sentences(Study(Results(bracketed.parent)), "arm")}
    assert found.keys() == {"[x](javascript:alert(1))", "*y", "d", ""}
    assert found["d"].before == "1 of 4 seeds of "
    assert found["d"].after.startswith(" diverged; among those that finished it is ")
    assert found[""].before == found["*y"].before == ""
    assert found["*y"].after.startswith(" is ")
