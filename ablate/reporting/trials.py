"""The table of all trials, and what became of those that did not finish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ablate.analysis.course import first_bad
from ablate.records.layout import StudyFolder
from ablate.reporting.effects import label_of, named
from ablate.reporting.numbers import fixed, level, missing, plain, whole
from ablate.reporting.privacy import tail
from ablate.reporting.study import Study
from ablate.reporting.tables import Column, Table

UNFINISHED = ("diverged", "failed", "timed_out", "pruned", "excluded", "running", "waiting")
ABSENT = "not part of the arm"
"""What a dash in the place of a level says; the level null is written (null)."""
MOST_LOGS = 30
"""So many trials of each end are listed with their logs."""
WHAT_WAS_DONE = {
    "diverged": "Each is a result: it counts in its arm's failure rate and in the verdict, and has no final value.",
    "failed": "Each is missing data: its seed is in no difference of its arm.",
    "timed_out": "Each is missing data: its seed is in no difference of its arm.",
    "pruned": "Each was stopped while tuning, and is in no effect.",
    "excluded": "The plan leaves them out.",
    "running": "They have no result yet; the report is an interim one.",
    "waiting": "They have no result yet; the report is an interim one.",
}
"""What the analysis made of a trial that ended so."""


def trials_table(study: Study) -> Table:
    """Every planned trial, in the plan's order."""
    factors = [factor["name"] for factor in study.plan["factors"]]
    metrics = [study.metric, *(metric for metric in study.plan["units"] if metric != study.metric)]
    columns = [
        Column("name", "arm", numeric=False, adorn=named, compose=label_of),
        *(Column(f"factor.{plain(name)}", plain(name), numeric=False, empty=ABSENT) for name in factors),
        Column("seed", "seed"),
        Column("end", "end", numeric=False),
        Column("reason", "reason", numeric=False, optional=True),
        *(Column(plain(metric), plain(metric), unit=plain(study.plan["units"][metric])) for metric in metrics),
        Column("steps", "steps"),
        Column("tokens", "tokens"),
        Column("initial_loss", "loss at the start", unit="nats"),
        Column("micro_batch", "micro-batch", unit="sequences", optional=True),
        Column("clip_rate", "clip rate", unit="share of steps"),
        Column("seconds", "time", unit="s"),
        Column("tokens_per_second", "tokens/s"),
        Column("peak_memory_mb", "peak memory", unit="MB"),
        Column("attempt", "attempts"),
        Column("trial", "trial", numeric=False, short=8, anchor="trial-"),
    ]
    rows = zip(study.trials.to_dict("records"), _levels(study), strict=True)
    return Table(columns, [_record(study, row, metrics) | levels for row, levels in rows], file="trials.csv")


def trials_csv(study: Study) -> str:
    """Every trial with every column, and when its record was sealed."""
    table = trials_table(study)
    return Table([*table.columns, Column("started", "started"), Column("sealed", "sealed")], table.records).csv()


def _record(study: Study, row: Mapping[Any, Any], metrics: Sequence[str]) -> dict[str, Any]:
    arm = study.by_id.get(row["arm"])
    # Two places more than the effects have, so that whoever averages them again gets the effects.
    values = {plain(metric): fixed(row[metric], study.places + 2) for metric in metrics}
    memory = None if missing(row["peak_memory"]) else float(row["peak_memory"]) / 1e6
    return {
        "name": plain(row["name"]), "label": arm.label if arm else "", "look": arm.look if arm else None,
        **values, "seed": whole(row["seed"]), "end": row["end"],
        "reason": plain(row["reason"]), "initial_loss": fixed(row["initial_loss"], 3),
        "clip_rate": fixed(row["clip_rate"], 3), "seconds": fixed(row["seconds"], 1),
        "tokens_per_second": whole(row["tokens_per_second"]), "peak_memory_mb": whole(memory), "trial": row["trial"],
        "started": row["started"], "sealed": row["sealed"],
        **{key: whole(row[key]) for key in ("steps", "tokens", "attempt", "micro_batch")},
    }  # fmt: skip


def _levels(study: Study) -> list[dict[str, str]]:
    """Each trial's levels as they are written; "" where the factor is no part of the arm."""
    # Column by column: a row as a dict has None both for the level null and for pandas' NA, which says no part.
    columns = {
        f"factor.{plain(factor['name'])}": ["" if value is pd.NA else level(value) for value in values]
        for factor, values in ((each, study.trials[f"factor.{each['name']}"]) for each in study.plan["factors"])
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)] or [
        {} for _ in range(len(study.trials))
    ]


@dataclass(frozen=True)
class Ending:
    """A trial that did not complete."""

    arm: str
    seed: int
    end: str
    reason: str
    attempt: str
    log: str
    """The end of its newest attempt's log, redacted and cut; "" where there is none."""


def unfinished(study: Study) -> list[Ending]:
    """Every trial that did not complete, in the plan's order, each with the end of its log."""
    files = StudyFolder(study.results.folder)
    found = []
    for row in study.trials.to_dict("records"):
        if row["end"] not in UNFINISHED:
            continue
        log = ""
        if row["trial"] and not missing(row["attempt"]):
            path = files.trial(row["trial"]).attempt(int(row["attempt"])).log
            log = tail(path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else ""
        reason = plain(row["reason"])
        if row["end"] == "diverged":
            module, what = first_bad(row)
            where = f"first in {plain(module)} at step {whole(row['first_bad_step'])}" if module else "where it broke"
            reason = reason.replace("_", " ") + (f"; {where}: {plain(what)}" if what else "")
        found.append(Ending(plain(row["name"]), int(row["seed"]), row["end"], reason, whole(row["attempt"]), log))
    return found


@dataclass(frozen=True)
class Group:
    """The trials that ended in one way."""

    title: str
    done: str
    endings: Sequence[Ending]
    cut: str
    """What is not listed, or ""."""


def groups(study: Study) -> list[Group]:
    """The trials that did not complete by how they ended; those that wait are counted and not listed."""
    endings = unfinished(study)
    found = []
    for end in UNFINISHED:
        mine = [ending for ending in endings if ending.end == end]
        if not mine:
            continue
        listed = mine[:MOST_LOGS] if end != "waiting" else [ending for ending in mine if ending.log][:MOST_LOGS]
        left = len(mine) - len(listed)
        cut = f"{left} {'more ' if listed else ''}{'is' if left == 1 else 'are'} in the table of all trials."
        found.append(Group(f"{len(mine)} {end.replace('_', ' ')}", WHAT_WAS_DONE[end], listed, cut if left else ""))
    return found


def counts_table(study: Study) -> Table:
    """How many trials of each arm ended in which way."""
    ends = [end for end in ("complete", *UNFINISHED) if (study.trials["end"] == end).any()]
    columns = [Column("name", "arm", numeric=False, adorn=named), Column("planned", "planned")]
    columns += [Column(end, end.replace("_", " ")) for end in ends]
    records = []
    for name, rows in study.trials.groupby("name", sort=False):
        arm = study.by_id.get(str(rows["arm"].iloc[0]))
        tally = {end: whole((rows["end"] == end).sum()) for end in ends}
        head = {"name": arm.label, "look": arm.look} if arm else {"name": plain(str(name)), "look": None}
        records.append({**head, "planned": whole(len(rows)), **tally})
    return Table(columns, records)
