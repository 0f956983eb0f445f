"""What a reader must know before believing a verdict, as plain sentences made from the records."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ablate.analysis.effects import delta
from ablate.analysis.factorial import Factorial
from ablate.analysis.pairing import smallest_sign_flip, wilson
from ablate.analysis.verdict import Objective
from ablate.records.frames import count, spelled

UNMATCHED = 1.0
"""An arm whose parameters or FLOPs differ from the baseline's by more percent than this is not matched."""
SEEDS = 6
"""The fewest seeds with which the exact sign-flip test can reach p < 0.05."""


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
        _families(plan, factorial),
        *_interim(trials),
        *_few_seeds(plan),
        *_missing(trials),
        *_diverged(trials),
        *_stuck_baseline(plan, courses),
        *(_unmatched_levels(plan) if plan["design"] == "full" else _unmatched_arms(effects)),
        *_pairing(effects),
        *_left_out(factorial),
        *_same_curves(plan, curves),
    ]


def _configuration(plan: Mapping[str, Any]) -> str:
    config = next(arm["config"] for arm in plan["arms"] if arm["id"] == plan["baseline"])
    model, training = config["model"], config["training"]
    known = [str(model[key]) for key in ("kind",) if key in model]
    known += [f"{key} {model[key]}" for key in ("depth", "width") if key in model]
    known += [f"{plan['budget']['steps']} steps"]
    rate = training.get("optimizer", {}).get("lr")
    known += [f"peak learning rate {rate:g}"] if isinstance(rate, int | float) else []
    return (
        f"The sentences speak of this configuration ({', '.join(known)}), never of a component as such: another size, "
        "budget or learning rate may turn them round."
    )


def _families(plan: Mapping[str, Any], factorial: Factorial) -> str:
    if plan["design"] != "full":
        arms = len(plan["arms"]) - 1
        each = "1 arm" if arms == 1 else f"{arms} arms"
        return f"The intervals that carry the verdicts hold together at 95% for the {each} planned (Bonferroni)."
    smallest = Objective.of(plan).smallest_effect
    families = [_number(size, kind.removesuffix("s")) for kind, size in factorial.families.items()]
    return (
        "Verdicts are on the main effects, and on simple effects where an interaction is large: its interval excludes "
        f"zero and its size exceeds {smallest:g}. The intervals of each family hold together at 95% (Bonferroni): "
        f"{', '.join(families)}."
    )


def _interim(trials: pd.DataFrame) -> Iterator[str]:
    tally = count(trials)
    left = tally["running"] + tally["waiting"]
    if left:
        yield f"This is interim: {left} of {tally['planned']} planned trials have not ended yet."


def _few_seeds(plan: Mapping[str, Any]) -> Iterator[str]:
    seeds = len(plan["seeds"])
    if seeds < SEEDS:
        yield (
            f"With {_number(seeds, 'seed')} the exact sign-flip test cannot give a p below "
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
                f"{name} diverged in {len(bad)} of {_number(len(part), 'seed')} ({_seeds(bad)}"
                f"{': ' if reasons else ''}{', '.join(reasons)}); 95% Wilson CI of the share {low:.0%} to {high:.0%}."
            )


def _stuck_baseline(plan: Mapping[str, Any], courses: pd.DataFrame) -> Iterator[str]:
    own = courses[courses["arm"] == plan["baseline"]]
    stuck = int((own["course"] == "stuck").sum())
    if stuck:
        yield (
            f"The baseline itself is stuck at the unigram entropy in {stuck} of {_number(len(own), 'seed')}: "
            "effects against it say little."
        )


def _unmatched_arms(effects: pd.DataFrame) -> Iterator[str]:
    for row in effects.to_dict("records"):
        off = _off(row["parameters_delta"], row["flops_delta"])
        if off:
            yield f"{row['name']} is not matched to the baseline: {off}."


def _unmatched_levels(plan: Mapping[str, Any]) -> Iterator[str]:
    """Levels of a full design, each by the mean of its arms against the mean of its reference's."""
    for factor in plan["factors"]:
        name, reference = factor["name"], spelled(factor["baseline"])
        sizes: dict[str, list[tuple[float, float]]] = {}
        for arm in plan["arms"]:
            sizes.setdefault(spelled(arm["levels"].get(name)), []).append((arm["parameters"]["total"], arm["flops"]))
        for level in map(spelled, factor["levels"]):
            if level != reference and level in sizes and reference in sizes:
                ours, theirs = np.mean(sizes[level], axis=0), np.mean(sizes[reference], axis=0)
                off = _off(*(delta(float(a), float(b)) for a, b in zip(ours, theirs, strict=True)))
                if off:
                    yield f"{name}={level} is not matched to {name}={reference}: {off}."


def _off(parameters: float, flops: float) -> str:
    """What is not matched, in words; "" where all is."""
    named = ((parameters, "parameters"), (flops, "training FLOPs"))
    return " and ".join(f"{value:+.0f}% {text}" for value, text in named if abs(value) > UNMATCHED)


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
        said = f"{_number(pairs, 'seed')} are too few to tell whether pairing narrows the intervals"
    yield (
        f"Within a seed an arm correlates with the baseline by {_spread(correlations)}, and a paired difference has "
        f"{_spread(ratios)} times the variance of an unpaired one: {said}."
    )


def _left_out(factorial: Factorial) -> Iterator[str]:
    for name, items in factorial.left_out().items():
        yield f"The main effect of {name} leaves out {'; '.join(items)}: nothing was filled in."


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


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _spread(values: Sequence[float] | pd.Series[Any]) -> str:
    numbers = np.asarray(values, dtype=float)
    low, middle, high = numbers.min(), float(np.median(numbers)), numbers.max()
    if math.isclose(low, high, abs_tol=0.005):
        return f"{middle:.2f}"
    return f"{low:.2f} to {high:.2f} (median {middle:.2f})"
