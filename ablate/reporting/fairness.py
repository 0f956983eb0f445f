"""What the arms had to themselves: parameters, FLOPs, tokens, time and tuning, and what was made equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ablate.analysis.comparability import (
    UNMATCHED,
    not_matched,
    part_not_matched,
    sizes_matched,
    training_flops,
)
from ablate.analysis.prose import joined, number
from ablate.analysis.tuned import edges
from ablate.reporting.effects import label_of, named
from ablate.reporting.numbers import big, duration, fixed, level, missing, plain, whole
from ablate.reporting.study import Arm, Study
from ablate.reporting.tables import Column, Table

SIZES = {"params": "parameters", "train_flops": "training FLOPs"}
"""What `match` makes equal, in words."""


def table(study: Study) -> Table:
    """An arm a row: what it had, by how much that differs from the baseline's, and what was made equal."""
    tuned = bool(study.plan.get("tuning"))
    records = [_row(study, arm) for arm in study.arms]
    columns = [
        Column("name", "arm", numeric=False, adorn=named, compose=label_of),
        *_size("parameters", "parameters", records),
        *_size("flops", "training FLOPs", records),
        *_size("tokens", "training tokens", records),
        Column("steps", "steps", optional=True),
        Column("seconds", "time", unit="a trial", compose=lambda record: record["time"], empty="no trial completed"),
        *([Column("trials", "tuning", unit="trials"), Column("edge", "best value at an edge", numeric=False,
           empty="none at an edge")] if tuned else []),
        Column("matched", "chosen by matching", numeric=False, optional=True, empty="as its levels give it"),
        Column("unequal", "not equal", unit=f"by more than {UNMATCHED:g}%", numeric=False, optional=True,
               empty="equal"),
    ]  # fmt: skip
    return Table(columns, records, pinned=1)


def sentences(study: Study) -> Iterator[str]:
    """What was matched and how, for how long arms train, and how they were tuned."""
    yield from _matching(study.plan)
    compared = [arm for arm in study.arms if not arm.baseline and not study.apart(arm)]
    apart = [arm for arm in compared if _unequal(study, arm)]
    others, theirs = number(len(compared), "arm"), f"the baseline{' of the task' if study.tasks else ''}"
    if apart:
        yield (
            f"{len(apart)} of {others} {'differs' if len(apart) == 1 else 'differ'} from {theirs} by more than "
            f"{UNMATCHED:g}% in parameters or training FLOPs: an effect may be one of size."
        )
    elif compared:
        yield f"Every arm has the baseline's parameters and training FLOPs within {UNMATCHED:g}%."
    yield _budget(study)
    yield _tuning(study)


def _size(key: str, title: str, records: Sequence[Mapping[str, Any]]) -> list[Column]:
    """A size, and how far it is from the baseline's where it is so in any arm."""
    change = Column(f"{key}_delta", "Δ", unit="%", empty="the baseline's own")
    differs = any(record[change.key] not in ("", "+0.0") for record in records)
    return [Column(key, title, compose=lambda record: big(float(record[key]))), *([change] if differs else [])]


def _row(study: Study, arm: Arm) -> Mapping[str, Any]:
    plan = study.planned[arm.id]
    mine = study.trials[study.trials["arm"] == arm.id]
    seconds = mine.loc[mine["end"] == "complete", "seconds"].mean()
    effect = None if arm.baseline else study.effects.loc[arm.id]
    deltas = {f"{key}_delta": "" if effect is None else fixed(effect[f"{key}_delta"], 1, sign=True)
              for key in ("parameters", "flops", "tokens")}  # fmt: skip
    tuning = study.results.tuning()
    at_edge = edges(study.plan, plan, tuning) if plan.get("tuned") else {}
    return {
        "name": arm.name, "label": arm.label, "look": arm.look, **deltas,
        "parameters": whole(arm.parameters), "flops": f"{training_flops(study.plan, plan):.6g}",
        "tokens": whole(arm.tokens * arm.steps), "steps": whole(arm.steps),
        "seconds": fixed(seconds, 1), "time": "" if missing(seconds) else duration(seconds),
        "trials": whole((tuning["arm"] == arm.id).sum()),
        "edge": plain("; ".join(f"{path.rpartition('.')[2]}: {where}" for path, where in at_edge.items())),
        "matched": plain(", ".join(f"{path}={level(value)}" for path, value in (plan.get("matched") or {}).items())),
        "unequal": "" if arm.baseline or study.apart(arm) else _unequal(study, arm),
    }  # fmt: skip


def _unequal(study: Study, arm: Arm) -> str:
    """What is not matched, as ``+50% parameters (+52% in feed_forward)``; "" where all is."""
    effect: Any = study.effects.loc[arm.id]
    plan = study.planned[arm.id]
    changes = float(effect["parameters_delta"]), float(effect["flops_delta"])
    words = not_matched(*changes)
    part = part_not_matched(study.plan, plan) if abs(changes[0]) > UNMATCHED else ""
    alone = sizes_matched(study.plan, *changes)
    return plain(words + (f" ({part})" if part else "") + (f"; matched in {alone} alone" if alone else ""))


def _matching(plan: Mapping[str, Any]) -> Iterator[str]:
    targets = {words: (plan.get("match") or {}).get(key) for key, words in SIZES.items()}
    for words, target in targets.items():
        if target:
            solved = sum(target["adjust"] in (arm.get("matched") or {}) for arm in plan["arms"])
            yield (
                f"{words[0].upper()}{words[1:]} are matched to the baseline's within {100 * target['within']:g}%, by "
                f"solving {target['adjust']} in {number(solved, 'arm')}."
            )
    if not any(targets.values()):
        yield "Nothing is matched: each arm has the size that its levels give it."


def _budget(study: Study) -> str:
    steps = _span([arm.steps for arm in study.arms], "{:,}")
    tokens = [arm.tokens * arm.steps for arm in study.arms]
    who = "Every arm trains" if len(set(tokens)) == 1 and " to " not in steps else "Arms train"
    least, most = big(min(tokens)), big(max(tokens))
    seen = least if least == most else f"{least} to {most}"
    return f"{who} for {steps} steps, on {seen} tokens."


def _span(values: Sequence[int], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


def _tuning(study: Study) -> str:
    tuning = study.plan.get("tuning")
    if not tuning:
        return (
            "Nothing is tuned: all arms share the values that the experiment gives, the learning rate among them, and "
            "these may suit one arm better than another."
        )
    seeds = number(len(tuning["seeds"]), "seed")
    budget = f"{number(tuning['combinations'], 'combination')} on {seeds}"
    alone = [arm.name for arm in study.arms if not study.planned[arm.id].get("tuning")]
    if alone:
        return f"Each arm that is tuned has the same budget for it, {budget}; nothing is tuned in {joined(alone)}."
    return f"Each arm has the same budget for tuning, {budget}."
