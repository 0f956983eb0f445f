"""What each arm was tuned to, and what that rests on."""

from __future__ import annotations

from typing import Any

from ablate.analysis.prose import number
from ablate.analysis.tuned import edges, flips
from ablate.records.spelling import in_words
from ablate.reporting.answers import effect_row
from ablate.reporting.effects import label_of, named, rows_of
from ablate.reporting.figures.forest import Row
from ablate.reporting.numbers import digits, fixed, interval, level, missing, plain, whole
from ablate.reporting.study import Study
from ablate.reporting.tables import Column, Table

TURNS = {"": "", "sign": "the sign", "verdict": "the verdict", "word": "the verdict's word"}
"""What of an arm's effect turns round with the values that it is compared at."""
ENDS = {"": "effect", "_low": "low", "_high": "high"}


def tuning_table(study: Study) -> Table:
    """An arm a row: its values, the objective that they reached in tuning, and how many were tried."""
    params = list(study.plan["tuning"]["params"])
    columns = [
        Column("name", "arm", numeric=False, adorn=named, compose=label_of),
        *(Column(path, path.rpartition(".")[2], empty="not tuned") for path in params),
        Column("value", f"{plain(study.metric)} in tuning", unit=plain(study.plan["units"][study.metric])),
        Column("tried", "combinations"),
        Column("diverged", "diverged", unit="trials", optional=True),
        Column("pruned", "given up", unit="trials", optional=True),
        Column("missing", "missing", unit="trials", optional=True),
        Column("edge", "at an edge", numeric=False),
        Column("again", "Δ at the baseline's values", compose=_again, optional=True),
        Column("own", "Δ at its own best", compose=_own, optional=True),
        Column("turns", "turns round", numeric=False, optional=True, empty="no"),
    ]
    turned = flips(study.results.effects(), study.results.at_baseline())
    again = {row["arm"]: row for row in study.results.at_baseline().to_dict("records")}
    rows = [
        _row(study, arm, params, again.get(arm["id"])) | {"turns": TURNS[turned.get(arm["id"], "")]}
        for arm in study.plan["arms"]
    ]
    return Table(columns, rows, pinned=1)


def forest_rows(study: Study) -> list[Row]:
    """Each arm at its own best values, and below it at the values that are best for the baseline.

    None where no arm has been run at other values than its own.
    """
    again = {row["arm"]: row for row in rows_of(study.results.at_baseline())}
    tuned = {arm["id"]: arm.get("tuned") for arm in study.plan["arms"]}
    if not any(tuned[arm] != tuned[study.baseline.id] for arm in again):
        return []
    rows = []
    for own in rows_of(study.effects):
        if (other := again.get(own["arm"])) is not None:
            rows += [effect_row(study, own), effect_row(study, other, "at the baseline's")]
    return rows


def tried_table(study: Study) -> Table:
    """Every combination that an arm has tried: the objective's mean over the tuning seeds, and how they ended."""
    frame = study.results.tuning()
    params = list(study.plan["tuning"]["params"])
    columns = [
        Column("name", "arm", numeric=False, adorn=named, compose=label_of),
        *(Column(path, path.rpartition(".")[2], empty="not tuned") for path in params),
        Column("value", plain(study.metric), unit=plain(study.plan["units"][study.metric])),
        Column("ends", "ended", numeric=False),
        Column("chosen", "chosen", numeric=False),
    ]
    records = []
    for (arm, _), rows in frame.groupby(["arm", "number"], sort=False):
        shown = study.by_id[str(arm)]
        values = {path: rows[f"tuned.{path}"].iloc[0] for path in params}
        scores = rows[study.metric]
        records.append(
            {
                "name": plain(shown.name), "label": shown.label, "look": shown.look,
                **{path: "" if missing(value) else _written(value) for path, value in values.items()},
                "value": fixed(scores.mean(), study.places) if scores.notna().all() else "",
                "ends": ", ".join(f"{count} {end}" for end, count in rows["end"].value_counts(sort=False).items()),
                "chosen": "chosen" if rows["chosen"].any() else "",
            }
        )  # fmt: skip
    return Table(columns, records)


def how(study: Study) -> str:
    """How it was searched, in a sentence or two."""
    tuning = study.plan["tuning"]
    words = (
        f"{number(tuning['combinations'], 'combination')} on {number(len(tuning['seeds']), 'seed')} that no effect uses"
    )
    halving = tuning["halving"]
    more = f"; at each of {number(halving['rungs'], 'rung')} one in {halving['reduction']} goes on" if halving else ""
    more += f"; the ranges were widened {number(tuning['widened'], 'time')}" if tuning.get("widened") else ""
    first = f"Each arm was tuned by {tuning['method']}: {words}{more}."
    return f"{first} The verdicts compare every arm at its own best values."


def comparison(study: Study) -> str:
    """What the figure of both comparisons shows."""
    values = plain(in_words(study.planned[study.baseline.id]["tuned"]))
    return (
        "Difference to the baseline, paired by seed, with simultaneous 95% intervals: each arm at its own best values, "
        f"which carries the verdict, and below it at those that are best for the baseline ({values})."
    )


def _row(study: Study, arm: dict[str, Any], params: list[str], again: Any) -> dict[str, Any]:
    shown = study.by_id[arm["id"]]
    frame = study.results.tuning()
    frame = frame[frame["arm"] == arm["id"]]
    best = frame[frame["chosen"]]
    ends = frame["end"]
    tuned = arm.get("tuned") or {}
    at_edge = edges(study.plan, arm, frame)
    own: Any = study.effects.loc[arm["id"]] if arm["id"] in study.effects.index else {}
    row: dict[str, Any] = {"name": plain(arm["name"]), "label": shown.label, "look": shown.look}
    row |= {path: _written(tuned[path]) if path in tuned else "" for path in params}
    return row | {
        "value": fixed(best[study.metric].mean(), study.places) if best[study.metric].notna().all() else "",
        "tried": whole(frame["number"].nunique()) if len(frame) else "",
        "diverged": whole((ends == "diverged").sum()),
        "pruned": whole((ends == "pruned").sum()),
        "missing": whole((~ends.isin(("complete", "diverged", "pruned"))).sum()),
        "edge": "; ".join(f"{path.rpartition('.')[2]}: {where}" for path, where in at_edge.items()),
        **{f"own{end}": fixed(own[key], study.places, sign=True) if again else "" for end, key in ENDS.items()},
        **{f"again{end}": fixed(again[key], study.places, sign=True) if again else "" for end, key in ENDS.items()},
    }


def _own(record: Any) -> str:
    return f"{record['own']} {interval(record['own_low'], record['own_high'])}".strip()


def _again(record: Any) -> str:
    return f"{record['again']} {interval(record['again_low'], record['again_high'])}".strip()


def _written(value: Any) -> str:
    return digits(value) if isinstance(value, float) else level(value)
