"""What a reader must know before believing a verdict, as plain sentences made from the records."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ablate.analysis.comparability import (
    comparability,
    incomparable,
    not_matched,
    part_not_matched,
    sizes_matched,
    steps_of,
)
from ablate.analysis.contrasts import DESIGNS
from ablate.analysis.effects import Grid
from ablate.analysis.factorial import Factorial
from ablate.analysis.families import aliases, families, left_out, parts, together, unmatched_levels
from ablate.analysis.lattice import is_number
from ablate.analysis.pairing import Floats, smallest_sign_flip, wilson
from ablate.analysis.prose import joined, number
from ablate.analysis.skewness import skewed
from ablate.analysis.verdict import Objective
from ablate.records.frames import count
from ablate.records.tasks import level_of, range_of, task_baselines, task_factor
from ablate.slots import MANY_UNKNOWN

SEEDS = 6
"""The fewest seeds with which the exact sign-flip test can reach p < 0.05."""
NEARLY = 0.9
"""The share of a task's arms that counts as nearly all of them."""


def caveats(
    plan: Mapping[str, Any],
    trials: pd.DataFrame,
    *,
    curves: pd.DataFrame,
    effects: pd.DataFrame,
    courses: pd.DataFrame,
    factorial: Factorial,
) -> list[str]:
    """Every caveat that holds for a study, the general ones first."""
    return [
        _configuration(plan),
        families(plan, factorial),
        *aliases(plan),
        *_interim(trials),
        *_few_seeds(plan),
        *_missing(trials),
        *_diverged(trials),
        *_split(trials),
        *_stuck_baseline(plan, courses),
        *_at_the_ceiling(plan, trials),
        *_at_the_floor(plan, trials),
        *comparability(plan),
        *(unmatched_levels(plan) if plan["design"] in DESIGNS else _unmatched_arms(plan, effects)),
        *_pairing(effects),
        *skewed(factorial.differences() if plan["design"] in DESIGNS else _differences(plan, trials, effects)),
        *parts(plan),
        *together(plan),
        *left_out(plan, factorial),
        *_notes(plan),
        *_unknown(plan),
        *_same_curves(plan, curves),
    ]


def _configuration(plan: Mapping[str, Any]) -> str:
    models = [arm["config"]["model"] for arm in plan["arms"]]
    kinds = dict.fromkeys(str(model["kind"]) for model in models if "kind" in model)
    known = [" or ".join(kinds)] if kinds else []
    for key in ("depth", "width"):
        sizes = [model[key] for model in models if is_number(model.get(key))]
        known += [f"{key} {_range(sizes)}"] if sizes else []
    known += [f"{_range([steps_of(plan, arm) for arm in plan['arms']])} steps"]
    rates = [arm["config"]["training"].get("optimizer", {}).get("lr") for arm in plan["arms"]]
    if not any("training.optimizer.lr" in arm.get("tuned", ()) for arm in plan["arms"]):  # else each has its own
        rates = [rate for rate in rates if is_number(rate)]
        known += [f"peak learning rate {_range(rates)}"] if rates else []
    return (
        f"The sentences speak of this configuration ({', '.join(known)}), never of a component as such: another size, "
        "budget or learning rate may turn them round."
    )


def _range(values: Sequence[float]) -> str:
    """What arms have: one value, or the least to the most."""
    return " to ".join(f"{value:.6g}" for value in dict.fromkeys((min(values), max(values))))


def _unknown(plan: Mapping[str, Any]) -> Iterator[str]:
    for name, share in plan["data"].get("facts", {}).items():
        if name.startswith("unknown_in_") and share > MANY_UNKNOWN:
            where = name.removeprefix("unknown_in_")
            words = f"{100 * share:.3g}% of the evaluated tokens of the {where} are unknown"
            yield f"{words}: the metrics say little of a model."


def _interim(trials: pd.DataFrame) -> Iterator[str]:
    tally = count(trials)
    left = tally["running"] + tally["waiting"]
    if left:
        yield f"This is interim: {left} of {tally['planned']} planned trials have not ended yet."


def _few_seeds(plan: Mapping[str, Any]) -> Iterator[str]:
    seeds = len(plan["seeds"])
    if seeds < SEEDS:
        yield (
            f"With {number(seeds, 'seed')} the exact sign-flip test cannot give a p below "
            f"{smallest_sign_flip(seeds):g}, whatever the data; {SEEDS} seeds are the fewest that can reach 0.05."
        )


def _missing(trials: pd.DataFrame) -> Iterator[str]:
    """Trials that gave up; those that have not ended yet make the study interim."""
    lost = trials[trials["end"].isin(("failed", "timed_out", "pruned"))]
    for name, part in lost.groupby("name", sort=False):
        kinds = " and ".join(sorted({str(end).replace("_", " ") for end in part["end"]}))
        which = "that pair" if len(part) == 1 else "those pairs"
        lacks = f"every arm lacks {which}" if name == "baseline" else f"it lacks {which}"
        yield f"{name}: {_seeds(part)} {kinds}, so {lacks}."


def _diverged(trials: pd.DataFrame) -> Iterator[str]:
    ended = trials[trials["end"].isin(("complete", "diverged"))]
    for name, part in ended.groupby("name", sort=False):
        bad = part[part["end"] == "diverged"]
        if len(bad):
            low, high = wilson(len(bad), len(part))
            reasons = sorted({str(rule) for rule in bad["rule"]} - {""})
            yield (
                f"{name} diverged in {len(bad)} of {number(len(part), 'seed')} ({_seeds(bad)}"
                f"{': ' if reasons else ''}{', '.join(reasons)}); 95% Wilson CI of the share {low:.0%} to {high:.0%}."
            )


def _split(trials: pd.DataFrame) -> Iterator[str]:
    """Trials whose batch memory was too short for."""
    split = trials[trials["micro_batch"].notna()]
    for name, part in split.groupby("name", sort=False):
        sizes = " and ".join(str(size) for size in sorted(set(part["micro_batch"])))
        yield (
            f"{name}: memory was too short for the batch, which went through in micro-batches of {sizes} "
            f"({_seeds(part)}); its gradient and its updates are those of the whole batch, up to rounding."
        )


def _stuck_baseline(plan: Mapping[str, Any], courses: pd.DataFrame) -> Iterator[str]:
    own = courses[courses["arm"] == plan["baseline"]]
    stuck = int((own["course"] == "stuck").sum())
    if stuck:
        yield (
            f"The baseline itself is stuck at the unigram entropy in {stuck} of {number(len(own), 'seed')}: "
            "effects against it say little."
        )


def _at_the_ceiling(plan: Mapping[str, Any], trials: pd.DataFrame) -> Iterator[str]:
    """A baseline that has all there is to have leaves nothing to find, on its task."""
    objective, factor = Objective.of(plan), task_factor(plan)
    bases = {plan["baseline"], *task_baselines(plan).values()}
    for base in (arm for arm in plan["arms"] if arm["id"] in bases):
        _, ceiling = range_of(plan, base)
        own = trials[(trials["arm"] == base["id"]) & (trials["end"] == "complete")]
        if ceiling is None or own.empty or objective.goal != "max":
            continue
        there = int((own[objective.metric] >= ceiling - objective.smallest_effect).sum())
        if 2 * there > len(own):
            who = f"On {level_of(base, factor)} the baseline" if factor else "The baseline"
            yield (
                f"{who} ends within {objective.smallest_effect:g} of the best {objective.metric} that there is, "
                f"{ceiling:g}, in {there} of {number(len(own), 'seed')}: no arm can be better by what matters, and "
                "arms that get there too are not told apart; a harder task or fewer steps would."
            )


def _at_the_floor(plan: Mapping[str, Any], trials: pd.DataFrame) -> Iterator[str]:
    """A task on which (nearly) every arm is as good as chance tells none of them apart."""
    objective, factor = Objective.of(plan), task_factor(plan)
    values = dict(list(trials[trials["end"] == "complete"].groupby("arm")[objective.metric]))
    tasks: dict[str, list[tuple[float, bool]]] = {}
    for arm in plan["arms"]:
        chance, _ = range_of(plan, arm)
        if chance is not None and arm["id"] in values:
            at = [objective.worse(value - chance) >= -objective.smallest_effect for value in values[arm["id"]]]
            on = level_of(arm, factor) if factor else ""
            tasks.setdefault(on, []).append((chance, 2 * sum(at) > len(at)))
    for task, arms in tasks.items():
        there, of = sum(low for _, low in arms), number(len(arms), "arm")
        if there >= NEARLY * len(arms):
            who = f"{there} of {of} end" if there < len(arms) else f"all {of} end" if there > 1 else "the one arm ends"
            lead = f"On {task} {who}" if task else who[0].upper() + who[1:]
            yield (
                f"{lead} within {objective.smallest_effect:g} of chance, {_range([chance for chance, _ in arms])} "
                f"{objective.metric}, in most trials: that task says nothing of these arms; an easier one or more "
                "steps would."
            )


def _unmatched_arms(plan: Mapping[str, Any], effects: pd.DataFrame) -> Iterator[str]:
    unmatched: dict[str, list[str]] = {}
    arms, references = {arm["id"]: arm for arm in plan["arms"]}, task_baselines(plan)
    for row in effects.to_dict("records"):
        changes = row["parameters_delta"], row["flops_delta"]
        base = references.get(row["arm"], plan["baseline"])
        apart = incomparable(plan, [base, row["arm"]], plan["objective"]["metric"])
        if (off := not_matched(*changes)) and not apart:
            alike = sizes_matched(plan, *changes)
            # Of parameters that agree in all, no part is worth naming.
            part = part_not_matched(plan, arms[row["arm"]]) if alike != "parameters" else ""
            how = f"matched in {alike} alone" if alike else "not matched to the baseline"
            unmatched.setdefault(f"{how}: {off}{f' ({part})' if part else ''}", []).append(row["name"])
    for what, names in unmatched.items():
        yield f"{joined(names)} {'is' if len(names) == 1 else 'are'} {what}."


def _pairing(effects: pd.DataFrame) -> Iterator[str]:
    """How strongly arms correlate within a seed, and whether pairing narrowed the intervals."""
    correlations, ratios = effects["correlation"].dropna(), effects["variance_ratio"].dropna()
    if correlations.empty or ratios.empty:
        return
    ratio = float(ratios.median())
    pairs = int(effects["pairs"].max())
    word = "narrows" if ratio < 0.95 else "widens" if ratio > 1.05 else "neither narrows nor widens"
    said = f"here pairing {word} the typical interval"
    if pairs < SEEDS:
        said = f"{number(pairs, 'seed')} are too few to tell whether pairing narrows the intervals"
    yield (
        f"Within a seed an arm correlates with the baseline by {_spread(correlations)}, and a paired difference has "
        f"{_spread(ratios)} times the variance of an unpaired one: {said}."
    )


def _differences(plan: Mapping[str, Any], trials: pd.DataFrame, effects: pd.DataFrame) -> dict[str, Floats]:
    """Each arm's differences to the baseline by its name, where it can be compared."""
    values = Grid.of(plan, trials, Objective.of(plan).metric).values
    compared = effects[effects["pairs"] > 0]
    found = {
        name: values[arm] - values[plan["baseline"]]
        for name, arm in zip(compared["name"], compared["arm"], strict=True)
    }
    return {name: differences[np.isfinite(differences)] for name, differences in found.items()}


def _notes(plan: Mapping[str, Any]) -> Iterator[str]:
    """What components declare of themselves, with the arms that have them."""
    holders: dict[str, list[str]] = {}
    for arm in plan["arms"]:
        for note in arm.get("notes", ()):
            holders.setdefault(note, []).append(arm["name"])
    for note, names in holders.items():
        yield f"{joined(names)} {'has' if len(names) == 1 else 'have'} {note}."


def _same_curves(plan: Mapping[str, Any], curves: pd.DataFrame) -> Iterator[str]:
    """Arms whose training losses are the same to the last bit in every seed that both have."""
    training = curves[curves["metric"] == "train/loss"]
    prints: dict[str, dict[Hashable, bytes]] = {}
    for (arm, seed), values in training.groupby(["arm", "seed"], observed=True)["value"]:
        losses = values.to_numpy(dtype=np.float64)
        if np.isfinite(losses).sum() > 1:
            prints.setdefault(str(arm), {})[seed] = losses.tobytes()
    groups: list[list[str]] = []
    for arm in (arm["id"] for arm in plan["arms"]):
        same = next((group for group in groups if _same(prints.get(group[0], {}), prints.get(arm, {}))), None)
        if same is None:
            groups.append([arm])
        else:
            same.append(arm)
    names = {arm["id"]: arm["name"] for arm in plan["arms"]}
    for group in groups:
        if len(group) > 1:
            listed = [names[arm] for arm in group]
            text = f"{', '.join(listed[:-1])} and {listed[-1]}"
            yield f"{text} have identical training curves in every seed: they may compute the same thing."


def _same(ours: Mapping[Hashable, bytes], theirs: Mapping[Hashable, bytes]) -> bool:
    shared = ours.keys() & theirs.keys()
    return bool(shared) and all(ours[seed] == theirs[seed] for seed in shared)


def _seeds(part: pd.DataFrame) -> str:
    numbers = [str(seed) for seed in sorted(part["seed"])]
    return f"seed{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _spread(values: Sequence[float] | pd.Series[Any]) -> str:
    numbers = np.asarray(values, dtype=float)
    low, middle, high = numbers.min(), float(np.median(numbers)), numbers.max()
    if math.isclose(low, high, abs_tol=0.005):
        return f"{middle:.2f}"
    return f"{low:.2f} to {high:.2f} (median {middle:.2f})"
