"""Trials that were made with other code are said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ablate.analysis.code import other_code
from ablate.records.layout import StudyFolder
from ablate.records.sealing import write_json


def component(source: str, kind: str = "mine") -> dict[str, Any]:
    return {"slot": "norm", "kind": kind, "origin": "./mine.py", "version": 1, "source": source}


def test_a_sealed_trial_whose_components_file_has_changed_is_counted(tmp_path: Path) -> None:
    study = StudyFolder(tmp_path)
    for id, source in [("a", "old"), ("b", "old"), ("c", "new")]:
        study.trial(id).path.mkdir(parents=True)
        write_json(study.trial(id).result, {"components": [component(source), component("same", "other")]})
    plan = {
        "arms": [{"id": "arm", "components": [component("new"), component("same", "other")]}],
        "trials": [{"id": id, "arm": "arm"} for id in ("a", "b", "c", "not run yet")],
    }
    assert list(other_code(plan, tmp_path)) == [
        "2 trials were made with other code of the norm mine (./mine.py) than it has now, and kept; "
        "raising the component's version runs them anew."
    ]
