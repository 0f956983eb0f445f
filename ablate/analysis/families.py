"""What a reader must know of a design: what its verdicts are on, what it mixes up, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ablate.analysis.comparability import not_matched, sizes_matched, training_flops
from ablate.analysis.contrasts import DESIGNS
from ablate.analysis.effects import delta, family_of
from ablate.analysis.factorial import Factorial
from ablate.analysis.lattice import Lattice, cells_of, levels_in_order
from ablate.analysis.prose import joined, number
from ablate.analysis.verdict import Objective
from ablate.records.frames import spelled
from ablate.records.tasks import task_factor

WAYS = {3: "two-way", 4: "three-way", 5: "four-way"}
"""What a main effect is aliased with, by the resolution of a fraction."""
MOST_ALIASES = 6
"""So many groups of aliases, and so many arms, are named; of the rest, their number is given."""


def families(plan: Mapping[str, Any], factorial: Factorial) -> str:
    """What the verdicts are on, and for how many of them the intervals hold together."""
    if plan["design"] not in DESIGNS:
        arms = family_of(plan) if len(plan["arms"]) > 1 else 0
        if arms == 1:
            return "The interval that carries the verdict is a 95% interval."
        each = number(arms, "arm")
        return f"The intervals that carry the verdicts hold together at 95% for the {each} planned (Bonferroni)."
    if plan["design"] == "fractional":
        size = number(factorial.families["main effects"], "main effect")
        return (
            "Verdicts are on the main effects, the mean of the arms at a level minus that of the arms at its "
            f"reference; their intervals hold together at 95% for the {size} (Bonferroni)."
        )
    smallest = Objective.of(plan).smallest_effect
    if sum(factorial.families.values()) == 1:
        return "The verdict is on the only main effect; the interval that carries it is a 95% interval."
    sizes = [number(size, kind.removesuffix("s")) for kind, size in factorial.families.items()]
    return (
        "Verdicts are on the main effects, and on simple effects where an interaction is large: its interval excludes "
        f"zero and its size exceeds {smallest:g}. The intervals of each family hold together at 95% (Bonferroni): "
        f"{', '.join(sizes)}."
    )


def aliases(plan: Mapping[str, Any]) -> Iterator[str]:
    """What a fraction of a design cannot tell apart."""
    if plan["design"] != "fractional":
        return
    fraction = plan.get("fraction") or {}
    resolution, groups = fraction.get("resolution"), [list(map(str, each)) for each in fraction.get("aliases") or ()]
    runs, full = fraction.get("runs", len(plan["arms"])), fraction.get("full", 2 ** len(plan["factors"]))
    if runs == full or resolution is None:
        yield (
            f"The fraction is all of the {full} combinations, so nothing is aliased; interactions are not reported: "
            "`design: full` does."
        )
        return
    made = f" ({', '.join(map(str, fraction['generators']))})" if fraction.get("generators") else ""
    ways = WAYS.get(resolution, f"{resolution - 1}-way")
    main = [group for group in groups if any(":" not in effect for effect in group)]
    named = f": {_groups(main)}" if main else ""
    yield (
        f"The design is {runs} of {full} combinations, of resolution {resolution}{made}: a main effect cannot be told "
        f"apart from {ways} interactions{named}."
    )
    if resolution == 3:
        why = "two-way interactions are aliased with main effects"
    elif resolution == 4:
        rest = [group for group in groups if group not in main]
        why = f"two-way interactions are aliased with each other{f', {_groups(rest)}' if rest else ''}"
    else:
        why = "verdicts are on main effects alone"
    yield f"No interaction and no simple effect is reported: {why}."


def _groups(groups: Sequence[Sequence[str]]) -> str:
    more = f"; and {len(groups) - MOST_ALIASES} more" if len(groups) > MOST_ALIASES else ""
    return "; ".join(" with ".join(group) for group in groups[:MOST_ALIASES]) + more


def parts(plan: Mapping[str, Any]) -> Iterator[str]:
    """In a factorial design, which factors are no part of which arms, and what that does to the effects."""
    if plan["design"] not in DESIGNS:
        return
    lattice, names = Lattice(plan), {arm["id"]: arm["name"] for arm in plan["arms"]}
    for factor in lattice.factors:
        without = lattice.without(factor)
        if without:
            which = f" ({joined([names[arm] for arm in without])})" if len(without) <= MOST_ALIASES else ""
            rest = ", and an arm without it stands for all of its levels" if plan["design"] == "full" else ""
            yield (
                f"{factor} is no part of {len(without)} of {number(len(names), 'arm')}{which}: "
                f"its effects are over the arms that have it{rest}."
            )


def together(plan: Mapping[str, Any]) -> Iterator[str]:
    """In a full design, levels of which factors are one arm, and what that does to the effects."""
    if plan["design"] != "full":
        return
    lattice, names = Lattice(plan), {arm["id"]: arm["name"] for arm in plan["arms"]}
    for factor in lattice.factors:
        arms = lattice.unmoved(factor)
        if len(arms) == len(names):
            yield f"Levels of {factor} fell together in every arm."
        elif arms:
            which = f" ({joined([names[arm] for arm in arms])})" if len(arms) <= MOST_ALIASES else ""
            yield (
                f"Levels of {factor} fell together in {len(arms)} of {number(len(names), 'arm')}{which}: such an arm "
                "stands at each of them, and effects between them are over the other arms."
            )


def unmatched_levels(plan: Mapping[str, Any]) -> Iterator[str]:
    """Levels of a factorial design, each by the mean of its arms against the mean of its reference's."""
    tasks = task_factor(plan)
    for factor in plan["factors"]:
        name, ordered = factor["name"], [spelled(level) for level in levels_in_order(factor)]
        reference = ordered[0]
        if name == tasks:
            continue
        sizes: dict[str, list[tuple[float, float]]] = {}
        for arm in plan["arms"]:
            for cell in cells_of(arm):
                if name in cell:
                    mine = arm["parameters"]["total"], training_flops(plan, arm)
                    sizes.setdefault(spelled(cell[name]), []).append(mine)
        for level in map(spelled, factor["levels"]):
            if level != reference and level in sizes and reference in sizes:
                ours, theirs = np.mean(sizes[level], axis=0), np.mean(sizes[reference], axis=0)
                parameters, flops = (delta(float(a), float(b)) for a, b in zip(ours, theirs, strict=True))
                if off := not_matched(parameters, flops):
                    alike = sizes_matched(plan, parameters, flops)
                    how = (
                        f"matched to {name}={reference} in {alike} alone"
                        if alike
                        else f"not matched to {name}={reference}"
                    )
                    yield f"{name}={level} is {how}: {off}."


def left_out(plan: Mapping[str, Any], factorial: Factorial) -> Iterator[str]:
    """What main effects had to do without; in a fraction each of them does without the same arms."""
    if plan["design"] == "full":
        for name, items in factorial.left_out().items():
            yield f"The main effect of {name} leaves out {'; '.join(items)}: nothing was filled in."
        return
    alike: dict[frozenset[str], tuple[str, ...]] = {}
    names: dict[frozenset[str], list[str]] = {}
    for name, items in factorial.left_out().items():
        alike.setdefault(frozenset(items), items)
        names.setdefault(frozenset(items), []).append(name)
    for key, items in alike.items():
        who = f"effect of {names[key][0]} leaves" if len(names[key]) == 1 else f"effects of {joined(names[key])} leave"
        yield f"The main {who} out {'; '.join(items)}: nothing was filled in."
