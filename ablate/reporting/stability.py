"""The tables of the section on stability."""

from __future__ import annotations

import math

import pandas as pd

from ablate.analysis.course import SHORT, first_bad
from ablate.analysis.prose import number
from ablate.reporting.effects import named
from ablate.reporting.numbers import digits, fixed, plain, whole
from ablate.reporting.study import Study
from ablate.reporting.tables import Column, Table

UNKNOWN = "not found"
"""What a dash says in the place of a first bad value."""
SHORT_RUN = "too short to judge"
"""What a dash says in the place of spikes."""


def spikes(study: Study) -> pd.DataFrame:
    """One row for each step at which a trial's training loss spiked: arm, seed, step."""
    courses = study.results.courses()
    rows = courses.explode("spike_steps").dropna(subset=["spike_steps"])
    return pd.DataFrame({"arm": rows["arm"], "seed": rows["seed"], "step": rows["spike_steps"].astype(int)})


def spike_rule(study: Study) -> str:
    """The rule that calls a step a spike, by its name."""
    rules = sorted({rule for rule in study.results.courses()["spike_rule"] if rule})
    return " and ".join(rules)


def unspiked(study: Study, spiked: int) -> str:
    """What is to be said beside the marks of so many spikes: that there are none, or which runs were not examined."""
    scores = study.results.courses()["spike_score"]
    short, looks = int(scores.isna().sum()), f"too short to judge: the rule looks from step {SHORT.least}."
    if short and short == len(scores):
        return f"Runs are {looks}"
    parts = ["" if spiked else "No run's training loss spiked."]
    parts += [f"Of {number(len(scores), 'run')}, {short} {'is' if short == 1 else 'are'} {looks}"] if short else []
    return " ".join(filter(None, parts))


def by_arm(study: Study) -> Table:
    """How each arm's runs went: spikes, clipped steps, divergence, the largest logit."""
    courses = study.results.courses()
    logits = study.probe("max_logit").groupby("arm")["value"].max()
    clipped = study.trials[study.trials["attempt"].notna()].groupby("arm")["clip_rate"].mean()
    of_arm = {str(arm): rows for arm, rows in courses.groupby("arm")}
    records = []
    for arm in study.arms:
        mine = of_arm.get(arm.id, courses.iloc[:0])
        words, scores = mine["course"].value_counts(), mine["spike_score"]
        records.append(
            {
                "name": arm.label, "look": arm.look, "runs": whole(len(mine)),
                "ok": whole(words.get("ok", 0)), "diverged": whole(study.diverged(arm)),
                "stuck": whole(words.get("stuck", 0)),
                "spiked": whole(scores.gt(0).sum() if scores.notna().any() else None),
                "spike_score": digits(100 * scores.mean(), 2),
                "clip_rate": fixed(100 * clipped.get(arm.id, math.nan), 0),
                "max_logit": digits(logits.get(arm.id), 3),
            }
        )  # fmt: skip
    columns = [
        Column("name", "arm", numeric=False, adorn=named),
        Column("runs", "runs"),
        Column("ok", "nothing to remark"),
        Column("diverged", "diverged"),
        Column("stuck", "stuck"),
        Column("spiked", "with loss spikes", empty=SHORT_RUN),
        Column("spike_score", "spikes", unit="% of steps", empty=SHORT_RUN),
        Column("clip_rate", "clipped", unit="% of steps"),
        Column("max_logit", "largest logit", unit="of all seeds and steps"),
    ]
    return Table(columns, records, pinned=1)


def diverged(study: Study) -> Table:
    """Every run that diverged: the rule that struck, and the step and module of the first bad value."""
    records = []
    for row in study.trials[study.trials["end"] == "diverged"].to_dict("records"):
        arm, (module, what) = study.by_id[row["arm"]], first_bad(row)
        records.append(
            {
                "name": arm.label, "look": arm.look, "seed": whole(row["seed"]),
                "rule": row["rule"].replace("_", " "), "bad_step": whole(row["bad_step"]),
                "first_bad_step": whole(row["first_bad_step"]), "module": plain(module), "what": plain(what),
            }
        )  # fmt: skip
    columns = [
        Column("name", "arm", numeric=False, adorn=named),
        Column("seed", "seed"),
        Column("rule", "rule", numeric=False),
        Column("bad_step", "judged at step"),
        Column("first_bad_step", "first bad step", empty=UNKNOWN),
        Column("module", "first bad module", numeric=False, empty=UNKNOWN),
        Column("what", "what was bad", numeric=False, empty=UNKNOWN),
    ]
    return Table(columns, records)
