"""What a grid leaves out, and what is said of its arms: `exclude`, `arms`, `expect`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablate.errors import Diagnostic
from ablate.experiment.factors import Axis, check_factor, find_level
from ablate.experiment.levels import Bench, Level
from ablate.experiment.reading import Place


@dataclass(frozen=True)
class Rule:
    """Levels that a cell must all have to be left out, and why."""

    levels: Mapping[str, Level]
    why: str
    place: Place

    def matches(self, chosen: Mapping[str, Level]) -> bool:
        """Whether a cell has all levels of the rule."""
        return all(chosen.get(name) is level for name, level in self.levels.items())


def read_rules(bench: Bench, axes: Sequence[Axis]) -> list[Rule]:
    """Every rule of `exclude`; what is wrong is noted."""
    rules = []
    for index, entry in enumerate(bench.settings.exclude):
        place: Place = ("exclude", index)
        why = entry.get("why")
        if "why" not in entry:
            bench.report(
                "S104",
                f"`why` is missing in `exclude[{index}]`",
                place,
                otherwise="say the reason; the report gives it",
            )
        elif not isinstance(why, str) or not why.strip():
            bench.report("S103", "`why` must be text that says the reason", (*place, "why"))
        levels = read_levels(bench, axes, {name: value for name, value in entry.items() if name != "why"}, place)
        if levels is not None and not levels:
            bench.report(
                "S103", f"`exclude[{index}]` names no level", place, otherwise="write `{FACTOR: LEVEL, why: …}`"
            )
        elif levels and isinstance(why, str):
            rules.append(Rule(levels, why, place))
    return rules


def read_levels(bench: Bench, axes: Sequence[Axis], entry: Mapping[str, Any], place: Place) -> dict[str, Level] | None:
    """Levels by factor as the file spells them, or None with the problems noted."""
    by_name = {axis.name: axis for axis in axes}
    levels: dict[str, Level] = {}
    sound = True
    for name, value in entry.items():
        inner = (*place, name)
        level = (
            find_level(bench, name, by_name[name].levels, value, inner) if check_factor(bench, name, inner) else None
        )
        sound = sound and level is not None
        if level:
            levels[name] = level
    return levels if sound else None


def check_rules(bench: Bench, rules: Sequence[Rule], struck: Mapping[int, int], others: int) -> list[Diagnostic]:
    """Warnings of rules that leave nothing out; one that leaves nothing over is noted as a problem.

    Args:
        bench: the experiment.
        rules: its rules.
        struck: how many cells each rule left out, by its index.
        others: how many cells there were beside the baseline.
    """
    warnings = []
    for index, rule in enumerate(rules):
        if not struck.get(index):
            help = "nothing has all of these levels; remove the rule, or mend it"
            warnings.append(bench.document.diagnose("W004", "this rule leaves nothing out", rule.place, help=help))
        elif struck[index] == others:
            bench.report("G212", "this rule leaves out every arm but the baseline", rule.place)
    return warnings
