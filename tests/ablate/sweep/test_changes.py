from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from ablate.errors import RefusedError
from ablate.records.layout import StudyFolder, read_json
from ablate.sweep.events import TrialStarted
from tests.ablate.sweep.stub_study import Run, make_plan

Plan = dict[str, Any]
HELP = (
    "\n  = help: `--extend` keeps the old results on disk and runs the new ones;"
    "\n          or give the experiment another `name`; or undo the change"
)


def changed(plan: Plan, change: Callable[[Plan], object], *arms: int) -> Plan:
    """The plan with other content, and with new identities of these arms and their trials (by default all)."""
    plan = copy.deepcopy(plan)
    change(plan)
    for number, arm in enumerate(plan["arms"]):
        if number in (arms or range(len(plan["arms"]))):
            for trial in plan["trials"]:
                if trial["arm"] == arm["id"]:
                    trial["id"] += "b"
                    trial["arm"] += "b"
            arm["id"] += "b"
    return plan


def refusal(study: StudyFolder, plan: Plan) -> str:
    before = study.plan.read_bytes(), study.experiment.read_bytes()
    with pytest.raises(RefusedError) as refused:
        Run(study, plan, source="new\n")
    assert (study.plan.read_bytes(), study.experiment.read_bytes()) == before
    assert refused.value.exit_code == 3
    return str(refused.value)


def test_another_number_of_steps_is_refused_and_said(study: StudyFolder) -> None:
    plan = make_plan([{}, {}], seeds=2)
    Run(study, plan, source="old\n")
    more = changed(plan, lambda plan: plan["budget"].update(steps=12))
    assert refusal(study, more) == (
        f"refused: the plan has changed and would leave out 4 results that `{study.path}` has\n"
        "  baseline (2 results): budget.steps: 10 -> 12\n"
        "  x=1 (2 results): budget.steps: 10 -> 12" + HELP
    )
    extended = Run(study, more, extend=True)
    assert [event.trial for event in extended.of(TrialStarted)] == ["t000b", "t001b", "t002b", "t003b"]
    assert len([folder for folder in study.trials() if folder.result.exists()]) == 8
    assert Run(study, more).of(TrialStarted) == []  # what was accepted is not asked again
    assert "budget.steps: 12 -> 10" in refusal(study, plan)


def test_every_kind_of_difference_is_named(study: StudyFolder) -> None:
    plan = make_plan([{}])
    arm = plan["arms"][0]
    arm["config"]["model"] = {"feed_forward": {"kind": "mlp", "ratio": 4.0}, "norm": {"kind": "layer", "eps": 1e-5}}
    arm["config"]["task"] = {"path": "a.txt"}
    arm["components"] = [{"slot": "norm", "kind": "mine", "origin": "./mine.py", "version": 1, "source": "0"}]
    arm["data"] = {"hash": "0"}
    Run(study, plan, source="old\n")

    def change(plan: Plan) -> None:
        new = plan["arms"][0]
        new["config"]["model"]["feed_forward"]["ratio"] = 2.0
        new["config"]["model"]["norm"] = {"kind": "rms", "eps": 1e-6}
        new["config"]["task"] = {"path": None}
        plan["diverged"]["patience"] = 7
        new["components"][0]["version"] = 2
        new["data"]["hash"] = "1"

    assert refusal(study, changed(plan, change)).splitlines()[1] == (
        "  baseline (1 result): model.feed_forward.ratio: 4.0 -> 2.0; model.norm: layer -> rms; "
        "task.path: a.txt -> null; diverged.patience: not there -> 7; data: the task's data changed; "
        "the norm mine: version 1 -> 2"
    )


def test_numbers_that_are_equal_and_of_another_type_differ(study: StudyFolder) -> None:
    plan = make_plan([{"ratio": 4}])
    Run(study, plan, source="old\n")
    other = changed(plan, lambda plan: plan["arms"][0]["config"]["model"].update(ratio=4.0))
    assert "baseline (1 result): model.ratio: 4 -> 4.0\n" in refusal(study, other)


def test_an_arm_that_left_the_grid_and_a_seed_that_is_planned_no_more(study: StudyFolder) -> None:
    plan = make_plan([{}, {}], seeds=3)
    Run(study, plan, source="old\n")
    fewer = copy.deepcopy(plan)
    del fewer["arms"][1]
    fewer["trials"] = [trial for trial in plan["trials"] if trial["arm"] == "arm0" and trial["seed"] == 0]
    assert refusal(study, fewer) == (
        f"refused: the plan has changed and would leave out 5 results that `{study.path}` has\n"
        "  x=1 (3 results): the arm is no longer in the grid\n"
        "  baseline (2 results): seeds 1, 2 no longer planned" + HELP
    )


def test_an_attempt_without_a_result_is_not_left_behind_either(study: StudyFolder) -> None:
    plan = make_plan([{"raises": "no"}, {}, {}])
    Run(study, plan, source="old\n", limit=2)
    fewer = copy.deepcopy(plan)
    fewer["arms"], fewer["trials"] = plan["arms"][1:], plan["trials"][1:]
    assert refusal(study, fewer) == (
        f"refused: the plan has changed and would leave out 1 unfinished trial that `{study.path}` has\n"
        "  baseline (1 unfinished): the arm is no longer in the grid" + HELP
    )
    never_run = copy.deepcopy(plan)
    never_run["arms"], never_run["trials"] = plan["arms"][:2], plan["trials"][:2]
    assert Run(study, never_run).of(TrialStarted) == []


def test_growth_and_other_names_pass_without_a_word(study: StudyFolder) -> None:
    plan = make_plan([{}, {}])
    Run(study, plan)
    grown = make_plan([{}, {}, {}])
    for arm in grown["arms"]:
        arm["levels"] = {"renamed": arm["levels"]["x"], "new": "factor"}
        arm["name"] = f"called differently {arm['id']}"
    assert [event.trial for event in Run(study, grown).of(TrialStarted)] == ["t002"]
    assert read_json(study.plan) == grown


@pytest.mark.parametrize("content", ["", "[]", "7", '{"trials": 3, "arms": []}', '{"arms": [{"id": "arm0"}]}', None])
def test_a_plan_that_cannot_be_read_leaves_nothing_behind_unsaid(study: StudyFolder, content: str | None) -> None:
    plan = make_plan([{}, {}])
    Run(study, plan, source="old\n")
    study.plan.unlink()
    if content is not None:
        study.plan.write_text(content)
    fewer = make_plan([{}])
    with pytest.raises(RefusedError) as refused:
        Run(study, fewer)
    assert "  x=1 (1 result): the arm is no longer in the grid\n" in str(refused.value)
    assert Run(study, plan).of(TrialStarted) == []
    assert read_json(study.plan) == plan


def test_many_arms_and_many_differences_are_counted(study: StudyFolder) -> None:
    plan = make_plan([{f"option{number}": number for number in range(9)}] * 12)
    Run(study, plan, source="old\n")

    def change(plan: Plan) -> None:
        for arm in plan["arms"]:
            arm["config"]["model"] = {key: value + 1 for key, value in arm["config"]["model"].items()}

    lines = refusal(study, changed(plan, change)).splitlines()
    assert len(lines) == 14
    assert lines[1].endswith("; model.option5: 5 -> 6; and 3 more differences")
    assert lines[11] == "  and 2 more arms"


def test_a_config_of_odd_shape_does_not_hide_its_arm(study: StudyFolder) -> None:
    plan = make_plan([{}, {}])
    Run(study, plan, source="old\n")
    more = changed(plan, lambda plan: plan["budget"].update(steps=12))
    for content in ["{", "[]", json.dumps({"arm": ["arm1"], "config": 3, "components": {}, "data": []})]:
        study.trial("t001").config.write_text(content)
        assert "  x=1 (1 result): its config.json cannot be read\n" in refusal(study, more)
    odd = {
        "arm": {},
        "config": {"model": 3, "steps": "many", "diverged": []},
        "components": [7],
        "data": "x",
        "seed": 0,
    }
    study.trial("t001").config.write_text(json.dumps(odd))
    assert "  x=1 (1 result): budget.steps: many -> 12; model: 3 -> {}; task: null -> {}; " in refusal(study, more)
