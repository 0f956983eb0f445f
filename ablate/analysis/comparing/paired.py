"""Each arm of study B against its counterpart of study A, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ablate.analysis.comparing.arms import Pair
from ablate.analysis.effects import Grid, unigram_entropy
from ablate.analysis.pairing import Floats, contrast, holm, ranked_direction, settling
from ablate.analysis.results import Results
from ablate.analysis.verdict import WORDS, Evidence, Objective, judge

COLUMNS = (
    "arm", "name", "pairs", "planned", "mean_a", "mean_b", "effect", "low", "high", "low95", "high95", "p", "p_holm",
    "p_sign_flip", "agree", "diverged_a", "diverged_b", "ended_a", "ended_b", "settle", "same_configuration", "verdict",
    "worse", "sentence",
)  # fmt: skip
"""The columns of :func:`paired`."""
WORSE = ("worse", "worse, size uncertain")
"""The verdicts by which an arm is worse in B."""


def paired(a: Results, b: Results, pairs: Sequence[Pair], grids: tuple[Grid, Grid]) -> pd.DataFrame:
    """One row for each pair of arms, worst first: the objective in B minus that in A, paired by seed.

    Args:
        a: the one study.
        b: the other; its objective judges.
        pairs: the arms that both have.
        grids: the values of both over the same seeds in the same order.

    Columns:
        arm (text): its identity in B. name (text).
        pairs (int): seeds that completed in both. planned (int): seeds that both plan.
        mean_a, mean_b (float): over the pairs; the metric's unit.
        effect (float): mean of the differences, B minus A. low, high (float): simultaneous 95% interval (Bonferroni
        over the pairs of arms); it carries the verdict. low95, high95 (float): 95% interval of this arm alone.
        p, p_holm, p_sign_flip, agree, settle: as in :func:`ablate.analysis.effects.effects`.
        diverged_a, diverged_b, ended_a, ended_b (int): of these seeds, those that diverged, and those that diverged or
        completed.
        same_configuration (bool): the arm is the same to the last option: code, versions and machine alone may differ.
        verdict (text): on B's arm, against A's. worse (bool): whether that is in :data:`WORSE`, or B's arm diverged in
        more of the seeds that ended in both than A's. sentence (text): the verdict in a sentence.
    """
    objective = b.objective
    found = [_evidence(a, b, pair, grids, len(pairs)) for pair in pairs]
    adjusted = holm([e.contrast.p for e in found], max(1, len(found)))
    rows = [
        _row(pair, e, grids, objective) | {"p_holm": p_holm}
        for pair, e, p_holm in zip(pairs, found, adjusted, strict=True)
    ]
    rows.sort(key=lambda row: (WORDS.index(row["verdict"]), -_known(objective.worse(row["effect"]))))
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype({"settle": "Int64"} | dict.fromkeys(("arm", "name", "verdict", "sentence"), "str"))


def _evidence(a: Results, b: Results, pair: Pair, grids: tuple[Grid, Grid], family: int) -> Evidence:
    objective, (before, after), old, new = b.objective, grids, pair.a["id"], pair.b["id"]
    reason = pair.apart(a.plan, b.plan, objective.metric)
    differences = after.values[new] - before.values[old]
    finite = differences[np.isfinite(differences)]
    c = contrast([] if reason else finite, family)
    ends = list(zip(before.ends[old], after.ends[new], strict=True))
    return Evidence(
        name=f"B's {pair.b['name']}", against="A's", contrast=c, planned=sum("unplanned" not in each for each in ends),
        diverged=after.number(new, "diverged"), ended=after.number(new, "complete", "diverged"),
        baseline_diverged=before.number(old, "diverged"), baseline_ended=before.number(old, "complete", "diverged"),
        ranks=ranked_direction([objective.worse(value) for value in finite], ends.count(("complete", "diverged"))),
        stuck=sum(after.stuck[new]), baseline_stuck=sum(before.stuck[old]),
        settle=settling(c, objective.smallest_effect, family),
        unigram_entropy=unigram_entropy(b.plan, b.trials()), no_data=after.lost(new) or before.lost(old, " of A's"),
        incomparable=reason,
    )  # fmt: skip


def _row(pair: Pair, e: Evidence, grids: tuple[Grid, Grid], objective: Objective) -> dict[str, Any]:
    (before, after), old, new, c = grids, pair.a["id"], pair.b["id"], e.contrast
    verdict = judge(e, objective)
    ends = list(zip(before.ends[old], after.ends[new], strict=True))
    more = ends.count(("complete", "diverged")) > ends.count(("diverged", "complete"))
    both = np.isfinite(before.values[old] - after.values[new])
    return {
        "arm": new, "name": pair.name, "pairs": c.pairs, "planned": e.planned,
        "mean_a": _mean(before.values[old][both]), "mean_b": _mean(after.values[new][both]),
        "effect": c.effect, "low": c.low, "high": c.high, "low95": c.low95, "high95": c.high95,
        "p": c.p, "p_sign_flip": c.p_sign_flip, "agree": c.agree,
        "diverged_a": e.baseline_diverged, "diverged_b": e.diverged, "ended_a": e.baseline_ended, "ended_b": e.ended,
        "settle": e.settle if verdict.word == "undecided" and not e.diverged else None,
        "same_configuration": pair.alike, "verdict": verdict.word, "worse": verdict.word in WORSE or more,
        "sentence": verdict.sentence,
    }  # fmt: skip


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan


def _known(value: float) -> float:
    return value if math.isfinite(value) else 0.0
