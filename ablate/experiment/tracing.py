"""Tracing: every value that an arm resolves to, with the place that it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SECTIONS = ("model", "task", "training", "budget", "diverged")


@dataclass(frozen=True)
class Traced:
    """One value of an arm, by its dotted path."""

    path: str
    value: Any
    source: str
    """File and line, ``--set``, ``match`` (solved), ``tune`` (found, or still to be found), or ``default``."""


def trace(plan: Mapping[str, Any], arm: Mapping[str, Any]) -> list[Traced]:
    """Every value of an arm of a plan, as ``plan.json`` has both."""
    written: Mapping[str, str] = plan.get("sources", {})
    sets = [entry for level in _chosen(plan, arm) for entry in level]
    values = {**_leaves("", arm["config"]), "budget.steps": arm.get("steps", plan["budget"]["steps"])}
    values |= _leaves("diverged", plan["diverged"])
    return [Traced(path, values[path], _source(path, arm, sets, written)) for path in sorted(values, key=_rank)]


def _rank(path: str) -> tuple[int, list[tuple[bool, str]]]:
    """One order for what a plan says and what its file on disk does: a component's kind before its options."""
    parts = path.split(".")
    section = SECTIONS.index(parts[0]) if parts[0] in SECTIONS else len(SECTIONS)
    return section, [(part != "kind", part) for part in parts]


def _chosen(plan: Mapping[str, Any], arm: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """What the arm's level of each factor sets."""
    for factor in plan["factors"]:
        if factor["name"] not in arm["levels"]:
            continue
        own = arm["levels"][factor["name"]]
        for level, sets in zip(factor["levels"], factor.get("sets", []), strict=False):
            if type(level) is type(own) and level == own:
                yield sets


def _leaves(path: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping) and value:
        found: dict[str, Any] = {}
        for key, item in value.items():
            found |= _leaves(f"{path}.{key}" if path else str(key), item)
        return found
    return {path: value}


def _source(path: str, arm: Mapping[str, Any], sets: list[dict[str, Any]], written: Mapping[str, str]) -> str:
    found, sought = arm.get("tuned") or {}, (arm.get("tuning") or {}).get("params", ())
    if tuned := next((each for each in sought if path == each or path.startswith(f"{each}.")), None):
        return "tune" if tuned in found else "to be tuned"
    names = {path, path.removesuffix(".kind")}
    if names & set(arm.get("matched", {})):
        return "match"
    for entry in sorted(sets, key=lambda entry: -len(entry["path"])):
        if names & set(entry["gives"]):
            return str(entry["at"])
        if path.startswith(entry["path"] + "."):
            return "default"  # the level replaced the whole of it
    inside = (name for name in written if name.startswith(f"{path}."))  # the parts of a list
    return next((written[name] for name in (path, path.removesuffix(".kind"), *inside) if name in written), "default")
