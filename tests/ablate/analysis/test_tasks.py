"""Several tasks in one experiment: effects within each, scores between floor and ceiling, and their summary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ablate.analysis.results import Results
from ablate.analysis.tasks import Tasks
from ablate.records.tasks import task_baselines, task_factor
from tests.ablate.analysis.task_studies import RANGED, task_study
from tests.study_maker import make_study

TWO: Mapping[str, Mapping[str, Any]] = {"copy": RANGED, "sort": RANGED}
MEANS = {("copy", "on"): 0.5, ("copy", "off"): 0.4, ("sort", "on"): 0.9, ("sort", "off"): 0.6}


def accuracy(levels: Mapping[str, Any], seed: int) -> float:
    shift = 0.01 * seed if levels["scale"] == "off" else 0.0
    return MEANS[levels["task"], levels["scale"]] + shift


def caveat(results: Results, begins: str) -> str:
    (found,) = [text for text in results.caveats() if text.startswith(begins)]
    return found


def test_a_factor_over_tasks_is_a_block(tmp_path: Path) -> None:
    results = task_study(tmp_path / "study", TWO, accuracy=accuracy)
    (main,) = results.main_effects().to_dict("records")
    assert (main["name"], main["cells"]) == ("scale=off", 2)
    assert main["effect"] == pytest.approx((-0.1 - 0.3) / 2 + 0.01)
    assert list(results.simple_effects()["name"]) == ["scale=off at task=copy", "scale=off at task=sort"]
    assert results.shapley().empty  # the way to the corner would go from one task to another
    (interaction,) = results.interactions().to_dict("records")
    assert interaction["effect"] == pytest.approx(-0.3 - -0.1)
    told = results.task_effects()
    assert list(zip(told["name"], told["task"], strict=True)) == [("scale=off", "copy"), ("scale=off", "sort")]
    assert told["effect"].tolist() == pytest.approx([-0.09, -0.29])
    assert caveat(results, "The 2 levels of task") == (
        "The 2 levels of task are tasks, and blocks as seeds are: every effect is within a task; a main effect is the "
        "mean of val/accuracy over the tasks, each with the same weight."
    )
    assert "1 main effect, 1 interaction, 2 simple effects" in caveat(results, "Verdicts are on")
    assert not [text for text in results.caveats() if "judged on the task" in text]


def test_a_task_that_is_excluded_altogether_has_no_row(tmp_path: Path) -> None:
    holes = {f"scale={scale}, task=find": "it is too short" for scale in ("on", "off")}
    tasks = {**TWO, "find": RANGED}
    results = task_study(tmp_path / "study", tasks, accuracy=accuracy, holes=holes)
    assert results.task_effects()["task"].tolist() == ["copy", "sort"]
    assert results.counts()["excluded"] == 6


def test_units_that_differ_are_never_averaged(tmp_path: Path) -> None:
    bits = {"sort": {**RANGED, "units": {"val/accuracy": "bits"}}}
    results = task_study(tmp_path / "study", {**TWO, **bits}, accuracy=accuracy)
    sentences = {verdict.name: verdict.sentence for verdict in results.verdicts()}
    assert sentences["scale=off"] == (
        "scale=off is not comparable to scale=on: val/accuracy is in no unit and in bits."
    )
    assert results.main_effects()["effect"].isna().all()
    assert results.interactions()["effect"].isna().all()
    assert "worse than scale=on by -0.290 bits val/accuracy [" in sentences["scale=off at task=sort"]
    assert "worse than scale=on by -0.090 val/accuracy [" in sentences["scale=off at task=copy"]
    assert results.task_effects()["unit"].tolist() == ["", "bits"]
    assert caveat(results, "The 2 levels of task").endswith(
        "val/accuracy is in no unit and in bits, so none is averaged."
    )


def listed(folder: Path, names: Mapping[str, Mapping[str, Any]]) -> Results:
    """Arms that are spelled out, on ``copy`` and ``sort``."""
    study = make_study(
        folder, design="list", factors={"scale": ["on", "off"], "ratio": [4, 1], "task": ["copy", "sort"]}, seeds=3,
        listed=names, metric="val/accuracy", goal="max", outcomes=lambda name, levels, seed: accuracy(levels, seed),
    )  # fmt: skip
    return Results(study)


def test_an_arm_on_another_task_is_compared_with_its_own_tasks_baseline(tmp_path: Path) -> None:
    arms = {"off": {"scale": "off"}, "sorting": {"task": "sort"}, "both": {"scale": "off", "task": "sort"}}
    results = listed(tmp_path / "study", arms)
    names = {arm["id"]: arm["name"] for arm in results.plan["arms"]}
    assert {names[a]: names[b] for a, b in task_baselines(results.plan).items()} == {"both": "sorting"}
    effects = results.effects().set_index("name")
    assert effects["effect"].drop("sorting").tolist() == pytest.approx([-0.09, -0.29])
    assert effects["effect"].isna()["sorting"]
    assert effects.loc["both", "baseline_mean"] == pytest.approx(0.9)
    sentences = {verdict.name: verdict.sentence for verdict in results.verdicts()}
    assert sentences.keys() == {"off", "both"}
    assert sentences["both"].startswith("both is worse than sorting by -0.290 val/accuracy [")
    assert "for the 2 arms planned" in caveat(results, "The intervals")
    assert results.task_effects()["task"].tolist() == ["copy", "sort"]
    assert caveat(results, "The 2 levels of task").endswith("against the arm with the baseline's other levels.")


def test_a_task_without_an_arm_to_compare_with_stays_not_comparable(tmp_path: Path) -> None:
    arms: dict[str, dict[str, Any]] = {"off": {"scale": "off"}, "both": {"scale": "off", "task": "sort"}}
    results = listed(tmp_path / "study", {**arms, "narrow": {"ratio": 1, "task": "sort"}})
    words = {verdict.name: verdict.sentence for verdict in results.verdicts()}
    assert words["both"] == "both is not comparable to baseline: the tasks differ, `copy` and `sort`."
    assert caveat(results, "The 2 levels of task").endswith("; both and narrow have no such arm.")
    alone = listed(tmp_path / "alone", {"off": {"scale": "off"}, "sorting": {"task": "sort"}})
    assert task_factor(alone.plan) is None  # nothing is compared on the other task
    assert "sorting is judged on the task `sort`, not on the baseline's `copy`." in alone.caveats()


def test_which_factor_says_what_the_task_is(tmp_path: Path) -> None:
    alone = Results(make_study(tmp_path / "none", seeds=2))
    assert task_factor(alone.plan) is None
    assert [len(frame) for frame in (alone.task_effects(), alone.scores(), alone.tasks(), alone.profiles())] == [0] * 4
    # Where the scale and the task change together, no effect of either is within a task.
    both = listed(tmp_path / "both", {"both": {"scale": "off", "task": "sort"}})
    assert task_factor(both.plan) is None
    assert [verdict.word for verdict in both.verdicts()] == ["not comparable"]
    same = task_study(tmp_path / "same", TWO, accuracy=accuracy)
    for arm in same.plan["arms"]:
        arm["config"]["task"] = {"kind": "copy", "length": 4 if arm["levels"]["task"] == "copy" else 8}
    assert task_factor(same.plan) is None  # more or less of one task is a level like any other


def test_scores_lie_between_floor_and_ceiling(tmp_path: Path) -> None:
    lost: dict[str, Any] = {"diverged": [("scale=off, task=copy", 1)], "failed": [("scale=off, task=copy", 2)]}
    results = task_study(tmp_path / "study", {"copy": RANGED, "sort": {}}, accuracy=accuracy, **lost)
    rows = results.scores().to_dict("records")
    frame = {(row["name"], row["task"], row["seed"]): row["score"] for row in rows}
    assert frame["baseline", "copy", 0] == pytest.approx((0.5 - 0.2) / 0.8)
    assert frame["scale=off", "copy", 0] == pytest.approx((0.4 - 0.2) / 0.8)
    assert frame["scale=off", "copy", 1] == 0.0
    assert math.isnan(frame["scale=off", "copy", 2])
    assert all(math.isnan(score) for (_, task, _), score in frame.items() if task == "sort")


def test_no_run_is_better_for_diverging(tmp_path: Path) -> None:
    def below_chance(levels: Mapping[str, Any], seed: int) -> float:
        return 0.12 if levels["task"] == "copy" and seed == 0 else 0.6

    lost = [(f"scale=off, task={task}", 1) for task in TWO]
    results = task_study(tmp_path / "study", TWO, accuracy=below_chance, diverged=lost)
    rows = results.scores().to_dict("records")
    score = {(row["name"], row["task"], row["seed"]): row["score"] for row in rows}
    # On copy a run that finished has 0.12, below the chance of 0.2; on sort all are above.
    assert score["baseline", "copy", 0] == pytest.approx(-0.1)
    assert score["scale=off", "copy", 1] == pytest.approx(-0.1)
    assert score["scale=off", "sort", 1] == 0.0


TEN = {f"task{number}": RANGED for number in range(10)}


def tenths(levels: Mapping[str, Any], seed: int) -> float:
    """Scores of 0, 0.1, ... 0.9 on the ten tasks, by which the architecture without scale loses 0.1 in some seeds."""
    score = int(levels["task"][4:]) / 10 - (0.1 * seed if levels["scale"] == "off" else 0.0)
    return 0.2 + 0.8 * score


def test_ten_tasks_are_summarised_by_the_interquartile_mean(tmp_path: Path) -> None:
    results = task_study(tmp_path / "study", TEN, accuracy=tenths, seeds=2)
    summary = {row["name"]: row for row in results.tasks().to_dict("records")}
    # Of 0, 0, 0.1, 0.1, ... 0.9, 0.9 the middle half is 0.2, 0.3, 0.3, 0.4, 0.4, 0.5, 0.5, 0.6, 0.6, 0.7.
    assert [summary["baseline"][key] for key in ("iqm", "low", "high")] == pytest.approx([0.45] * 3)
    # Of -0.1, 0, 0, 0.1, ... 0.8, 0.8, 0.9 it is 0.2, 0.2, 0.3, 0.3, 0.4, 0.4, 0.5, 0.5, 0.6, 0.6.
    row = summary["scale=off"]
    assert row["iqm"] == pytest.approx(0.4)
    assert 0.35 < row["low"] < 0.39
    assert 0.41 < row["high"] < 0.45
    assert (row["tasks"], row["seeds"], row["planned"], row["diverged"]) == (10, 2, 2, 0)
    assert results.tasks().equals(Results(results.folder).tasks())
    profile = results.profiles()
    above = profile[(profile["name"] == "baseline") & (profile["threshold"].round(2) == 0.54)]
    assert above[["share", "low", "high"]].to_numpy().ravel() == pytest.approx([0.4] * 3)


def test_a_seed_that_lacks_a_task_is_left_out_and_one_that_diverged_is_not(tmp_path: Path) -> None:
    lost: dict[str, Any] = {"diverged": [("scale=off, task=task9", 0)], "failed": [("scale=off, task=task1", 1)]}
    summary = task_study(tmp_path / "study", TEN, accuracy=tenths, **lost).tasks().set_index("name")
    assert summary["seeds"].tolist() == [3, 2]
    assert summary["diverged"].tolist() == [0, 1]
    one = task_study(tmp_path / "one", TEN, accuracy=tenths, seeds=1).tasks()
    assert one["low"].isna().all()


@pytest.mark.parametrize(
    ("tasks", "why"),
    [
        (TWO, "There is no summary over tasks: with 2 it would say more about which tasks were taken than"),
        ({**TEN, "task3": {}}, "Scores cannot be normalised, and so not be summarised over tasks: task3 states no"),
    ],
)
def test_why_there_is_no_summary(tmp_path: Path, tasks: Mapping[str, Mapping[str, Any]], why: str) -> None:
    results = task_study(tmp_path / "study", tasks, accuracy=lambda levels, seed: 0.5, seeds=2)
    assert results.tasks().empty
    assert results.profiles().empty
    found = Tasks.of(results.plan)
    assert found is not None
    assert found.unsummarised().startswith(why)
