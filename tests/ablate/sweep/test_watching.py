from __future__ import annotations

import json
import os
import signal

import pytest

from ablate.records.layout import StudyFolder, read_json
from ablate.records.locks import Driver
from ablate.sweep import watching
from ablate.sweep.driver import sweep
from ablate.sweep.events import Event, Interrupted, TrialEnded, TrialProgress, TrialStarted
from ablate.sweep.watching import Bulletin, bulletin_of, running
from ablate_plugins.executor import Local
from tests.ablate.sweep.stub_study import STUB, Run, make_plan


def last(study: StudyFolder) -> Bulletin:
    """What the last driver has left."""
    found = bulletin_of(study, Driver(**read_json(study.progress)["driver"]))
    assert found is not None
    return found


def test_a_running_sweep_can_be_followed_from_its_folder(study: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "EVERY", 0.0)
    seen: list[Bulletin] = []

    def look(event: Event) -> None:
        if isinstance(event, TrialStarted | TrialProgress | TrialEnded):
            driver = running(study)
            assert driver is not None
            assert driver.pid == os.getpid()
            bulletin = bulletin_of(study, driver)
            assert bulletin is not None
            seen.append(bulletin)

    plan = make_plan([{"seconds": 0.03}, {"raises": "no"}])
    sweep(study, plan, Local(parallel=1), on_event=look, trainer=STUB)
    assert all(bulletin.end is None for bulletin in seen)
    first, *_ = seen
    (row,) = first.standing.rows
    assert (row.trial, row.arm, row.seed, row.attempt, row.steps) == ("t000", "baseline", 0, 1, 0)
    assert first.standing.counts.running == 1
    (row,) = next(each.standing.rows for each in seen if each.standing.rows and each.standing.rows[0].step)
    assert (row.steps, row.tokens_per_second) == (10, 1000.0)
    assert row.loss is not None
    assert running(study) is None
    end = last(study)
    assert (end.end, end.standing.rows, end.standing.counts.failed) == ("through", (), 1)
    assert [(news.number, news.ended, news.event["event"], news.event["trial"]) for news in end.news] == [
        (1, 1, "trial_ended", "t000"), (2, 2, "trial_ended", "t001"),
    ]  # fmt: skip
    assert end.news[1].event["failure"]["log_tail"][-1] == "RuntimeError: no"
    assert [path.name for path in study.path.iterdir() if "progress" in path.name] == ["progress.json"]


def test_the_file_says_how_the_sweep_ended(study: StudyFolder) -> None:
    plan = make_plan([{"seconds": 0.02, "checkpoint": 1000}], steps=100)

    def interrupt(event: Event) -> None:
        if isinstance(event, TrialProgress):
            os.kill(os.getpid(), signal.SIGTERM)

    def refuse(event: Event) -> None:
        if isinstance(event, TrialProgress):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sweep(study, plan, Local(parallel=1), on_event=refuse, trainer=STUB)
    assert last(study).end == "stopped"
    with pytest.raises(Interrupted):
        sweep(study, plan, Local(parallel=1), on_event=interrupt, trainer=STUB)
    assert last(study).end == "interrupted"
    plan["budget"]["disk"] = 1
    Run(study, plan)
    assert last(study).end == "exhausted"


def test_what_another_driver_wrote_or_cannot_be_read_is_nothing(study: StudyFolder) -> None:
    Run(study, make_plan([{}]))
    driver = last(study).driver
    assert bulletin_of(study, Driver(driver.pid, driver.started, "elsewhere")) is None
    study.progress.write_text(json.dumps({"schema": 1, "driver": 3}))
    assert bulletin_of(study, driver) is None
    study.progress.unlink()
    assert bulletin_of(study, driver) is None


def test_a_file_that_cannot_be_written_ends_no_sweep(study: StudyFolder) -> None:
    study.progress.mkdir(parents=True)
    assert Run(study, make_plan([{}] * 2)).outcome.counts.complete == 2
    assert [path.name for path in study.path.glob(".progress*")] == []


def test_no_more_than_the_latest_news_is_kept(study: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "KEPT", 2)
    Run(study, make_plan([{}] * 5))
    assert [news.number for news in last(study).news] == [4, 5]
