"""Several tasks in one experiment, as tables: every effect at each task, and each architecture over all of them."""

from __future__ import annotations

from ablate.reporting.effects import rows_of
from ablate.reporting.numbers import fixed, interval, plain
from ablate.reporting.study import Study
from ablate.reporting.tables import Column, Table


def effects_by_task(study: Study) -> Table:
    """A change at a task a row."""
    places = study.places
    columns = [
        Column("name", "change", plain, numeric=False),
        Column("task", "task", plain, numeric=False),
        Column("effect", f"Δ {plain(study.metric)}", lambda value: fixed(value, places, sign=True)),
        Column("interval", "95% CI", compose=lambda row: interval(*(fixed(row[key], places, sign=True)
                                                                    for key in ("low", "high")))),
        Column("unit", "unit", plain, numeric=False, optional=True),
        Column("pairs", "pairs", compose=lambda row: f"{row['seeds']}/{row['planned']}"),
        Column("diverged", "diverged", optional=True),
        Column("verdict", "verdict", plain, numeric=False),
    ]  # fmt: skip
    return Table(columns, rows_of(study.results.task_effects()))


def summary(study: Study) -> Table:
    """An architecture a row: its interquartile mean over tasks and seeds."""
    columns = [
        Column("name", "architecture", plain, numeric=False),
        Column("iqm", "IQM of the score", lambda value: fixed(value, 3)),
        Column("interval", "95% CI", compose=lambda row: interval(fixed(row["low"], 3), fixed(row["high"], 3))),
        Column("tasks", "tasks"),
        Column("used", "seeds", compose=lambda row: f"{row['seeds']}/{row['planned']}"),
        Column("diverged", "diverged, at the bottom", optional=True),
    ]
    return Table(columns, rows_of(study.results.tasks()))
