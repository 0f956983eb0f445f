from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ablate
from ablate.cli.status import show_status
from ablate.errors import InputError
from ablate.records import frames
from ablate.records.layout import StudyFolder
from ablate.records.shapes import record_fault
from tests.study_maker import make_study

OTHERS = [None, True, -3, 2.5, "text", [], {}, [1], {"a": 1}, float("nan"), 10**400]
Place = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every place in a JSON value, of each list the first and the last item alone."""
    yield place
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*place, key))
    elif isinstance(value, list) and value:
        for index in sorted({0, len(value) - 1}):
            yield from places(value[index], (*place, index))


def without(value: Any, place: Place) -> Any:
    copied = copy.deepcopy(value)
    inner = copied
    for key in place[:-1]:
        inner = inner[key]
    del inner[place[-1]]
    return copied


def replaced(value: Any, place: Place, other: Any) -> Any:
    if not place:
        return other
    copied = copy.deepcopy(value)
    inner = copied
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = other
    return copied


def damaged(value: Any) -> Iterator[Any]:
    """Each place with another value, or gone."""
    for place, other in zip(places(value), itertools.cycle([*OTHERS, "gone"]), strict=False):
        yield without(value, place) if other == "gone" and place else replaced(value, place, other)


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    cell = {"levels": {"placement": "post", "ratio": 1}, "why": "too hot"}
    factors: dict[str, list[Any]] = {"placement": ["pre", "post"], "ratio": [4, 1]}
    return StudyFolder(make_study(tmp_path / "study", factors=factors, seeds=2, steps=20, excluded=[cell]))


def _rungs_fault(rungs: object) -> str | None:
    record = {"trial": "t", "arm_name": "a", "seed": 0, "levels": {}, "end": "complete", "reason": None, "attempt": 1}
    return record_fault({**record, "metrics": {}, "components": [], "rungs": rungs})


def outcome(study: StudyFolder) -> list[str]:
    """Read everything of a study; the codes of the error that this is, if it is one. No other exception is caught."""
    try:
        show_status(study.path, Path("runs"), as_json=False)
        results = ablate.results(study.path)
        results.effects()
        results.verdicts()
        results.caveats()
    except InputError as error:
        return [each.code for each in error.diagnostics]
    return []


def test_a_plan_damaged_anywhere_is_one_clear_error_or_none(study: StudyFolder) -> None:
    plan = json.loads(study.plan.read_text())
    plan["repeats"] = [{"id": "again", "arm": plan["baseline"], "seed": 0, "repeat": 1}]
    seen = []
    for value in damaged(plan):
        study.plan.write_text(json.dumps(value))
        seen += [outcome(study)]
    assert {tuple(codes) for codes in seen} == {(), ("S403",)}
    assert seen.count(["S403"]) > len(seen) / 4  # the rest is in options, which may be anything


def test_tuning_damaged_anywhere_is_one_clear_error_or_none(study: StudyFolder) -> None:
    sound = json.loads(study.plan.read_text())
    path = "training.optimizer.lr"
    arm = sound["arms"][1]
    tuned = {"arm": arm["id"], "tuned": {path: 1e-3}, "seed": 100}
    sound["tuning"] = {
        "method": "grid",
        "params": {path: {"log": [1e-4, 1e-2], "linear": None, "values": None, "n": 2}},
        "seeds": [100],
        "combinations": 2,
        "halving": {"reduction": 2, "rungs": 1},
        "runs": [{**tuned, "id": "aaaa", "number": 0}],
        "at_baseline": [{**tuned, "id": "bbbb", "seed": 0}],
        "widened": 1,
    }
    arm |= {"tuning": {"identity": "cccc", "params": [path]}, "tuned": {path: 1e-3}}
    seen = []
    for value, method in itertools.product([sound["tuning"], *damaged(sound["tuning"])], ["grid", "random"]):
        changed = {**value, "method": method} if isinstance(value, dict) and value.get("method") == "grid" else value
        study.plan.write_text(json.dumps({**sound, "tuning": changed}))
        seen.append(outcome(study))
    for value in damaged(arm["tuned"]):
        study.plan.write_text(json.dumps(replaced(sound, ("arms", 1, "tuned"), value)))
        seen.append(outcome(study))
    assert seen[0] == []
    assert {tuple(codes) for codes in seen} == {(), ("S403",)}
    assert seen.count(["S403"]) > len(seen) / 4


def test_a_trial_beside_the_others_has_a_seed_of_theirs(study: StudyFolder) -> None:
    plan = json.loads(study.plan.read_text())
    arm = plan["arms"][1]["id"]
    for more in (
        {"repeats": [{"id": "aaaa", "arm": plan["baseline"], "seed": 7, "repeat": 1}]},
        {"tuning": {"method": "grid", "params": {}, "seeds": [100], "combinations": 2, "halving": None,
                    "runs": [], "at_baseline": [{"id": "bbbb", "arm": arm, "seed": 7, "tuned": {}}]}},
    ):  # fmt: skip
        study.plan.write_text(json.dumps({**plan, **more}))
        assert outcome(study) == ["S403"]


def test_a_record_damaged_anywhere_is_one_clear_error_or_none(study: StudyFolder) -> None:
    result = next(study.trials()).result
    record = json.loads(result.read_text())
    seen = []
    for value in damaged(record):
        result.write_text(json.dumps(value))
        seen += [outcome(study)]
    assert {tuple(codes) for codes in seen} == {(), ("S403",)}


@pytest.mark.parametrize(
    ("place", "other", "why"),
    [
        (("arms", 1, "levels"), [], "`arms[1].levels` is not a mapping"),
        (("arms", 0, "parameters", "total"), "many", "`arms[0].parameters.total` is not a whole number"),
        (("arms", 0, "flops"), None, "`arms[0].flops` is not a finite number"),
        (("arms", 0, "flops"), math.inf, "`arms[0].flops` is not a finite number"),
        (("objective", "smallest_effect"), math.nan, "`objective.smallest_effect` is not a finite number"),
        (("data", "facts", "unigram_entropy"), math.inf, "`data.facts.unigram_entropy` is not a finite number"),
        (("arms", 1, "levels", "ratio"), math.inf, "`arms[1].levels.ratio` is not a scalar"),
        (("trials",), {}, "`trials` is not a list"),
        (("trials", 3, "arm"), "nobody", "`trials[3].arm` is none of its arms"),
        (("trials", 0, "id"), "../../elsewhere", "`trials[0].id` is no identity"),
        (("baseline",), "nobody", "`baseline` is none of its arms"),
        (("objective", "metric"), "val/joy", "`objective.metric` is none of its `units`"),
        (("objective", "goal"), "up", "`objective.goal` is neither `min` nor `max`"),
        (("budget", "steps"), 0, "`budget.steps` is not a whole number of at least 1"),
        (("schema",), 7, "its schema is not 1"),
    ],
)
def test_a_damaged_plan_names_the_file_the_place_and_the_remedy(
    study: StudyFolder, place: Place, other: Any, why: str
) -> None:
    study.plan.write_text(json.dumps(replaced(json.loads(study.plan.read_text()), place, other)))
    with pytest.raises(InputError) as raised:
        frames.read_plan(study.path)
    assert str(raised.value) == (
        f"error[S403]: `plan.json` cannot be read: {why}\n --> {study.plan}\n"
        "  = help: run the experiment again: `ablate run` writes the plan anew and repeats no sealed trial"
    )


def test_a_plan_that_lacks_something_inside_says_what(study: StudyFolder) -> None:
    study.plan.write_text(json.dumps(without(json.loads(study.plan.read_text()), ("arms", 2, "config", "training"))))
    with pytest.raises(InputError, match=r"cannot be read: it lacks `arms\[2\]\.config\.training`"):
        frames.read_plan(study.path)


def test_a_trial_is_planned_once(study: StudyFolder) -> None:
    plan = json.loads(study.plan.read_text())
    plan["trials"].append(plan["trials"][0])
    study.plan.write_text(json.dumps(plan))
    with pytest.raises(InputError, match=rf"`trials\[{len(plan['trials']) - 1}\]\.id` is that of another trial"):
        frames.read_plan(study.path)


def test_a_record_says_what_its_trial_was_at_its_rungs_or_is_damaged() -> None:
    sound = {"step": [[2, {"val/loss": 1.5}], [4, {"val/loss": None}]], "none": []}
    assert {_rungs_fault(rungs) for rungs in sound.values()} == {None}
    assert _rungs_fault(5) == "`rungs` is not a list"
    assert _rungs_fault([[1]]) == "`rungs[0]` is no pair"
    assert _rungs_fault([[2, {}], ["a", {}]]) == "`rungs[1][0]` is not a whole number"
    assert _rungs_fault([[2, 1.5]]) == "`rungs[0][1]` is not a mapping"
    assert _rungs_fault([[2, {"val/loss": "x"}]]) == "`rungs[0][1].val/loss` is not a number"


def test_a_file_that_is_nested_without_end_is_told(study: StudyFolder) -> None:
    study.plan.write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"`plan\.json` cannot be read: plan\.json is nested too deeply"):
        frames.read_plan(study.path)
