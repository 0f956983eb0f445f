"""Several tasks in one plan: which factor they are the levels of, and which arm is a task's own baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ablate.experiment.identity import text
from ablate.records.spelling import spelled


def task_factor(plan: Mapping[str, Any]) -> str | None:
    """The one factor whose levels are tasks, so that it is a block as seeds are; None where there is none.

    Its levels are of more than one kind of task, each of them is one task in all arms that have it, and another than
    the baseline's has two arms, which can be compared. Where two factors are so, neither is a block.
    """
    kinds = {_kind(arm) for arm in plan["arms"]}
    found = [factor["name"] for factor in plan["factors"] if len(kinds) > 1 and _names_tasks(plan, factor["name"])]
    return found[0] if len(found) == 1 else None


def level_of(arm: Mapping[str, Any], factor: str) -> str:
    """How an arm's level of a factor is spelled."""
    return spelled(arm["levels"][factor])


def range_of(plan: Mapping[str, Any], arm: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Floor and ceiling of the objective on an arm's task; None where the task does not state it."""
    facts = arm.get("data", plan["data"]).get("facts", {})
    name = plan["objective"]["metric"].rpartition("/")[2]
    return facts.get(f"chance_{name}"), facts.get(f"ceiling_{name}")


def task_baselines(plan: Mapping[str, Any]) -> dict[str, str]:
    """By identity, the arm that each arm on another task than the baseline's is compared with.

    It is the one with the baseline's levels of all other factors, on the arm's own task; nothing for arms whose task
    has no such arm, and for those arms themselves, which are their tasks' baselines.
    """
    factor = task_factor(plan)
    if factor is None:
        return {}
    base = next(arm for arm in plan["arms"] if arm["id"] == plan["baseline"])
    own = {level_of(arm, factor): arm["id"] for arm in plan["arms"] if _rest(arm, factor) == _rest(base, factor)}
    levels = {arm["id"]: level_of(arm, factor) for arm in plan["arms"]}
    return {
        arm: own[level] for arm, level in levels.items() if level in own and own[level] not in (arm, plan["baseline"])
    }


def _names_tasks(plan: Mapping[str, Any], factor: str) -> bool:
    tasks: dict[str, set[str]] = {}
    for arm in plan["arms"]:
        if factor not in arm["levels"]:
            return False
        tasks.setdefault(level_of(arm, factor), set()).add(text(arm["config"]["task"]))
    kinds = {_kind(arm): level_of(arm, factor) for arm in plan["arms"]}
    base = next(level_of(arm, factor) for arm in plan["arms"] if arm["id"] == plan["baseline"])
    others = [level for level in (level_of(arm, factor) for arm in plan["arms"]) if level != base]
    return (
        len(set(kinds.values())) > 1
        and all(len(each) == 1 for each in tasks.values())
        and len(others) > len(set(others))
    )


def _rest(arm: Mapping[str, Any], factor: str) -> dict[str, str]:
    return {name: spelled(level) for name, level in arm["levels"].items() if name != factor}


def _kind(arm: Mapping[str, Any]) -> str:
    return str(arm["config"]["task"].get("kind", ""))
