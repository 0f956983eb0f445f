"""What a changed plan would leave behind: results of arms that the study's last plan had and the new one has not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ablate.analysis.prose import number
from ablate.errors import RefusedError
from ablate.records.beside import beside
from ablate.records.layout import StudyFolder, TrialFolder, read_json
from ablate.records.spelling import spelled
from ablate.sweep.growing import Lineages
from ablate.sweep.preparing import Configs

ARMS = 10
"""Arms that a refusal names; of more it says the number."""
WHY_ANEW = "what is best for fewer steps need not be best for more"
"""Why a tuned arm goes on to no more steps."""
DIFFERENCES = 6
"""Differences that it names for one arm."""
WIDEST = 60
"""Characters of one value."""
_ABSENT = object()


@dataclass(frozen=True)
class Orphan:
    """An arm that has results, or attempts, which the new plan does not ask for."""

    arm: str
    """Its name in the study's last plan."""
    results: int
    """Sealed results that would be left out."""
    unfinished: int
    """Trials with an attempt and no result."""
    why: tuple[str, ...]
    """What differs, in dotted paths, or what became of the arm."""
    schedules: tuple[str, ...] = ()
    """The schedules that keep its trials from going on to more steps, where that is all that differs."""
    tuned_anew: bool = False
    """Whether the arm is tuned, and more steps are all that differs."""

    def __str__(self) -> str:
        parts = [number(self.results, "result")] if self.results or not self.unfinished else []
        parts += [f"{self.unfinished} unfinished"] if self.unfinished else []
        more = len(self.why) - DIFFERENCES
        why = "; ".join(self.why[:DIFFERENCES]) + (f"; and {number(more, 'more difference')}" if more > 0 else "")
        return f"{self.arm} ({', '.join(parts)}): {why}"


@dataclass(frozen=True)
class Before:
    """What the study's last plan says of a trial; None where it cannot be told."""

    arm: str | None = None
    """The arm's name."""
    lineage: str | None = None
    steps: int | None = None


def planned_before(study: StudyFolder) -> dict[str, Before]:
    """The trials of the study's last plan, by identity; none if it was never run.

    Where the plan is lost or cannot be read, every trial that has a folder counts, so that nothing is left behind
    unsaid.
    """
    try:
        plan = read_json(study.plan)
        arms = {arm["id"]: (str(arm["name"]), arm.get("steps", plan["budget"]["steps"])) for arm in plan["arms"]}
        return {
            trial["id"]: Before(arms[trial["arm"]][0], trial.get("lineage"), arms[trial["arm"]][1])
            for trial in plan["trials"]
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {folder.id: Before() for folder in study.trials()}


def beside_before(study: StudyFolder) -> set[str]:
    """The trials that the study's last plan had beside those that are reported."""
    try:
        return {trial["id"] for trial in beside(read_json(study.plan))}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()


def orphans(study: StudyFolder, plan: Mapping[str, Any]) -> list[Orphan]:
    """The arms whose results or attempts a plan leaves out, in the order of the study's last plan.

    A trial is its identity: what keeps it, as another name for an arm or a factor, leaves nothing out; nor do more
    steps, where the trial of fewer is the beginning of the planned one.
    """
    planned = {trial["id"] for trial in (*plan["trials"], *plan.get("repeats", ()))}
    tuning = {arm["tuning"]["identity"] for arm in plan["arms"] if arm.get("tuning") and "tuned" not in arm}
    lineages = Lineages(plan)
    left: dict[str, list[TrialFolder]] = {}
    hindered: dict[str, list[str]] = {}
    for id, before in planned_before(study).items():
        folder = study.trial(id)
        if id in planned or not (folder.result.exists() or folder.attempts()):
            continue
        if _config(folder).get("untuned") in tuning:
            continue  # its arm is being tuned again, and may come to the same values
        if lineages.grows(before.lineage, before.steps):
            continue
        name = before.arm or str(_config(folder).get("arm_name") or id)
        left.setdefault(name, []).append(folder)
        if schedule := lineages.hindrance(before.lineage, before.steps):
            hindered.setdefault(name, []).append(schedule)
    comparison = _Comparison(plan)
    found = []
    for name, folders in left.items():
        results = sum(folder.result.exists() for folder in folders)
        schedules = tuple(dict.fromkeys(hindered.get(name, ())))
        tuned_anew = any(map(comparison.is_tuned_anew, map(_config, folders)))
        found.append(Orphan(name, results, len(folders) - results, comparison(name, folders), schedules, tuned_anew))
    return found


def tuned_anew(study: StudyFolder, plan: Mapping[str, Any]) -> Iterator[str]:
    """How many arms a plan with more steps tunes again from the start, and why; nothing where none."""
    comparison = _Comparison(plan)
    planned = {trial["id"] for trial in (*plan["trials"], *beside(plan))}
    before = (planned_before(study).keys() | beside_before(study)) - planned
    configs = (_config(study.trial(id)) for id in sorted(before))
    if arms := {config["arm_name"] for config in configs if comparison.is_tuned_anew(config)}:
        are = "arm is" if len(arms) == 1 else "arms are"
        yield f"{len(arms)} {are} tuned anew, from the first step: {WHY_ANEW}"


def check_changes(study: StudyFolder, plan: Mapping[str, Any]) -> None:
    """See that a plan leaves no result of the study behind.

    Raises:
        RefusedError: it does; says which arms, why, and what can be done.
    """
    if refusal := refusal_of(study, orphans(study, plan)):
        raise RefusedError(refusal)


def refusal_of(study: StudyFolder, left: list[Orphan]) -> str | None:
    """Why a plan that leaves these behind is refused, with the remedies; None where there is nothing."""
    if not left:
        return None
    results, unfinished = sum(arm.results for arm in left), sum(arm.unfinished for arm in left)
    what = number(results, "result") if results else number(unfinished, "unfinished trial")
    lines = [f"refused: the plan has changed and would leave out {what} that `{study.path}` has"]
    lines += [f"  {arm}" for arm in left[:ARMS]]
    if len(left) > ARMS:
        lines.append(f"  and {number(len(left) - ARMS, 'more arm')}")
    for schedule in dict.fromkeys(schedule for arm in left for schedule in arm.schedules):
        lines.append(
            f"  = note: `{schedule}` lets no trial go on to more steps: its rate depends on the number of steps"
        )
    if any(arm.tuned_anew for arm in left):
        lines.append(f"  = note: an arm that is tuned goes on to no more steps, it is tuned anew: {WHY_ANEW}")
    lines.append("  = help: `--extend` keeps the old results on disk and runs the new ones;")
    lines.append("          or give the experiment another `name`; or undo the change")
    return "\n".join(lines)


class _Comparison:
    """Says how trials that were run differ from what a plan has under the same arm's name."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._configs = Configs(plan)
        self._by_name: dict[str, str] = {}
        self._arms = {arm["id"]: arm for arm in plan["arms"]}
        for each in self._configs.labels():
            self._by_name.setdefault(each.arm_name, each.trial)

    def __call__(self, name: str, folders: list[TrialFolder]) -> tuple[str, ...]:
        """Why the trials of this arm are in the plan no more."""
        configs = [config for folder in folders if (config := _config(folder))]
        if tuned := next(filter(None, map(self._tuned_otherwise, configs)), None):
            return tuned
        if configs and all(str(config.get("arm")) in self._arms for config in configs):
            seeds = sorted({config["seed"] for config in configs if isinstance(config.get("seed"), int)})
            return (f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))} no longer planned",)
        if name not in self._by_name:
            return ("the arm is no longer in the grid",)
        changed = [config for config in configs if str(config.get("arm")) not in self._arms]
        old = next((config for config in changed if isinstance(config.get("config"), Mapping)), None)
        if old is None:
            return ("its config.json cannot be read",)
        differences = tuple(_differences(old, self._configs[self._by_name[name]]))
        return differences or ("its identity is worked out in another way by this version of Ablate",)

    def is_tuned_anew(self, config: Mapping[str, Any]) -> bool:
        """Whether this is a trial of an arm that is tuned, and that differs in nothing but that it has more steps."""
        name = str(config.get("arm_name"))
        if "untuned" not in config or name not in self._by_name or not isinstance(config.get("config"), Mapping):
            return False
        new = self._configs[self._by_name[name]]
        fewer, more = config["config"].get("steps"), new["config"]["steps"]
        grows = isinstance(fewer, int) and fewer < more
        return grows and "untuned" in new and len(tuple(_differences(config, new))) == 1

    def _tuned_otherwise(self, config: Mapping[str, Any]) -> tuple[str, ...]:
        """How the values that a trial's arm was tuned to differ from those it has now; nothing where they do not."""
        arm = self._arms.get(str(config.get("arm")))
        if arm is None or bool(arm.get("tuning")) == ("untuned" not in config):
            return () if arm is None else ("the arm is tuned now" if arm.get("tuning") else "the arm is tuned no more",)
        old, new = config.get("tuned") or {}, arm.get("tuned") or {}
        pairs = ((path, old.get(path, _ABSENT), new.get(path, _ABSENT)) for path in (*old, *(new.keys() - old.keys())))
        return tuple(f"tuned to {path}: {_spelled(a)} -> {_spelled(b)}" for path, a, b in pairs if a != b)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """What differs between two trials' configurations, as far as it is part of their identity and was not tuned."""
    tuned = {*(old.get("tuned") or {}), *(new.get("tuned") or {})}
    for path, a, b in _changed("", _settings(old), _settings(new)):
        if path not in tuned:
            yield f"{path}: {_spelled(a)} -> {_spelled(b)}"
    if _hash(old) != _hash(new):
        yield "data: the task's data changed"
    before, after = _versions(old), _versions(new)
    for key in before.keys() & after.keys():
        if before[key] != after[key]:
            yield f"the {' '.join(key)}: version {before[key]} -> {after[key]}"


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    settings = config["config"]
    parts = {key: settings.get(key) for key in ("model", "task", "training", "diverged")}
    return {"budget": {"steps": settings.get("steps")}, **parts}


def _changed(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping) and old.get("kind") == new.get("kind"):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _changed(f"{path}.{key}" if path else str(key), old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif (type(old), old) != (type(new), new):
        yield path, old, new


def _spelled(value: Any) -> str:
    if value is _ABSENT:
        return "not there"
    kind = value.get("kind") if isinstance(value, Mapping) else None
    text = str(kind) if kind else spelled(value)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _hash(config: Mapping[str, Any]) -> Any:
    data = config.get("data")
    return data.get("hash") if isinstance(data, Mapping) else None


def _versions(config: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    listed = config.get("components")
    parts = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return {(str(each.get("slot")), str(each.get("kind"))): each.get("version") for each in parts}


def _config(folder: TrialFolder) -> dict[str, Any]:
    try:
        return read_json(folder.config)
    except (OSError, ValueError):
        return {}
