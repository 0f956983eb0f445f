"""Learning-rate sweeps in words and numbers: what each architecture loses at other rates than its best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ablate.analysis.prose import joined, number
from ablate.analysis.sensitivity import RATE
from ablate.records.spelling import short
from ablate.reporting.effects import named, rows_of
from ablate.reporting.numbers import TIMES, fixed, interval, missing, plain, whole
from ablate.reporting.palette import Look, look
from ablate.reporting.study import Study
from ablate.reporting.tables import Column, Table

Row = Mapping[str, Any]


def looks(study: Study, rows: Sequence[Row]) -> dict[tuple[str, str], Look]:
    """How each architecture is drawn: as its arm where it is one, else in the order of the sweep."""
    by_name = {arm.name: arm.look for arm in study.arms}
    places = {row["architecture"]: place for place, row in enumerate(rows)}
    first = int("baseline" not in places)  # no other has the baseline's grey
    return {
        (row["architecture"], row["source"]): by_name[plain(row["architecture"])]
        if row["source"] == "tuning"
        else look(places[row["architecture"]] + first)
        for row in rows
    }


def rates_table(study: Study) -> Table:
    """An architecture a row: its best rate, the range that is as good, what others cost, and which are stable."""
    rows = rows_of(study.results.sensitivity())
    drawn = looks(study, rows)
    columns = [
        Column("name", "architecture", numeric=False, adorn=named),
        Column("swept", "swept", numeric=False),
        Column("best", "best rate"),
        Column("value", f"{plain(study.metric)} there", unit=study.unit),
        Column("edge", "best at the edge?", numeric=False),
        Column("good", f"within {study.smallest:g} of it", numeric=False),
        Column("sensitivity", "sensitivity", unit=study.unit, compose=_sensitivity, empty="not given"),
        Column("seeds", "seeds"),
        Column("stable", "max stable rate"),
        Column("diverged", "diverged", unit="runs"),
        Column("pruned", "given up", unit="runs", optional=True),
        Column("missing", "missing", unit="runs", optional=True),
    ]
    return Table(columns, [_record(study, row, drawn[row["architecture"], row["source"]]) for row in rows])


def _record(study: Study, row: Row, style: Look) -> dict[str, Any]:
    at_end = row["max_stable_lr"] == row["high_rate"]
    return {
        "name": plain(row["architecture"]), "look": style,
        "swept": f"{number(row['rates'], 'rate')}, {_span(row['low_rate'], row['high_rate'])}" if row["rates"] else "",
        "best": _rate(row["best"]), "value": fixed(row["best_value"], study.places),
        "edge": "" if missing(row["best"]) else row["edge"] or "no", "good": _good(row),
        "sensitivity": fixed(row["sensitivity"], study.places),
        "low": fixed(row["low95"], study.places), "high": fixed(row["high95"], study.places),
        "seeds": f"{row['seeds']}/{row['planned']}",
        "stable": f"{'at least ' if at_end else ''}{_rate(row['max_stable_lr'])}",
        **{key: whole(row[key]) for key in ("diverged", "pruned", "missing")},
    }  # fmt: skip


def _rate(value: float) -> str:
    return "" if missing(value) else short(value)


def _span(low: float, high: float) -> str:
    return f"{short(low)} to {short(high)}"


def _good(row: Row) -> str:
    if not row["good_rates"]:
        return ""
    if row["good_rates"] == 1:
        return "that rate alone"
    width = f"{TIMES}{row['good_high'] / row['good_low']:.3g}"
    return f"{_span(row['good_low'], row['good_high'])} ({width}, {number(row['good_rates'], 'rate')})"


def _sensitivity(record: Mapping[str, Any]) -> str:
    return f"{record['sensitivity']} {interval(record['low'], record['high'])}".strip()


def how(study: Study) -> str:
    """What the numbers mean, and what is not given."""
    rows = rows_of(study.results.sensitivity())
    metric = plain(study.metric)
    capped = {bool(row["capped"]) for row in rows}
    cap = "each capped at the loss at initialisation, which is also what a diverged run counts as"
    if capped == {False}:
        cap = (
            f"without a cap, since nothing says what {metric} is at initialisation: a diverged run leaves none to give"
        )
    parts = [
        f"Sensitivity is the mean of {metric} over the swept rates, each rate counting once and {cap}, against that at "
        "the best rate (Wortsman 2023); its interval is Student's t over the seeds, for each architecture alone. The "
        "best rate is chosen on these same seeds, so the interval holds for that rate, and says nothing of the choice.",
        f"As good as the best are the rates next to it whose means are within {study.smallest:g} of its.",
    ]
    if any(row["source"] == "tuning" for row in rows):
        parts.append("The runs are those of tuning, on seeds that no effect uses.")
    lost = [f"{row['left_out']} of {plain(row['architecture'])}" for row in rows if row["left_out"]]
    parts += [f"Left out, since no seed ended there: {joined(lost)}."] if lost else []
    lacking: dict[str, list[str]] = {}
    for row in rows:
        if missing(row["sensitivity"]):
            lacking.setdefault(_why_not(row), []).append(plain(row["architecture"]))
    parts += [f"Not given for {joined(names)}: {why}." for why, names in lacking.items()]
    return " ".join(parts)


def _why_not(row: Row) -> str:
    """Why there is no sensitivity."""
    if not row["seeds"]:
        return "no seed has a value at every rate"
    if row["diverged"] and not row["capped"]:
        return "a run diverged, and nothing says what that counts as"
    return "a rate was given up early in every seed"


def absent(study: Study) -> str:
    """Why there is no curve although learning rates were tuned; "" where none is to be expected."""
    search = study.plan.get("tuning") or {}
    if RATE not in search.get("params", ()) or not search.get("runs"):
        return ""
    others = [plain(path) for path in search["params"] if path != RATE]
    if others:
        return f"No curve over the learning rate: it was tuned together with {joined(others)}."
    return "No curve over the learning rate: TPE tries most rates near the best, so a mean over them says little."
