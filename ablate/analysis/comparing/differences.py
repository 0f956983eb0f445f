"""In what two studies differ before any result: what was asked, of which arms, by which code, on what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ablate.analysis.comparing.arms import Pair, Plan
from ablate.analysis.prose import joined
from ablate.records.layout import StudyFolder, read_json
from ablate.records.spelling import spelled

COLUMNS = ("path", "a", "b", "arms")
"""The columns of :func:`differences`."""
MOST_BUT = 2
"""Up to so many arms are named as those that lack a difference that all others have."""
_STUDY = ("design", "objective", "seeds", "diverged", "match", "tuning", "git")
"""What of a plan is said value by value; null says as little as no such key, here and of an arm."""
_RUNS = ("runs", "at_baseline")
"""What of a plan's tuning is its trials, and no configuration."""
_ARM = ("steps", "tuned", "matched", "parameters", "flops")
"""What of an arm is said beside its configuration; of its parameters, the total."""


def differences(a: tuple[Plan, Path], b: tuple[Plan, Path], pairs: Sequence[Pair]) -> pd.DataFrame:
    """One row for each value in which two studies differ, each with its plan and its folder.

    Columns:
        path (text): in dots, as ``model.norm.kind``, ``seeds``, ``versions.torch`` or ``code.norm.rms``.
        a, b (text): its values, spelled so that no two look alike; NA where there is no such value.
        arms (text): the arms that have the difference, of those that both studies have; "" for one of the whole study.
    """
    rows = [(*change, "") for change in _changes(_of_study(*a), _of_study(*b)) if _tells(*change)]
    having: dict[tuple[str, str | None, str | None], list[str]] = defaultdict(list)
    for pair in pairs:
        for change in _changes(_of_arm(a[0], pair.a), _of_arm(b[0], pair.b)):
            having[change].append(pair.name)
    names = [pair.name for pair in pairs]
    rows += [(*change, _which(who, names)) for change, who in having.items()]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype("str")


def _tells(path: str, a: str | None, b: str | None) -> bool:
    """Whether it is more than that a component is in one study alone, which the configuration says."""
    return not path.startswith("code.") or None not in (a, b)


def _which(having: Sequence[str], names: Sequence[str]) -> str:
    rest = [name for name in names if name not in having]
    if not rest:
        return "all arms"
    return f"all arms but {joined(rest)}" if len(rest) <= MOST_BUT < len(having) else joined(having)


def _changes(a: Mapping[str, str], b: Mapping[str, str]) -> Iterator[tuple[str, str | None, str | None]]:
    for path in dict.fromkeys([*a, *b]):
        if a.get(path) != b.get(path):
            yield path, a.get(path), b.get(path)


def _of_study(plan: Plan, folder: Path) -> dict[str, str]:
    told = _said(plan, _STUDY)
    if "tuning" in told:
        told["tuning"] = {key: value for key, value in told["tuning"].items() if key not in _RUNS}
    told["data"] = {"hash": plan["data"]["hash"]}
    told["factors"] = {factor["name"]: factor["levels"] for factor in plan["factors"]}
    return dict(_flat("", told)) | _as_run(plan, folder)


def _as_run(plan: Plan, folder: Path) -> dict[str, str]:
    """What the sealed records say of code, versions and machines; several values are listed."""
    study = StudyFolder(folder)
    found: dict[str, set[str]] = defaultdict(set)
    for path in (study.trial(trial["id"]).result for trial in plan["trials"]):
        if not path.exists():
            continue
        record = read_json(path)
        for name, version in (record.get("versions") or {}).items():
            found[f"versions.{name}"].add(str(version))
        for key in ("device", "precision", "threads"):
            found[f"run.{key}"].add(spelled(record.get(key, plan[key])))
        for each in record["components"]:
            code = f"version {each['version']}, {each['origin']}, source {each.get('source') or 'null'}"
            found[f"code.{each['slot']}.{each['kind']}"].add(code)
    return {path: " and ".join(sorted(values)) for path, values in found.items()}


def _of_arm(plan: Plan, arm: Mapping[str, Any]) -> dict[str, str]:
    more = _said(arm, _ARM)
    more |= {"steps": arm.get("steps") or plan["budget"]["steps"], "parameters": arm["parameters"]["total"]}
    return dict(_flat("", {**arm["config"], **more}))


def _said(what: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: what[key] for key in keys if what.get(key) is not None}


def _flat(path: str, value: object) -> Iterator[tuple[str, str]]:
    """The values below a place, each with its path in dots; a list is one value, and an empty mapping is none."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(f"{path}.{key}" if path else str(key), item)
    else:
        yield path, spelled(value)
