"""A study that is given more steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ablate.errors import RefusedError
from ablate.records.layout import StudyFolder, read_json
from ablate.slots import Schedule
from ablate.sweep.events import Growing, Reconciled, TrialStarted
from ablate.sweep.growing import COMPARED, agrees
from ablate.sweep.preview import Tally, preview
from ablate_plugins.schedule import ConstantSchedule, CosineSchedule, InverseSqrtSchedule, WsdSchedule
from tests.ablate.sweep.stub_study import Run, attempts, make_plan
from tests.ablate.sweep.stub_trainer import final

GOES_ON = "4 trials go on from step 10, where the same trial of fewer steps ended"


def plan_of(steps: int, *schedules: str, keeps: bool = True) -> dict[str, Any]:
    """A plan of an arm for each schedule under two seeds, whose trials differ from those of other steps in a letter."""
    plan = make_plan([{"keeps": keeps, "arm": name} for name in schedules], seeds=2, steps=steps)
    for arm, schedule in zip(plan["arms"], schedules, strict=True):
        arm["config"]["training"] = {"schedule": {"kind": schedule}}
        arm["id"] += f"-{steps}"
    for trial in plan["trials"]:
        trial["lineage"] = trial["id"]
        trial["id"] += f"-{steps}"
        trial["arm"] += f"-{steps}"
    return plan


def firsts(study: StudyFolder, plan: dict[str, Any]) -> list[int]:
    """The step at which each trial's last attempt began."""
    return [attempts(study.trial(trial["id"]))[-1][1] for trial in plan["trials"]]


def test_more_steps_go_on_from_where_fewer_ended(study: StudyFolder) -> None:
    Run(study, plan_of(10, "constant", "constant"))
    for steps, before in ((20, 10), (40, 20)):
        plan = plan_of(steps, "constant", "constant")
        seen = preview(study, plan)
        told = GOES_ON.replace("10", str(before))
        assert (seen.refusal, seen.growth, seen.total) == (None, (told,), Tally(grown=4, new=4))
        assert seen.total.to_run == 4
        run = Run(study, plan)
        assert [event.text for event in run.of(Growing)] == [told]
        assert firsts(study, plan) == [before] * 4
        for trial in plan["trials"]:
            record = read_json(study.trial(trial["id"]).result)
            assert record["metrics"] == {"val/loss": final(trial["seed"], steps)}
            assert record["lineage"] == trial["lineage"]
        again = Run(study, plan)
        assert (again.of(TrialStarted), again.of(Growing)) == ([], [])


def test_where_the_schedule_does_not_allow_it_the_call_is_refused_with_the_reason(study: StudyFolder) -> None:
    Run(study, plan_of(10, "constant", "cosine"))
    plan = plan_of(20, "constant", "cosine")
    with pytest.raises(RefusedError) as refused:
        Run(study, plan)
    assert str(refused.value) == (
        f"refused: the plan has changed and would leave out 2 results that `{study.path}` has\n"
        "  x=1 (2 results): budget.steps: 10 -> 20\n"
        "  = note: `cosine` lets no trial go on to more steps: its rate depends on the number of steps\n"
        "  = help: `--extend` keeps the old results on disk and runs the new ones;\n"
        "          or give the experiment another `name`; or undo the change"
    )
    assert preview(study, plan).refusal == str(refused.value)
    run = Run(study, plan, extend=True)
    assert [event.text for event in run.of(Growing)] == [GOES_ON.replace("4", "2")]
    assert firsts(study, plan) == [10, 0, 10, 0]
    assert len([folder for folder in study.trials() if folder.result.exists()]) == 8


def test_fewer_steps_are_a_change_as_any_other(study: StudyFolder) -> None:
    Run(study, plan_of(20, "constant"))
    with pytest.raises(RefusedError, match=r"baseline \(2 results\): budget.steps: 20 -> 10\n  = help"):
        Run(study, plan_of(10, "constant"))


def test_what_has_not_ended_yet_is_begun_anew_and_needs_no_leave(study: StudyFolder) -> None:
    plan = plan_of(10, "constant", "constant")
    Run(study, plan, limit=3)
    study.trial("t003-10").attempt(1).path.mkdir(parents=True)
    grown = plan_of(20, "constant", "constant")
    assert preview(study, grown).total == Tally(grown=3, anew=1, new=4)
    Run(study, grown)
    assert firsts(study, grown) == [10, 10, 10, 0]


def test_a_checkpoint_that_is_gone_or_empty_is_said_and_the_trial_trained_from_the_start(study: StudyFolder) -> None:
    Run(study, plan_of(10, "constant", "constant"))
    study.trial("t000-10").attempt(1).checkpoint.unlink()
    study.trial("t001-10").attempt(1).checkpoint.write_text("")
    grown = plan_of(20, "constant", "constant")
    told = ["3" + GOES_ON[1:], "1 trial from the start: the checkpoint of step 10 is no longer there"]
    assert preview(study, grown).growth == tuple(told)
    assert preview(study, grown).total == Tally(grown=3, anew=1, new=4)
    run = Run(study, grown)
    assert [event.text for event in run.of(Growing)] == told
    why = "the checkpoint of trial t001-10 could not be used, so it was trained from the start"
    assert [(event.trial, event.difference) for event in run.of(Reconciled)] == [("t001-20", why)]
    assert firsts(study, grown) == [0, 0, 10, 10]


def test_a_trial_that_was_interrupted_goes_on_from_its_own_checkpoint(study: StudyFolder, tmp_path: Path) -> None:
    Run(study, plan_of(10, "constant"))
    plan = plan_of(20, "constant")
    for arm in plan["arms"]:
        arm["config"]["model"] |= {"after": 6, "attempts": [1], "dies": "SIGKILL"}
    run = Run(study, plan)
    assert run.outcome.counts.complete == 2
    assert firsts(study, plan) == [15, 15]


class Stepped(Schedule):
    """A rate that is lowered once, late."""

    kind: str = "stepped"

    def factor(self, step: int, steps: int) -> float:
        """Half of the peak in the last step of a million."""
        return 0.5 if step == steps - 1 == 999_999 else 1.0


class Broken(Schedule):
    """A rate that cannot be told."""

    kind: str = "broken"

    def factor(self, step: int, steps: int) -> float:
        """Nothing."""
        raise ValueError


@pytest.mark.parametrize(
    ("schedule", "fewer", "more", "same"),
    [
        (ConstantSchedule(), 10, 20, True),
        (ConstantSchedule(warmup=5), 10, 20, True),
        (ConstantSchedule(warmup=0.1), 10, 20, False),
        (ConstantSchedule(warmup=0.1), 10, 12, True),  # both warm up in one step
        (InverseSqrtSchedule(warmup=4), 10, 20, True),
        (CosineSchedule(), 10, 20, False),
        (CosineSchedule(), 1, 20, False),
        (WsdSchedule(warmup=2, decay=0.2), 10, 20, False),
        (WsdSchedule(warmup=2, decay=0.0), 10, 20, True),
        (Stepped(), 1_000_000, 2_000_000, False),  # the last step is one of those that are looked at
        (ConstantSchedule(), COMPARED + 1, 10 * COMPARED, True),
        (Broken(), 10, 20, False),
    ],
)
def test_schedules_that_give_the_steps_that_are_done_the_same_rate(
    schedule: Schedule, fewer: int, more: int, same: bool
) -> None:
    assert agrees(schedule, fewer, more) is same
