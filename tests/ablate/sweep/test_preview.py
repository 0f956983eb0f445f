from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ablate.errors import InputError
from ablate.records.layout import StudyFolder
from ablate.sweep.events import TrialStarted
from ablate.sweep.lock import driving
from ablate.sweep.preview import Tally, preview
from tests.ablate.sweep.stub_study import Run, make_plan


def files(study: StudyFolder) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in study.path.rglob("*")}


@pytest.fixture
def begun(study: StudyFolder) -> dict[str, Any]:
    """A plan of which two trials are done, one has failed, one has a checkpoint and two were never run."""
    plan = make_plan([{}, {"raises": "no"}, {}], seeds=2)
    Run(study, plan, limit=3)
    attempt = study.trial("t003").attempt(1)
    attempt.path.mkdir(parents=True)
    attempt.checkpoint.write_text("[5, 1]")
    return plan


def test_a_study_that_was_never_run_is_all_new_and_is_not_made(study: StudyFolder) -> None:
    seen = preview(study, make_plan([{}, {}], seeds=3))
    assert seen.arms == (("arm0", "baseline", Tally(anew=3, new=3)), ("arm1", "x=1", Tally(anew=3, new=3)))
    assert (seen.total.to_run, seen.total.planned, seen.refusal) == (6, 6, None)
    assert not study.path.exists()


def test_every_trial_is_counted_once_and_nothing_is_written(study: StudyFolder, begun: dict[str, Any]) -> None:
    before = files(study)
    seen = preview(study, begun)
    assert [tally for _, _, tally in seen.arms] == [
        Tally(results=1, resume=1), Tally(failed=1, anew=1), Tally(results=1, anew=1),
    ]  # fmt: skip
    assert files(study) == before
    assert seen.total.to_run == len(Run(study, begun).of(TrialStarted))


def test_what_a_call_is_restricted_to(study: StudyFolder, begun: dict[str, Any]) -> None:
    assert preview(study, begun, limit=1).total == Tally(results=2, resume=1, failed=1, held=2)
    assert preview(study, begun, only="x=1").total == Tally(results=2, anew=1, failed=1, held=2)
    assert preview(study, begun, seeds=[0]).total == Tally(results=2, failed=1, held=3)
    retried = preview(study, begun, retry="failed", limit=2)
    assert retried.total == Tally(results=2, resume=1, anew=1, held=2)
    assert len(Run(study, begun, retry="failed", limit=2).of(TrialStarted)) == 2
    with pytest.raises(InputError, match="no factor is called `y`"):
        preview(study, begun, only="y=1")


def test_what_is_new_against_the_last_plan(study: StudyFolder, begun: dict[str, Any]) -> None:
    grown = make_plan([{}, {"raises": "no"}, {}], seeds=3)
    assert preview(study, grown).total == Tally(results=2, resume=1, failed=1, anew=5, new=3)


def test_a_damaged_record_would_run_again_and_is_left_where_it_is(study: StudyFolder, begun: dict[str, Any]) -> None:
    study.trial("t000").result.write_text("{")
    before = files(study)
    assert preview(study, begun).total == Tally(results=1, resume=2, anew=2, failed=1)
    assert files(study) == before


def test_a_call_that_would_be_refused(study: StudyFolder, begun: dict[str, Any]) -> None:
    fewer = make_plan([{}])
    refused = preview(study, fewer).refusal
    assert refused
    assert refused.startswith("refused: the plan has changed and would leave out 1 result that ")
    assert preview(study, fewer, extend=True).refusal is None
    with driving(study):
        running = preview(study, begun).refusal
    assert running
    assert f"{study.path} is being run by process" in running
